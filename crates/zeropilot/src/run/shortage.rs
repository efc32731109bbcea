//! Why memory ran out at the end of a run, as `zeropilot diagnose` says it.

use std::path::Path;

use zeropilot_diagnose::{Diagnosis, Memory as Of, diagnose};
use zeropilot_record::{Cause, Memory, Shortage, Verdict};
use zeropilot_run::{Record, Recorder};
use zeropilot_view::diagnose::{LogReport, human, json};
use zeropilot_view::{Layout, run as words};

/// What the last lines of the run say of the shortage that ended it, and the same as `diagnosis.json` in the record. A process
/// that the kernel killed said nothing: there, what the kernel counted is the answer.
pub(super) fn explained(
    verdict: &Verdict,
    recorder: &Recorder,
    predict: impl FnOnce() -> Option<zeropilot_ask::Memory>,
    layout: &Layout,
) -> Option<String> {
    let Cause::OutOfMemory { memory, shortage: Shortage::Refused, .. } = verdict.cause else {
        return None;
    };
    let last = verdict.attempts.last()?;
    let name = format!("tail-{}.log", last.number);
    let diagnosis = read(recorder.directory(), last.number)?;
    if (diagnosis.memory == Of::Device) != (memory == Memory::Device) {
        return None;
    }
    let predicted = if last.strategy.is_as_given() { predict() } else { None };
    let report =
        LogReport { name: &name, diagnosis: Some(&diagnosis), predicted: predicted.as_ref() };
    let text = format!("{:#}\n", json(&report, layout.language));
    // A full disk must not change how a run ends.
    let _ = recorder.write("diagnosis.json", &text);
    let path = recorder.directory().join(&name).display().to_string();
    Some(words::why_memory_ran_out(&path, &human(&report, layout), layout.language))
}

fn read(directory: &Path, attempt: u32) -> Option<Diagnosis> {
    diagnose(&Record::open(directory).ok()?.tail(attempt))
}
