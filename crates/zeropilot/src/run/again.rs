//! The commands that a run ends with: what shows more of it, and what goes on with it.

use std::ffi::OsString;
use std::path::Path;

use zeropilot_record::{Cause, Verdict};
use zeropilot_run::environment::without_secrets;
use zeropilot_run::line;

use super::arguments::RunArguments;

/// The command that writes the page of a run. A record that is not listed is named by its directory.
pub(super) fn report(id: &str, home: &Path, directory: &Path) -> String {
    let is_listed = home.join(id).exists();
    let run = if is_listed { id.into() } else { directory.as_os_str().to_owned() };
    line(&["zeropilot".into(), "report".into(), run])
}

/// The command that goes on with a run from its checkpoint: that of the user, in the same record. None if it would hold a
/// secret, or if nobody said how the program resumes.
pub(super) fn resume(
    verdict: &Verdict,
    arguments: &RunArguments,
    can_resume: bool,
    directory: &Path,
) -> Option<String> {
    let is_over = matches!(verdict.cause, Cause::Completed | Cause::Refused | Cause::NotStarted);
    if is_over || verdict.checkpoint.is_none() || !can_resume {
        return None;
    }
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words = continued(&given, arguments, directory)?;
    let is_secret =
        without_secrets(&words).iter().zip(&words).any(|(shown, word)| **word != **shown);
    (!is_secret).then(|| line(&words))
}

fn continued(
    given: &[OsString],
    arguments: &RunArguments,
    directory: &Path,
) -> Option<Vec<OsString>> {
    let end = given.iter().position(|word| word == "--")?;
    let (options, command) = given.split_at(end);
    let mut words = vec![OsString::from("zeropilot")];
    words.extend(options.iter().cloned());
    if arguments.record.is_none() {
        words.extend(["--record".into(), directory.as_os_str().to_owned()]);
    }
    if !arguments.is_continued {
        words.push("--continue".into());
    }
    words.extend(command.iter().cloned());
    Some(words)
}
