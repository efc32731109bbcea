//! How a check goes about its inputs, the same for all of them.

use zeropilot_lint::project::FailOn;
use zeropilot_lint::{Settings, Severity};
use zeropilot_view::Layout;

use crate::adoption::Adoption;
use crate::mend::Mode;
use crate::project::Found;

/// How inputs are checked.
pub(crate) struct Manner<'a> {
    /// How results are written.
    pub(crate) layout: Layout,
    /// What is known beside the files.
    pub(crate) settings: Settings,
    /// What is done about findings that have a fix.
    pub(crate) mode: Mode,
    /// What the project settles for single files.
    pub(crate) found: &'a Found,
    /// What is done about findings that are known.
    pub(crate) adoption: Adoption,
    /// What makes the check fail.
    pub(crate) fail_on: FailOn,
}

impl<'a> Manner<'a> {
    /// Every finding is told, and nothing is changed.
    pub(crate) fn telling_everything(layout: Layout, settings: Settings, found: &'a Found) -> Self {
        let fail_on = FailOn::Severity(Severity::Warning);
        let (mode, adoption) = (Mode::Tell, Adoption::Everything);
        Self { layout, settings, mode, found, adoption, fail_on }
    }
}
