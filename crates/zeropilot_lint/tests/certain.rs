//! Which errors keep a run from its start: those of its launch and its config, and not what stands in training code.

#![cfg(feature = "job")]

use zeropilot_job::Outside;
use zeropilot_lint::job::judge;
use zeropilot_lint::{Settings, Verdict};

const FP16: &str = r#"{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true}}"#;
const SHARES_NOTHING: &str = r#"{"train_batch_size": 5, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}"#;
const PLAIN: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}}"#;
const TRAINER: &str = "from transformers import HfArgumentParser, Trainer, TrainingArguments\n\
                       parser = HfArgumentParser(TrainingArguments)\nargs, = parser.parse_args_into_dataclasses()\n\
                       Trainer(model, args).train()\n";

/// Whether an error is found, and whether the run is certain to fail.
fn judged(launch: &str, files: &[(&str, &str)]) -> (bool, bool) {
    let find = |name: &str| {
        files.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    };
    let report = judge(launch, &Outside::default(), &Settings::default(), &find);
    let is_wrong = report.files.iter().any(|file| file.report.verdict == Verdict::Reject);
    (is_wrong, report.is_certain_to_fail)
}

#[test]
fn an_error_in_training_code_is_not_certain_wherever_the_config_stands() {
    let code = |config: &str| {
        format!(
            "import deepspeed\nengine, _, _, _ = deepspeed.initialize(args=args, model=model{config})\n\
             for batch in loader:\n    loss = engine(batch)\n    loss.backward()\n    engine.step()\n"
        )
    };
    let launch = "deepspeed --num_gpus 2 t.py --deepspeed --deepspeed_config ds.json\n";
    assert_eq!(judged(launch, &[("ds.json", FP16), ("t.py", &code(""))]), (true, false));
    let written = code(", config={'train_micro_batch_size_per_gpu': 1, 'fp16': {'enabled': True}}");
    assert_eq!(judged("deepspeed --num_gpus 2 t.py\n", &[("t.py", &written)]), (true, false));
}

#[test]
fn an_error_in_the_config_is_certain_wherever_that_stands() {
    let launch = "deepspeed --num_gpus 2 t.py --deepspeed --deepspeed_config ds.json\n";
    assert_eq!(judged(launch, &[("ds.json", SHARES_NOTHING)]), (true, true));
    let written = format!(
        "import deepspeed\nengine, _, _, _ = deepspeed.initialize(model=model, config={SHARES_NOTHING})\n"
    );
    assert_eq!(judged("deepspeed --num_gpus 2 t.py\n", &[("t.py", &written)]), (true, true));
}

/// `--deepspeed FILE` alone does not show that the Trainer reads the file.
#[test]
fn what_only_the_trainer_rejects_is_certain_where_the_script_is_one() {
    let launch = "torchrun --nproc_per_node 2 t.py --deepspeed ds.json --output_dir out \
                  --save_only_model true --load_best_model_at_end true\n";
    assert_eq!(judged(launch, &[("ds.json", PLAIN)]), (true, false));
    assert_eq!(judged(launch, &[("ds.json", PLAIN), ("t.py", TRAINER)]), (true, true));
}

#[test]
fn an_error_in_the_launch_command_is_certain() {
    let launch =
        "deepspeed --include localhost:0 --exclude localhost:1 t.py --deepspeed_config ds.json\n";
    let config = r#"{"train_micro_batch_size_per_gpu": 1}"#;
    assert_eq!(judged(launch, &[("ds.json", config)]), (true, true));
    assert_eq!(judged("torchrun --nproc_per_node 2 t.py --deepspeed ds.json\n", &[]), (true, true));
}
