use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::{STAGE_1, STAGE_2, asks_for_the_stage};

pub(crate) static RULE: Rule = Rule {
    code: "H05",
    name: "no-sync",
    group: Group::Hangs,
    severity: Severity::Error,
    summary: Text::new(
        "`no_sync` with partitioned gradients",
        "梯度被切分时调用 `no_sync`",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#6793",
        "huggingface/accelerate#3481",
        "huggingface/transformers#35157",
        "modelscope/ms-swift#4230",
    ],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py").files(&[
        ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nfor batch in loader:\n    with engine.no_sync():\n        engine.backward(engine(batch))\n"),
        ("ds.json", STAGE_2),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nfor batch in loader:\n    with engine.no_sync():\n        engine.backward(engine(batch))\n"),
            ("ds.json", STAGE_1),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nfor batch in loader:\n    with nullcontext() if zero_stage >= 2 else engine.no_sync():\n        engine.backward(engine(batch))\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` does not work with ZeRO stage {stage}",
        "`{call}` 不能用于 ZeRO stage {stage}",
    ),
    why: Text::new(
        "From stage 2 on, DeepSpeed reduces gradients during the backward pass, and each rank keeps only its shard. DeepSpeed exits with `no_sync context manager is incompatible with gradient partitioning logic`; versions before 0.16 do not have `no_sync`.",
        "从 stage 2 起，DeepSpeed 在反向过程中就规约梯度，每个 rank 只保留自己的分片。DeepSpeed 会报错退出：`no_sync context manager is incompatible with gradient partitioning logic`；0.16 之前的版本没有 `no_sync`。",
    ),
    help: Text::new(
        "remove `{call}`, because DeepSpeed itself accumulates gradients over `gradient_accumulation_steps`; or use stage 1",
        "去掉 `{call}`：DeepSpeed 会按 `gradient_accumulation_steps` 自己累积梯度；或改用 stage 1",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(stage) = training.stage().filter(|stage| *stage >= 2) else { continue };
        let Some((_, engine)) = training.script.engine() else { continue };
        let name = format!("{engine}.no_sync");
        let calls = training.script.calls.iter().filter(|call| call.callee == name);
        for call in calls.filter(|call| training.script.is_on_engine(call)) {
            if !asks_for_the_stage(call) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", name.as_str())
                    .with("stage", usize::from(stage));
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
