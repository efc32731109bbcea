use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript};
use zeropilot_text::Text;

use super::STAGE_3;

const COMMAND: &str = "deepspeed --num_gpus 2 t.py --deepspeed_config ds.json";

pub(crate) static RULE: Rule = Rule {
    code: "Z12",
    name: "state-dict-into-shards",
    group: Group::Construction,
    severity: Severity::Error,
    summary: Text::new(
        "`load_state_dict` into a model created under `zero.Init`",
        "对 `zero.Init` 下创建的模型调用 `load_state_dict`",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/zero/partition_parameters.py, Init"],
    examples: &[Example::job(COMMAND).files(&[
        ("t.py", "with deepspeed.zero.Init():\n    model = Model()\nmodel.load_state_dict(torch.load('w.pt'))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
        ("ds.json", STAGE_3),
    ])],
    good: &[
        Example::job(COMMAND).files(&[
            ("t.py", "with deepspeed.zero.Init():\n    model = Model()\nwith deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0):\n    model.load_state_dict(torch.load('w.pt'))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job(COMMAND).files(&[
            ("t.py", "model = Model()\nmodel.load_state_dict(torch.load('w.pt'))\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` fails: the weights of a model created under `zero.Init` are empty on every rank",
        "`{call}` 会失败：`zero.Init` 下创建的模型，每个 rank 上的权重都是空的",
    ),
    why: Text::new(
        "`zero.Init` partitions each weight on creation and leaves a tensor of size 0. PyTorch compares the sizes and raises `RuntimeError: Error(s) in loading state_dict … size mismatch`.",
        "`zero.Init` 在创建权重时就切分，只留下大小为 0 的张量。PyTorch 比较大小后抛出 `RuntimeError: Error(s) in loading state_dict … size mismatch`。",
    ),
    help: Text::new(
        "load the state dict inside `deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0)`, or create the model without `zero.Init`",
        "在 `deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0)` 里加载，或创建模型时不用 `zero.Init`",
    ),
};

/// Whether a model is made under `zero.Init`, and nothing else is bound to its name.
fn is_partitioned(script: &PythonScript, call: &Call) -> bool {
    let mut bound = script.assignments.iter().filter(|set| set.target == call.object());
    let Some(made) = bound.next() else { return false };
    bound.next().is_none()
        && made.scope == call.scope
        && made.span.end <= call.span.start
        && made.value.contains('(')
        && script.is_within(made.span, "zero.Init")
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        let script = training.script;
        let is_turned_off = script
            .calls
            .iter()
            .any(|call| call.callee.ends_with("zero.Init") && call.keyword("enabled").is_some());
        for call in script.calls.iter().filter(|call| call.name() == "load_state_dict") {
            if !is_turned_off
                && is_partitioned(script, call)
                && !script.is_within(call.span, "GatheredParameters")
            {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
                let diagnostic = diagnostic.with("call", call.callee.as_str());
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
