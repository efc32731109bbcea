//! Loss heads on a bare Llama, measured against the real engine.

mod common;

use zeropilot_step::family::{build, micro_step};
use zeropilot_step::head::LossHead;
use zeropilot_step::tape::{Accounting, Mark, Options};

fn head(name: &str) -> LossHead {
    match name {
        "head-default" => LossHead::Model,
        "head-num_items_in_batch" => LossHead::ItemsInBatch,
        "head-logits_to_keep_8_labels_8" => LossHead::LogitsToKeep(8),
        "head-trainer_label_smoothing" => LossHead::TrainerSmoothing,
        "head-trl_fused" => LossHead::Tiled,
        "head-cross_entropy_label_smoothing_fp32_shifted" => LossHead::SmoothedCrossEntropy,
        other => panic!("unknown head {other}"),
    }
}

#[test]
fn heads_equal_the_measurement() {
    for case in common::cases("heads.json") {
        let name = case["name"].as_str().expect("a name");
        let mut setup = common::setup(&case).expect("a family");
        setup.head = head(name);
        let program = build(&setup);
        let options = Options { accounting: Accounting::Recorded, ..Options::default() };
        let mut ledger = common::Ledger::default();
        micro_step(&*program, options).replay(&mut ledger);
        let ours = [
            ledger.between(None, Mark::ForwardDone),
            ledger.between(Some(Mark::Saved), Mark::BackwardDone),
            ledger.at(Mark::Saved),
        ];
        let measured = [
            common::number(&case["peak"], "forward"),
            common::number(&case["peak"], "backward"),
            common::number(&case, "saved"),
        ];
        println!("{name} {}: {ours:?}", case["dtype"]);
        assert_eq!(ours, measured, "{name} {}: forward, backward, saved", case["dtype"]);
    }
}
