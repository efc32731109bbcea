//! What several fuzz targets hold true.

use zeropilot_lint::Settings;
use zeropilot_job::Outside;
use zeropilot_lint::job::judge;

/// A launch script beside files that all have this text is judged, and every place lies in the text it speaks of.
pub fn judged(script: &str, text: &str) {
    let files = |_: &str| Some(text.to_owned());
    for file in judge(script, &Outside::default(), &Settings::default(), &files).files {
        for found in &file.report.diagnostics {
            assert!(file.text.get(found.span.start..found.span.end).is_some(), "{found:?}");
        }
    }
}
