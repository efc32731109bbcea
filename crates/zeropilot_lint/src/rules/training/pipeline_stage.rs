use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G23",
    name: "pipeline-needs-stage-1",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new(
        "pipeline parallelism with ZeRO stage 2 or 3",
        "流水线并行搭配 ZeRO stage 2 或 3",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "net = PipelineModule(layers=layers, loss_fn=loss, num_stages=2)\nengine, _, _, _ = deepspeed.initialize(args=args, model=net)\nengine.train_batch()\n"), ("ds.json", super::STAGE_2)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "net = PipelineModule(layers=layers, loss_fn=loss, num_stages=2)\nengine, _, _, _ = deepspeed.initialize(args=args, model=net)\nengine.train_batch()\n"), ("ds.json", super::STAGE_1)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`PipelineModule` does not work with ZeRO stage {stage}",
        "`PipelineModule` 不能与 ZeRO stage {stage} 一起使用",
    ),
    why: Text::new(
        "A pipeline reduces gradients after its last micro-batch, so DeepSpeed cannot partition them earlier. It exits with `ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism`.",
        "流水线在最后一个 micro batch 之后才规约梯度，DeepSpeed 无法提前切分，会报错退出：`ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism`。",
    ),
    help: Text::new(
        "set `zero_optimization.stage` to 1 or 0",
        "把 `zero_optimization.stage` 设为 1 或 0",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(stage) = training.stage().filter(|stage| *stage >= 2) else { continue };
        let mut calls = training.script.calls.iter();
        let pipeline = calls.find(|call| call.name() == "PipelineModule");
        if let Some(call) = pipeline.filter(|call| call.questions.is_empty()) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
            found.at(&training.place(call.span), diagnostic.with("stage", usize::from(stage)));
        }
    }
}
