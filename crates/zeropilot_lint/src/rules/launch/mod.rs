//! L: launching, found in the script that starts the run.

pub(crate) mod config_not_found;
pub(crate) mod environment;
pub(crate) mod no_launcher;
pub(crate) mod visible_devices;

use crate::diagnostic::Diagnostic;
use crate::job::{Files, Job};

/// Looks at a launch script, and adds what it finds.
type JobCheck = fn(&str, &Job, Files<'_>, &mut Vec<Diagnostic>);

/// What looks at launch scripts.
pub(crate) const JOB_RULES: [JobCheck; 4] =
    [no_launcher::check, visible_devices::check, config_not_found::check, environment::check];
