use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::STAGE_3;
use zeropilot_job::{Call, PythonScript};
use zeropilot_text::Text;

use super::steps_filled_by_evaluation::waits_for_steps;

pub(crate) static RULE: Rule = Rule {
    code: "I13",
    name: "evaluation-before-training",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "evaluation before training",
        "训练之前先评估",
    ),
    wordings: &[&REFUSED, &KEPT],
    sources: &["huggingface/transformers#29348"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[("t.py", EVALUATES), ("ds.json", STAGE_2)]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[("t.py", EVALUATES), ("ds.json", STAGE_3)]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\ntrainer.train()\nprint(trainer.evaluate())\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\nif args.do_eval:\n    print(trainer.evaluate())\nelse:\n    trainer.train()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

const EVALUATES: &str = "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\nprint(trainer.evaluate())\ntrainer.train()\n";

const STAGE_2: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;

static REFUSED: Wording = Wording {
    message: Text::new(
        "`{call}` before `train` fails with ZeRO stage {stage}",
        "ZeRO stage {stage} 下，在 `train` 之前调用 `{call}` 会报错",
    ),
    why: Text::new(
        "There is no DeepSpeed engine before training starts, so the HF Trainer creates one for inference only. The Trainer then exits with `ZeRO inference only makes sense with ZeRO Stage 3 - please adjust your config`.",
        "训练开始之前还没有 DeepSpeed engine，HF Trainer 会为推理单独建一个，然后报错退出：`ZeRO inference only makes sense with ZeRO Stage 3 - please adjust your config`。",
    ),
    help: Text::new(
        "set `eval_on_start=True` to evaluate inside `train`, or evaluate after training",
        "设置 `eval_on_start=True`，在 `train` 里先评估一次；或在训练之后评估",
    ),
};

static KEPT: Wording = Wording {
    message: Text::new(
        "`{call}` before `train` creates a DeepSpeed engine that cannot train",
        "`train` 之前的 `{call}` 会创建一个不能用于训练的 DeepSpeed engine",
    ),
    why: Text::new(
        "There is no DeepSpeed engine before training starts, so the HF Trainer creates one for inference, without an optimizer. `train` then reuses this engine, and the run exits with `'NoneType' object has no attribute 'backward'` in the first step.",
        "训练开始之前还没有 DeepSpeed engine，HF Trainer 会为推理建一个不带优化器的 engine。之后 `train` 直接沿用它，第一步就会报错退出：`'NoneType' object has no attribute 'backward'`。",
    ),
    help: Text::new(
        "set `eval_on_start=True` to evaluate inside `train`, or evaluate after training",
        "设置 `eval_on_start=True`，在 `train` 里先评估一次；或在训练之后评估",
    ),
};

/// Trainers that evaluate as the HF Trainer does.
const TRAINERS: [&str; 3] = ["Trainer", "Seq2SeqTrainer", "SFTTrainer"];

/// The first evaluation that is sure to come before training.
pub(super) fn early_evaluation(script: &PythonScript) -> Option<&Call> {
    let mut trainers = script.calls.iter().filter(|call| TRAINERS.contains(&call.name()));
    let made = trainers.next().filter(|_| trainers.next().is_none())?;
    let trainer = made.bound_to.as_deref()?;
    let on_it = |call: &&Call| call.object() == trainer && call.follows(made);
    let evaluation =
        script.calls.iter().filter(on_it).find(|call| {
            matches!(call.name(), "evaluate" | "predict") && call.questions.is_empty()
        })?;
    let trains = |call: &&Call| call.name() == "train" && on_it(call);
    let trains_first = script.calls.iter().filter(trains).any(|call| evaluation.follows(call));
    let trains_later = script.calls.iter().filter(trains).any(|call| call.follows(evaluation));
    // What is handed to somebody else may be trained there.
    let is_lent = |call: &Call| call.argument_name() == Some(trainer) && evaluation.follows(call);
    (trains_later && !trains_first && !script.calls.iter().any(is_lent)).then_some(evaluation)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(stage) = training.stage() else { continue };
        // Without arguments of the Trainer the config is not the Trainer's.
        let is_of_trainer = training.script.training_arguments().next().is_some();
        let Some(call) = early_evaluation(training.script).filter(|_| is_of_trainer) else {
            continue;
        };
        let wording = match stage {
            // The number of steps is noticed first.
            3 if waits_for_steps(job, &training) => continue,
            3 => &KEPT,
            _ => &REFUSED,
        };
        let diagnostic = Diagnostic::new(&RULE, wording, "", call.span)
            .with("call", call.callee.as_str())
            .with("stage", usize::from(stage));
        found.at(&training.place(call.span), diagnostic);
    }
}
