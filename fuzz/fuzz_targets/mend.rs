//! Fixes: a fixed file can be read, has nothing left to mend, and is not worse than before.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_lint::{Settings, Verdict, check, fix};

fuzz_target!(|data: &[u8]| {
    let mut settings = Settings { world_size: Some(2), ..Settings::default() };
    let before = check(data, &settings);
    settings.front_end = Some(before.front_end);
    let Some(fixed) = fix(data, &settings, true) else { return };
    assert!(before.verdict == Verdict::Reject || fixed.report.verdict == Verdict::Accept);
    assert!(!fixed.report.fixed.is_empty());
});
