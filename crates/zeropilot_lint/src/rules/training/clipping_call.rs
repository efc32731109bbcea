use num_traits::ToPrimitive as _;
use zeropilot_config::python::PyValue;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::report::Report;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Call, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O09",
    name: "clipping-call",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new("a gradient clipping call has no effect", "裁剪梯度的调用不生效"),
    wordings: &[&ACCELERATE, &TORCH],
    sources: &[
        "huggingface/accelerate#3807",
        "huggingface/accelerate#2791",
        "deepspeedai/DeepSpeed#7220",
    ],
    examples: &[
        Example::job("accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json t.py").files(&[
            ("t.py", "accelerator = Accelerator()\naccelerator.backward(loss)\naccelerator.clip_grad_norm_(model.parameters(), 0.5)\n"),
            ("ds.json", ACCELERATED),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.backward(loss)\ntorch.nn.utils.clip_grad_norm_(engine.parameters(), max_norm=0.5)\nengine.step()\n"),
            ("ds.json", BARE),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)\nengine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config='ds.json')\nengine.backward(loss)\ntorch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)\nengine.step()\n"),
            ("ds.json", r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#),
        ]),
    ],
    good: &[
        Example::job("accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file ds.json t.py").files(&[
            ("t.py", "accelerator = Accelerator()\naccelerator.backward(loss)\naccelerator.clip_grad_norm_(model.parameters(), 1.0)\n"),
            ("ds.json", ACCELERATED),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.backward(loss)\ntorch.nn.utils.clip_grad_norm_(other.parameters(), max_norm=0.5)\nengine.step()\n"),
            ("ds.json", BARE),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.backward(loss)\ntorch.nn.utils.clip_grad_norm_(engine.parameters(), max_norm=0.5)\nengine.step()\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}"#),
        ]),
    ],
    is_no_op: false,
};

const ACCELERATED: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;

const BARE: &str = r#"{"train_batch_size": 8, "gradient_clipping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#;

static ACCELERATE: Wording = Wording {
    message: Text::new(
        "`{call}` does not clip gradients at {asked}: DeepSpeed's `gradient_clipping` is {clipping}",
        "`{call}` 不会按 {asked} 裁剪：DeepSpeed 的 `gradient_clipping` 是 {clipping}",
    ),
    why: Text::new(
        "Under DeepSpeed, `{call}` only returns the gradient norm of the last step. DeepSpeed clips gradients to `gradient_clipping` in its own step; 0 turns clipping off.",
        "在 DeepSpeed 下，`{call}` 只返回上一步的梯度范数。DeepSpeed 在自己的 step 里按 `gradient_clipping` 裁剪梯度，0 表示不裁剪。",
    ),
    help: Text::new(
        "set `\"gradient_clipping\": {asked}` in the config",
        "在配置里写 `\"gradient_clipping\": {asked}`",
    ),
};

static TORCH: Wording = Wording {
    message: Text::new(
        "`{call}` finds no gradients to clip at {asked}: DeepSpeed's `gradient_clipping` is {clipping}",
        "`{call}` 找不到梯度，不会按 {asked} 裁剪：DeepSpeed 的 `gradient_clipping` 是 {clipping}",
    ),
    why: Text::new(
        "With ZeRO, DeepSpeed moves gradients out of the parameters during `backward`, so PyTorch finds none. DeepSpeed clips them to `gradient_clipping` in its own step; 0 turns clipping off.",
        "开启 ZeRO 后，DeepSpeed 在 `backward` 里就把梯度从参数上取走了，PyTorch 找不到梯度。DeepSpeed 在自己的 step 里按 `gradient_clipping` 裁剪梯度，0 表示不裁剪。",
    ),
    help: Text::new(
        "set `\"gradient_clipping\": {asked}` in the config and remove `{call}`",
        "在配置里写 `\"gradient_clipping\": {asked}`，去掉 `{call}`",
    ),
};

/// Where the engine clips.
fn clipping(report: &Report) -> Option<f64> {
    match report.values()?.keys.table().get("gradient_clipping")? {
        PyValue::Float(limit) => Some(*limit),
        PyValue::Int(limit) => limit.to_f64(),
        _ => None,
    }
}

/// Whether the accelerator of a script is sure to run DeepSpeed with the config that is known.
pub(crate) fn accelerates(training: &Training<'_>) -> bool {
    training.launch.by_accelerate || training.script.calls("DeepSpeedPlugin")
}

/// Whether a script looks at who trains before it goes there.
pub(super) fn asks_for_deepspeed(call: &Call) -> bool {
    let words = ["deepspeed", "distributed_type"];
    call.questions.iter().any(|asked| words.iter().any(|word| asked.to_lowercase().contains(word)))
}

fn wording(training: &Training<'_>, call: &Call) -> Option<&'static Wording> {
    let script = training.script;
    if Some(call.object()) == script.accelerator() {
        return (accelerates(training) && !asks_for_deepspeed(call)).then_some(&ACCELERATE);
    }
    let (made, engine) = script.engine()?;
    let mut parameters =
        vec![format!("{engine}.parameters"), format!("{engine}.module.parameters")];
    // The engine keeps the parameters of the model that it is handed.
    parameters.extend(made.handed(1, "model").map(|model| format!("{model}.parameters")));
    let is_own = match call.argument(0, "parameters") {
        Some((Value::Call(callee), _)) => parameters.contains(callee),
        _ => false,
    };
    let is_torch = matches!(call.object(), "torch.nn.utils" | "nn.utils" | "utils" | "");
    let takes_gradients = match training.stage()? {
        0 => false,
        // Before the boundary of accumulation, stage 1 leaves gradients where they are.
        1 => training.accumulation() == Some(1),
        _ => true,
    };
    (is_own && is_torch && script.is_on_engine(call) && takes_gradients).then_some(&TORCH)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some(clipping) = training.config.and_then(clipping) else { continue };
        let calls = training.script.calls.iter();
        for call in calls.filter(|call| call.name() == "clip_grad_norm_") {
            let Some((Value::Literal(asked), _)) = call.argument(1, "max_norm") else { continue };
            let differs = asked.parse::<f64>().is_ok_and(|limit| limit != clipping);
            if let Some(wording) = wording(&training, call).filter(|_| differs) {
                let diagnostic = Diagnostic::new(&RULE, wording, "", call.span)
                    .with("call", call.callee.as_str())
                    .with("asked", asked.as_str())
                    .with("clipping", format!("{clipping:?}"));
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
