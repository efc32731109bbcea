//! The order in which modules begin under ZeRO-3, name by name as the engine recorded it.

mod common;

use zeropilot_step::family::{build, micro_step};
use zeropilot_step::tape::{Accounting, Options};

#[test]
fn module_order_equals_the_recorded_trace() {
    let mut compared = 0;
    let mut misses = Vec::new();
    for case in common::cases("training.json") {
        let Some(recorded) = case["module_events"].as_array() else { continue };
        let setup = common::setup(&case).expect("a family");
        let program = build(&setup);
        let options = Options {
            accounting: Accounting::Recorded,
            module_events: true,
            zero3_linear: true,
            ..Options::default()
        };
        let trace = micro_step(&*program, options);
        let ours: Vec<String> =
            trace.module_starts().map(|(module, _)| program.model().module_name(module)).collect();
        compared += 1;
        let place = ours.iter().zip(recorded).position(|(ours, theirs)| theirs != ours);
        if ours.len() != recorded.len() || place.is_some() {
            let place = place.unwrap_or(ours.len().min(recorded.len()));
            let around = place.saturating_sub(2)..place + 4;
            misses.push(format!(
                "{}: {} events, {} recorded; at {place}: ours {:?}, recorded {:?}",
                case["name"],
                ours.len(),
                recorded.len(),
                ours.get(around.start..around.end.min(ours.len())),
                recorded.get(around.start..around.end.min(recorded.len())),
            ));
        }
    }
    println!("{compared} traces compared, {} differ", misses.len());
    assert!(compared > 0);
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}
