use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Call;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "Z11",
    name: "moe-layer-stage-3",
    group: Group::Construction,
    severity: Severity::Error,
    summary: Text::new(
        "DeepSpeed's MoE layer with ZeRO stage 3",
        "DeepSpeed 的 MoE 层搭配 ZeRO stage 3",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "layer = MoE(hidden_size=64, expert=expert, num_experts=4, ep_size=2)\nengine, _, _, _ = deepspeed.initialize(args=args, model=layer)\n"), ("ds.json", super::STAGE_3)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "layer = MoE(hidden_size=64, expert=expert, num_experts=4, ep_size=2)\nengine, _, _, _ = deepspeed.initialize(args=args, model=layer)\n"), ("ds.json", super::STAGE_2)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed's `MoE` layer does not work with ZeRO stage 3",
        "DeepSpeed 的 `MoE` 层不能与 ZeRO stage 3 一起使用",
    ),
    why: Text::new(
        "DeepSpeed places the experts of its `MoE` layer on separate groups of ranks, and stage 3 does not partition them. DeepSpeed exits with an `AssertionError` at startup.",
        "`MoE` 层的专家分布在单独的进程组里，stage 3 不会切分这些专家。DeepSpeed 启动时以 `AssertionError` 退出。",
    ),
    help: Text::new(
        "set `zero_optimization.stage` to 1 or 2, or use a model whose experts are ordinary layers",
        "把 `zero_optimization.stage` 设为 1 或 2，或换用专家是普通层的模型",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        let is_layer = |call: &&Call| {
            call.name() == "MoE"
                && ["num_experts", "ep_size"].iter().any(|it| call.keyword(it).is_some())
        };
        let layer = training.script.calls.iter().find(is_layer);
        if let Some(call) = layer.filter(|_| training.script.engine().is_some()) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
