use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript};
use zeropilot_text::Text;

use super::module_on_some_ranks::{forwards, is_of_batch, is_seen_to, layers};
use super::{STAGE_2, STAGE_3};

pub(crate) static RULE: Rule = Rule {
    code: "H15",
    name: "experts-on-some-ranks",
    group: Group::Hangs,
    severity: Severity::Warning,
    summary: Text::new(
        "MoE experts run only on ranks that route tokens to them",
        "MoE 的专家只在分到 token 的 rank 上运行",
    ),
    wordings: &[&STAGE_THREE, &BELOW],
    sources: &[
        "deepspeedai/DeepSpeed#7461",
        "deepspeedai/DeepSpeed deepspeed/utils/z3_leaf_module.py, set_z3_leaf_modules",
    ],
    examples: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", LOOP_OVER_EXPERTS),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", LOOP_OVER_EXPERTS),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Moe(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))\n    def forward(self, x, route):\n        for i, expert in enumerate(self.experts):\n            rows = (route == i).nonzero()\n            if rows.numel() == 0:\n                continue\n            x[rows] = expert(x[rows])\n        return x\nmodel = build()\nset_z3_leaf_modules(model, [Moe])\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "class Moe(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))\n    def forward(self, x, route):\n        for i, expert in enumerate(self.experts):\n            x = x + expert(x) * (route == i)\n        return x\nengine, _, _, _ = deepspeed.initialize(model=build(), config='ds.json')\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

const LOOP_OVER_EXPERTS: &str = "class Moe(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))\n    def forward(self, x, route):\n        for i, expert in enumerate(self.experts):\n            rows = (route == i).nonzero()\n            if rows.numel() == 0:\n                continue\n            x[rows] = expert(x[rows])\n        return x\nengine, _, _, _ = deepspeed.initialize(model=build(), config='ds.json')\n";

static STAGE_THREE: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if tokens are routed to it: ZeRO stage 3 hangs or mixes expert weights",
        "`{call}` 只在分到 token 时运行：ZeRO stage 3 下会卡住，或者混用不同专家的权重",
    ),
    why: Text::new(
        "A rank that routes no token to an expert skips it, so ranks run all-gathers for different experts. They hang or, if every rank runs the same number of experts of equal size, silently mix the weights of different experts.",
        "某个 rank 没有 token 分到一个专家，就会跳过它，各 rank 于是为不同的专家执行 all-gather。训练要么卡住；要么在专家大小和个数都相同时，混用不同专家的权重计算，而且不报错。",
    ),
    help: Text::new(
        "call `deepspeed.utils.set_z3_leaf_modules(model, [{class}])` before `deepspeed.initialize` to gather all experts of the layer at once",
        "在 `deepspeed.initialize` 之前调用 `deepspeed.utils.set_z3_leaf_modules(model, [{class}])`，一次聚合整层的专家",
    ),
};

static BELOW: Wording = Wording {
    message: Text::new(
        "`{call}` runs only if tokens are routed to it: ZeRO adds up gradients of different experts",
        "`{call}` 只在分到 token 时运行：ZeRO 会把不同专家的梯度相加",
    ),
    why: Text::new(
        "In stages 1 and 2, DeepSpeed adds up all ranks' buckets, and later gradients take the place of an expert that did not run. Experts of equal size silently get each other's gradients; with buckets of different sizes, the run fails.",
        "在 stage 1 和 2 下，DeepSpeed 把各 rank 的通信桶相加，而没有运行的专家在通信桶里的位置会被后面的梯度占用。大小相同的专家会得到彼此的梯度，而且不报错；通信桶的大小不同则会报错退出。",
    ),
    help: Text::new(
        "call `expert(x[rows])` for every expert in each step, even if `rows` is empty, and add the output to the result. Each rank then has every expert's gradient",
        "每一步对每个专家都调用 `expert(x[rows])`（`rows` 为空也要调用）并加上输出，让每个 rank 都有每个专家的梯度",
    ),
};

/// Names by which a method runs the items of a list of layers.
fn items<'s>(script: &'s PythonScript, scope: usize, list: &str) -> Vec<&'s str> {
    let over = script.loops.iter().filter(|it| {
        it.scope == scope && it.over.trim_start_matches("enumerate(").trim_end_matches(')') == list
    });
    let mut names: Vec<&str> =
        over.filter_map(|it| it.targets.last()).map(String::as_str).collect();
    let item = format!("{list}[");
    let assigned = script.assignments.iter().filter(|it| it.scope == scope);
    names.extend(assigned.filter(|it| it.value.starts_with(&item)).map(|it| it.target.as_str()));
    names
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.launch.world != Some(1)) {
        let wording = match training.stage() {
            Some(3) => &STAGE_THREE,
            Some(1 | 2) => &BELOW,
            _ => continue,
        };
        if is_seen_to(&training) || has_leaf_modules(job, &training) {
            continue;
        }
        let script = training.script;
        for (function, class) in forwards(script) {
            let lists = layers(script, class).filter(|(_, made)| made.contains("ModuleList("));
            for (list, _) in lists {
                let names = items(script, function.scope, list);
                let runs = |call: &&Call| {
                    let by_index = call
                        .callee
                        .strip_prefix(list)
                        .is_some_and(|rest| rest.starts_with('[') && rest.ends_with(']'));
                    call.scope == function.scope
                        && (by_index || names.contains(&call.callee.as_str()))
                };
                let mut runs = script.calls.iter().filter(runs);
                let (Some(call), None) = (runs.next(), runs.next()) else { continue };
                if call.guards.iter().any(is_of_batch) {
                    let diagnostic = Diagnostic::new(&RULE, wording, "", call.span)
                        .with("call", call.callee.as_str())
                        .with("class", class);
                    found.at(&training.place(call.span), diagnostic);
                }
            }
        }
    }
}

/// Whether the config says which layers are gathered together.
fn has_leaf_modules(job: &JobView<'_>, training: &Training<'_>) -> bool {
    let text = training.config_text(job);
    text.is_none_or(|text| text.contains("leaf_module") || text.contains("module_granularity"))
}
