use num_traits::ToPrimitive as _;
use zeropilot_config::front_end::{FrontEnd, Number};
use zeropilot_config::syntax::{Node, Value};

use super::scheduler_parameters::parameters;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::at_member;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O11",
    name: "logarithmic-warmup",
    group: Group::Optimizer,
    severity: Severity::Note,
    summary: Text::new("the warmup is logarithmic by default", "warmup 默认是对数曲线"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#1298"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}}"#,
        ),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed ds.json --warmup_steps 0")
            .files(&[("ds.json", FILLED)]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed ds.json --bf16").files(&[
            ("t.py", "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\nTrainer(model, args).train()\n"),
            ("ds.json", FILLED),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py --deepspeed ds.json --do_predict --warmup_steps 9").files(&[
            ("t.py", "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\ntrainer = Trainer(model, args)\nif args.do_train:\n    trainer.train()\ntrainer.predict(data)\n"),
            ("ds.json", FILLED),
        ]),
    ],
    is_no_op: false,
};

/// For the HF Trainer.
const FILLED: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

/// Up to so many steps, every curve is the same.
const SHORTEST: i64 = 2;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{name}` warms up logarithmically unless `warmup_type` is `linear`",
        "`warmup_type` 不是 `linear` 时，`{name}` 的 warmup 按对数曲线上升",
    ),
    why: Text::new(
        "A logarithmic warmup of N steps reaches half of the peak learning rate after √N steps, for example after 32 of 1000 steps.",
        "N 步的对数 warmup 在第 √N 步就达到峰值的一半：1000 步里只要 32 步。",
    ),
    help: Text::new(
        "add `\"warmup_type\": \"linear\"` for a linear warmup, or `\"log\"` if you want a logarithmic one",
        "想要线性就加上 `\"warmup_type\": \"linear\"`；确实要对数就写明 `\"log\"`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, _)) = parameters(subject).filter(|(name, _)| name.starts_with("Warmup")) else {
        return;
    };
    let Some((_, section)) = subject.member(&["scheduler", "params"]) else { return };
    let steps = section.value.get("warmup_num_steps");
    if section.value.get("warmup_type").is_some()
        || steps.is_some_and(|steps| is_short(subject, steps))
        || subject.script.only_evaluates
        || !matches!(section.value.value, Value::Object(_))
    {
        return;
    }
    let title =
        Text::new("add `\"warmup_type\": \"linear\"`", "加上 `\"warmup_type\": \"linear\"`");
    let fix = insert_members(subject, &section.value, &[("warmup_type", "\"linear\"")])
        .map(|edit| Fix::guess(title, vec![edit]));
    found.push(
        at_member(&RULE, &WORDING, &["scheduler", "params"], section).with("name", name).fix(fix),
    );
}

/// Whether a warmup is too short for a curve: as it is written, or as the HF Trainer fills it.
fn is_short(subject: &Subject<'_>, steps: &Node) -> bool {
    if let Some(steps) = number(steps) {
        return steps <= SHORTEST as f64;
    }
    let is_filled = matches!(&steps.value, Value::Str(text) if text == "auto")
        && subject.front_end == FrontEnd::HfTrainer;
    let trainer = &subject.arguments.trainer;
    let is_nothing = match trainer.warmup_steps {
        None => subject.script.warms_up == Some(false),
        // A ratio beside it, or one that the program sets, counts where these are 0.
        Some(Number::Int(0) | Number::Float(0.0)) => match subject.script.warms_up {
            Some(warms_up) => !warms_up,
            None => subject.script.job.is_none(),
        },
        Some(Number::Int(steps)) => steps <= SHORTEST,
        Some(Number::Float(steps)) if steps >= 1.0 => steps < (SHORTEST + 1) as f64,
        Some(Number::Float(share)) => trainer
            .num_training_steps
            .and_then(|all| all.to_f64())
            .is_some_and(|all| (all * share).ceil() <= SHORTEST as f64),
    };
    is_filled && is_nothing
}
