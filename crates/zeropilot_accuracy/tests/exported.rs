//! What `zeropilot accuracy --export` writes is a row of the collection, and can be asked.

use zeropilot_accuracy::{Question, Row};
use zeropilot_record::{Accuracy, ModelFrom, Needs, PredictedJob};
use zeropilot_view::accuracy::export;

#[test]
fn an_exported_run_is_a_row_that_can_be_asked() {
    let job = PredictedJob {
        model: "Qwen/Qwen3-8B".to_owned(),
        parameters: 8_190_735_360,
        device: "A100 SXM4 80GB".to_owned(),
        gpus: 8,
        nodes: 1,
        zero_stage: 3,
        precision: "bf16".to_owned(),
        method: "lora".to_owned(),
        lora_rank: Some(16),
        lora_targets: Some("all-linear".to_owned()),
        micro_batch: 2,
        grad_accum: 4,
        seq_len: 2048,
        grad_ckpt: true,
        ..PredictedJob::default()
    };
    let run = Accuracy {
        shape: 1,
        id: "20260101-120000-7".to_owned(),
        zeropilot: "0.1.0".to_owned(),
        job,
        model_from: ModelFrom::Option,
        predicted: Needs { device: Some(20 << 30), ..Needs::default() },
        measured: Needs { device: Some(21 << 30), ..Needs::default() },
        steps: 9,
    };
    let row = export(&run, 1).expect("a row");
    let row: Row = serde_json::from_value(row).expect("a row of the collection");
    let question = Question::of(&row);
    assert!(question.is_ok(), "{:?}", question.err());
}
