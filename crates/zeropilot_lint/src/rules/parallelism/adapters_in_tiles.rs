use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, PythonScript, Value};
use zeropilot_text::Text;

use super::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "G26",
    name: "adapters-in-tiles",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new(
        "`TiledMLP` does not get the adapters of the layers that it tiles",
        "`TiledMLP` 漏掉了被分块的层上的 LoRA 适配器",
    ),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/sequence_parallel/ulysses_sp.py, TiledMLP",
        "deepspeedai/DeepSpeed deepspeed/runtime/zero/stage3.py, __add_grad_to_ipg_bucket",
    ],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py")
        .files(&[("t.py", ALL_LINEAR), ("ds.json", STAGE_3)])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", ATTENTION), ("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py")
            .files(&[("t.py", LISTED), ("ds.json", STAGE_3)]),
    ],
    is_no_op: false,
};

const ALL_LINEAR: &str = "def tiled(self, x):\n    weights = [self.down_proj.weight, self.gate_proj.weight, self.up_proj.weight]\n    return TiledMLP.apply(forward, self, x, 2, weights)\nmodel = get_peft_model(model, LoraConfig(r=4, target_modules='all-linear'))\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n";
const ATTENTION: &str = "def tiled(self, x):\n    weights = [self.down_proj.weight, self.gate_proj.weight, self.up_proj.weight]\n    return TiledMLP.apply(forward, self, x, 2, weights)\nmodel = get_peft_model(model, LoraConfig(r=4, target_modules=['q_proj', 'v_proj']))\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n";
const LISTED: &str = "def tiled(self, x):\n    return TiledMLP.apply(forward, self, x, 2, list(self.parameters()))\nmodel = get_peft_model(model, LoraConfig(r=4, target_modules='all-linear'))\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n";

static WORDING: Wording = Wording {
    message: Text::new(
        "the first backward pass fails: `TiledMLP` does not get the adapters of `{module}`",
        "第一次反向就会失败：`TiledMLP` 没有收到 `{module}` 上的适配器",
    ),
    why: Text::new(
        "Each tile produces a complete gradient for weights outside `compute_params`, but ZeRO stages 2 and 3 accept a gradient only once. The run exits with an `AssertionError` (stage 2: \"Gradient computed twice for this partition\").",
        "不在 `compute_params` 里的权重，每个分块都会产生一次完整的梯度，而 ZeRO stage 2、3 只接受一次。训练会以 `AssertionError` 退出（stage 2：`Gradient computed twice for this partition`）。",
    ),
    help: Text::new(
        "pass `list(self.parameters())` as `compute_params`, or put adapters on attention only",
        "把 `list(self.parameters())` 作为 `compute_params` 传入，或只在注意力层上加适配器",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let has_adapters = script.calls("get_peft_model");
        if !has_adapters || training.stage().is_none_or(|stage| stage < 2) {
            continue;
        }
        // A list that names parameters of adapters is complete.
        let names_adapters = (job.files)(training.name).is_none_or(|text| text.contains("lora_A"));
        let Some(module) = adapted(script).filter(|_| !names_adapters) else { continue };
        for call in script.calls.iter().filter(|call| lists_weights(call, script)) {
            let place = training.place(call.span);
            let told = Diagnostic::new(&RULE, &WORDING, "", place.span);
            found.at(&place, told.with("module", module));
        }
    }
}

/// A layer of the feed-forward part that gets an adapter, as the script names it.
fn adapted(script: &PythonScript) -> Option<&str> {
    let mut calls = script.calls.iter().filter(|call| call.name() == "LoraConfig");
    calls.find_map(|call| match call.keyword("target_modules")?.0 {
        Value::List(names) => names.iter().find_map(tiled),
        one => tiled(one),
    })
}

fn tiled(module: &Value) -> Option<&str> {
    const TILED: [&str; 4] = ["gate_proj", "up_proj", "down_proj", "all-linear"];
    match module {
        Value::Literal(name) => TILED.contains(&name.as_str()).then_some(name),
        _ => None,
    }
}

/// Whether a call tiles a layer whose weights it lists one by one.
fn lists_weights(call: &Call, script: &PythonScript) -> bool {
    let is_list = |value: &Value| matches!(value, Value::List(_));
    let is_tiling = call.callee.ends_with("TiledMLP.apply");
    is_tiling
        && call.positional.get(4).is_some_and(|(value, _)| {
            let bound = call.handed(4, "compute_params").and_then(|name| script.bound(name));
            is_list(value) || bound.is_some_and(is_list)
        })
}
