use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O02",
    name: "optimizer-of-the-script",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new("the config replaces the script's optimizer", "配置会替换脚本指定的优化器"),
    wordings: &[&SECTION, &OFFLOAD],
    sources: &["huggingface/accelerate#2169", "deepspeedai/DeepSpeed#6666", "huggingface/transformers#34893"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(adafactor),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(paged),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(adafactor),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "zero_force_ds_cpu_optimizer": false}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(paged),
    ],
    is_no_op: false,
};

static SECTION: Wording = Wording {
    message: Text::new(
        "`optim` `{wanted}` has no effect: the config uses `{name}`",
        "脚本的 `optim` `{wanted}` 不生效：配置里用的是 `{name}`",
    ),
    why: Text::new(
        "An `optimizer` section in the config silently replaces the HF Trainer's optimizer.",
        "配置里只要有 `optimizer` 配置段，就会替换 HF Trainer 的优化器，而且没有任何提示。",
    ),
    help: Text::new(
        "remove the `optimizer` section to use the script's optimizer",
        "删掉 `optimizer` 配置段，就会用脚本里的优化器",
    ),
};

static OFFLOAD: Wording = Wording {
    message: Text::new(
        "with optimizer offload, `optim` `{wanted}` becomes DeepSpeed's CPU Adam",
        "启用优化器卸载时，`optim` `{wanted}` 会换成 DeepSpeed 的 CPU Adam",
    ),
    why: Text::new(
        "With `offload_optimizer`, accelerate silently replaces every optimizer it does not support with CPU Adam. Training then uses Adam with fp32 states, not 8-bit states or another algorithm.",
        "开启 `offload_optimizer` 后，accelerate 会把它不支持的优化器一律换成 fp32 状态的 CPU Adam：既没有 8 位状态，也不是原来的算法，而且没有提示。",
    ),
    help: Text::new(
        "use `adamw_torch`, which matches the optimizer that runs; or remove `offload_optimizer`; or set `\"zero_force_ds_cpu_optimizer\": false` to keep the script's optimizer",
        "改用 `adamw_torch`，与实际一致；或不用 `offload_optimizer`；或写 `\"zero_force_ds_cpu_optimizer\": false` 保留脚本的优化器",
    ),
};

fn adafactor() -> Script {
    Script { optim: Some("adafactor".to_owned()), ..Script::default() }
}

fn paged() -> Script {
    Script { optim: Some("paged_adamw_8bit".to_owned()), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(wanted) = &subject.script.optim else { return };
    let is_plain_adam = wanted.starts_with("adamw_torch")
        || matches!(wanted.as_str(), "adamw_hf" | "adamw_apex_fused" | "adamw_anyprecision");
    if subject.front_end != FrontEnd::HfTrainer || is_plain_adam {
        return;
    }
    if let Some((name, node)) = subject.optimizer_type() {
        found.push(
            at_value(&RULE, &SECTION, &["optimizer", "type"], node)
                .with("wanted", wanted.as_str())
                .with("name", name),
        );
        return;
    }
    let forced = subject.root.get("zero_force_ds_cpu_optimizer");
    let is_forced = forced.is_none_or(|node| zeropilot_config::python::is_true(&node.value));
    let device = subject.device("offload_optimizer");
    // accelerate knows Adagrad and 32-bit Lion by their CPU names.
    let is_known = wanted.starts_with("adagrad") || wanted.starts_with("lion_32");
    let is_offloaded = matches!(device, Some(Device::Cpu | Device::Nvme));
    let path = [ZERO, "offload_optimizer"];
    if let Some((_, member)) = subject.member(&path)
        && subject.root.get("optimizer").is_none()
        && is_offloaded
        && is_forced
        && !is_known
    {
        found.push(at_member(&RULE, &OFFLOAD, &path, member).with("wanted", wanted.as_str()));
    }
}
