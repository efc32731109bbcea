//! What was predicted for a run beside what its first attempt was measured to need, phase by phase.

use std::fmt::Write as _;

use zeropilot_record::{Measured, Phase, RunEvent, StepParts};
use zeropilot_text::{Language, Text};
use zeropilot_units::Bytes;

use super::{Page, html};
use crate::run::shortage::moment;

/// A line of the table.
struct Row {
    what: String,
    predicted: Option<String>,
    measured: Option<String>,
}

/// The table; empty if nothing was predicted.
pub(super) fn table(page: &Page<'_>, language: Language) -> String {
    let rows = rows(page, language);
    if rows.iter().all(|row| row.predicted.is_none()) {
        return String::new();
    }
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let mut text = format!(
        "<h2>{}</h2>\n<table><tr><th></th><th>{}</th><th>{}</th></tr>",
        words("Predicted and measured", "预测与实测"),
        words("predicted", "预测"),
        words("measured", "实测"),
    );
    for Row { what, predicted, measured } in rows {
        let cell = |value: Option<String>| html(&value.unwrap_or_else(|| "–".to_owned()));
        let (predicted, measured) = (cell(predicted), cell(measured));
        let _ = write!(
            text,
            "<tr><td>{}</td><td>{predicted}</td><td>{measured}</td></tr>",
            html(&what)
        );
    }
    let note = words(
        "zeropilot measures GPU or host memory over the whole first attempt, and per phase only if memory ran out in that phase. It measures the time of each part of a step only if the config sets wall_clock_breakdown.",
        "显存或主机内存按第一次尝试全程测量，只有在某个阶段不足时才有该阶段的数值。配置打开 wall_clock_breakdown 时，才有一步中各部分的耗时。",
    );
    let _ = writeln!(text, "</table>\n<p class=\"legend\">{note}</p>");
    text
}

fn rows(page: &Page<'_>, language: Language) -> Vec<Row> {
    let words = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let first = page.verdict.and_then(|verdict| verdict.attempts.first());
    let measured = first.map_or(Measured::default(), |attempt| attempt.measured);
    let bytes = |bytes: u64| Bytes(bytes).to_string();
    let label = |of: &str, phase: Phase| format!("{of}{}", moment(phase).get(language));
    let memory = words("memory ", "显存或主机内存：");
    let mut rows: Vec<Row> = Vec::new();
    for needs in &page.info.phases {
        rows.push(Row {
            what: label(memory, needs.phase),
            predicted: Some(bytes(needs.bytes)),
            measured: ran_out(page, needs.phase).map(|least| format!("≥ {}", bytes(least))),
        });
    }
    let whole = measured.device.or(measured.resident);
    rows.push(Row {
        what: words("peak memory", "显存或主机内存峰值").to_owned(),
        predicted: page.info.predicted.map(bytes),
        measured: whole.map(bytes),
    });
    let part = |parts: StepParts, phase: Phase| match phase {
        Phase::Forward => Some(parts.forward),
        Phase::Backward => Some(parts.backward),
        Phase::Step => Some(parts.step),
        Phase::Loading | Phase::Saving => None,
    };
    let seconds = |seconds: f64| match language {
        Language::English => format!("{seconds:.3} s"),
        Language::Chinese => format!("{seconds:.3} 秒"),
    };
    for phase in [Phase::Forward, Phase::Backward, Phase::Step] {
        let of = page.info.phases.iter().find(|needs| needs.phase == phase);
        let predicted = of.and_then(|needs| needs.seconds);
        let measured = measured.parts.and_then(|parts| part(parts, phase));
        if predicted.is_some() || measured.is_some() {
            rows.push(Row {
                what: label(words("time ", "耗时："), phase),
                predicted: predicted.map(seconds),
                measured: measured.map(seconds),
            });
        }
    }
    rows.push(Row {
        what: words("time per step", "一步耗时").to_owned(),
        predicted: page.info.predicted_step_seconds.map(seconds),
        measured: measured.step_seconds.map(seconds),
    });
    rows
}

/// What a rank needed at least when memory ran out in a phase of the first attempt.
fn ran_out(page: &Page<'_>, of: Phase) -> Option<u64> {
    let is_first =
        |happening: &&RunEvent| !matches!(happening, RunEvent::AttemptStarted { attempt: 2.., .. });
    let first = page.events.iter().map(|event| &event.happening).take_while(is_first);
    first
        .filter_map(|happening| match happening {
            RunEvent::MemoryCompared { phase, measured, .. } if *phase == of => Some(*measured),
            _ => None,
        })
        .max()
}

#[cfg(test)]
mod tests {
    use zeropilot_record::{Attempt, Cause, Ending, PhaseNeeds, RunInfo, Setup, Verdict};

    use super::*;

    #[test]
    fn phases_have_their_prediction_and_what_was_measured_of_them() {
        let needs = |phase, gib: u64, seconds| PhaseNeeds { phase, bytes: gib << 30, seconds };
        let info = RunInfo {
            predicted: Some(6 << 30),
            predicted_step_seconds: Some(0.5),
            phases: vec![needs(Phase::Loading, 2, None), needs(Phase::Backward, 6, Some(0.25))],
            ..RunInfo::default()
        };
        let parts = Some(StepParts { forward: 0.1, backward: 0.3, step: 0.05 });
        let measured = Measured {
            device: Some(7 << 30),
            resident: Some(1 << 30),
            step_seconds: Some(0.625),
            parts,
            ..Measured::default()
        };
        let attempt = Attempt {
            number: 1,
            strategy: Setup::AsGiven,
            config: None,
            resumed_from: None,
            ending: Ending::Exited(0),
            cause: Cause::Completed,
            last_step: Some(9),
            total_steps: None,
            last_loss: None,
            seconds: 9.0,
            measured,
            evidence: Vec::new(),
        };
        let verdict = Verdict::new("a", Cause::Completed, vec![attempt], 9.0);
        let page =
            Page { info: &info, verdict: Some(&verdict), events: &[], tail: "", is_lost: false };
        let text = table(&page, Language::English);
        for row in [
            "<tr><td>memory while loading</td><td>2.00 GiB</td><td>–</td></tr>",
            "<tr><td>peak memory</td><td>6.00 GiB</td><td>7.00 GiB</td></tr>",
            "<tr><td>time in the backward pass</td><td>0.250 s</td><td>0.300 s</td></tr>",
            "<tr><td>time per step</td><td>0.500 s</td><td>0.625 s</td></tr>",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
        let unknown = RunInfo::default();
        let page = Page { info: &unknown, ..page };
        assert_eq!(table(&page, Language::Chinese), "");
    }
}
