use zeropilot_config::front_end::FrontEnd;

use super::scheduler_parameters::parameters;
use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O10",
    name: "scheduler-of-the-script",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new(
        "the config replaces the script's scheduler",
        "配置会替换脚本里的调度器",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/community-events#98"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_num_steps": "auto", "warmup_type": "linear"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(cosine),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(cosine),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": "auto", "warmup_num_steps": "auto", "warmup_type": "linear"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(cosine),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`lr_scheduler_type` `{wanted}` has no effect: the config's `{name}` {shape}",
        "脚本的 `lr_scheduler_type` `{wanted}` 不生效：配置里的 `{name}` {shape}",
    ),
    why: Text::new(
        "A `scheduler` section in the config silently replaces the HF Trainer's scheduler.",
        "配置里只要有 `scheduler` 配置段，就会替换 HF Trainer 的调度器，而且没有任何提示。",
    ),
    help: Text::new(
        "remove the `scheduler` section to use the Trainer's scheduler, or choose a scheduler with the curve you want",
        "删掉 `scheduler` 配置段就会使用 Trainer 的调度器；或换成曲线合适的调度器",
    ),
};

fn cosine() -> Script {
    Script { lr_scheduler_type: Some("cosine".to_owned()), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(wanted) = &subject.script.lr_scheduler_type else { return };
    if subject.front_end != FrontEnd::HfTrainer {
        return;
    }
    let Some((name, _)) = parameters(subject) else { return };
    let (same, shape) = match name {
        "WarmupLR" => (
            &["constant_with_warmup", "constant"][..],
            Text::new("stays at its peak after the warmup", "在 warmup 之后保持峰值不变"),
        ),
        "WarmupDecayLR" => (&["linear"][..], Text::new("decays linearly", "线性衰减")),
        "WarmupCosineLR" => {
            (&["cosine"][..], Text::new("decays along a cosine curve", "按余弦曲线衰减"))
        }
        _ => return,
    };
    if same.contains(&wanted.as_str()) {
        return;
    }
    if let Some(node) = subject.node(["scheduler", "type"]) {
        found.push(
            at_value(&RULE, &WORDING, &["scheduler", "type"], node)
                .with("wanted", wanted.as_str())
                .with("name", name)
                .with("shape", shape),
        );
    }
}
