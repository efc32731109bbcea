//! Settings files: whatever the text, there is an answer, and every problem has a place in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_lint::project::{ProjectFile, read};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for file in ProjectFile::ALL {
        match read(text, file) {
            Ok(Some(project)) => drop(project.ignored_in("a/b.json")),
            Ok(None) => {}
            Err(problems) => {
                for problem in problems {
                    assert!(problem.span.start <= problem.span.end, "{problem:?}");
                    assert!(problem.span.end <= text.len(), "{problem:?}");
                }
            }
        }
    }
});
