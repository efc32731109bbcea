use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Value;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "C01",
    name: "section-not-read-by-models",
    group: Group::Checkpointing,
    severity: Severity::Warning,
    summary: Text::new(
        "`activation_checkpointing` under the HF Trainer",
        "HF Trainer 下写了 `activation_checkpointing`",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#5704", "huggingface/transformers#22099", "huggingface/transformers#29648"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}, "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}, "activation_checkpointing": {"partition_activations": false}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new(
            r#"{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true}}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "transformers models do not use {idle} in `activation_checkpointing`",
        "`activation_checkpointing` 里的 {idle} 对 transformers 的模型不生效",
    ),
    why: Text::new(
        "`activation_checkpointing` configures DeepSpeed's own gradient checkpointing function, which a model must call. Models from the transformers library call PyTorch's function instead.",
        "`activation_checkpointing` 配置的是 DeepSpeed 自带的梯度检查点函数，要由模型代码主动调用；transformers 调用的是 PyTorch 的函数。",
    ),
    help: Text::new(
        "pass `gradient_checkpointing` to the Trainer, and remove `activation_checkpointing` unless your own model code calls `deepspeed.checkpointing`",
        "在 Trainer 里开启 `gradient_checkpointing`；除非你的模型代码自己调用 `deepspeed.checkpointing`，否则删掉 `activation_checkpointing`",
    ),
};

const SWITCHES: [&str; 3] =
    ["partition_activations", "cpu_checkpointing", "contiguous_memory_optimization"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.front_end != FrontEnd::HfTrainer {
        return;
    }
    let members = subject.members_at(["activation_checkpointing"]).iter();
    let on: Vec<String> = members
        .filter(|member| SWITCHES.contains(&member.key.as_str()))
        .filter(|member| member.value.value == Value::Bool(true))
        .map(|member| member.key.clone())
        .collect();
    if on.is_empty() {
        return;
    }
    if let Some((_, member)) = subject.member(&["activation_checkpointing"]) {
        found.push(
            at_member(&RULE, &WORDING, &["activation_checkpointing"], member)
                .with("idle", Argument::Words(on)),
        );
    }
}
