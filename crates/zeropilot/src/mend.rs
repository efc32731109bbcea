//! What `--fix` and `--diff` do with a mended file: put it in place, or show the difference.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use similar::TextDiff;
use zeropilot_lint::{Fixed, Report, Settings, Verdict, check, fix};
use zeropilot_view::talk::InputProblem;

/// What is done about findings that have a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are told.
    Tell,
    /// They are put right in the file; with guesses if asked for.
    Fix {
        /// Fixes that guess at what was meant, too.
        guesses: bool,
    },
    /// What would change is shown.
    Diff {
        /// Fixes that guess at what was meant, too.
        guesses: bool,
    },
}

/// A config, judged and perhaps fixed.
pub(crate) struct Outcome {
    /// What the file says now.
    pub(crate) bytes: Vec<u8>,
    /// What is found in that.
    pub(crate) report: Report,
    /// What would change in the file, if only that was asked for.
    pub(crate) diff: Option<String>,
}

/// Judges a config in the first of its circumstances, and mends it as far as the mode asks and none of
/// the others is worse off. Without a path there is no file to change.
pub(crate) fn judge(
    bytes: Vec<u8>,
    path: Option<&Path>,
    name: &str,
    circumstances: &[Settings],
    mode: Mode,
) -> Result<Outcome, InputProblem> {
    let usual = Settings::default();
    let settings = circumstances.first().unwrap_or(&usual);
    let guesses = match mode {
        Mode::Tell => {
            let report = check(&bytes, settings);
            return Ok(Outcome { bytes, report, diff: None });
        }
        Mode::Fix { guesses } | Mode::Diff { guesses } => guesses,
    };
    let is_fine = |fixed: &Fixed| {
        circumstances.iter().all(|other| {
            check(&bytes, other).verdict == Verdict::Reject
                || check(fixed.text.as_bytes(), other).verdict == Verdict::Accept
        })
    };
    let Some(fixed) = fix(&bytes, settings, guesses).filter(is_fine) else {
        let report = check(&bytes, settings);
        return Ok(Outcome { bytes, report, diff: None });
    };
    if let Mode::Diff { .. } = mode {
        let diff = unified(&bytes, &fixed.text, name);
        return Ok(Outcome { bytes, report: fixed.report, diff: Some(diff) });
    }
    let path = path.ok_or(InputProblem::NotInPlace)?;
    replace(path, &fixed.text).map_err(InputProblem::Unwritable)?;
    Ok(Outcome { bytes: fixed.text.into_bytes(), report: fixed.report, diff: None })
}

/// The difference between two texts of a file, as a patch.
pub(crate) fn unified(before: &[u8], after: &str, name: &str) -> String {
    let before = String::from_utf8_lossy(before);
    let diff = TextDiff::from_lines(before.as_ref(), after);
    diff.unified_diff().context_radius(3).header(name, name).to_string()
}

/// Gives a file a new content in one step, with the permissions it had. A link stays a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    if permissions.readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".zeropilot-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
