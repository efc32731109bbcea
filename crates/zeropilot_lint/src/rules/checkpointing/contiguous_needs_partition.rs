use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "C05",
    name: "contiguous-needs-partition",
    group: Group::Checkpointing,
    severity: Severity::Note,
    summary: Text::new(
        "`contiguous_memory_optimization` without partitioned activations",
        "用了 `contiguous_memory_optimization`，但没有切分激活值",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "activation_checkpointing": {"contiguous_memory_optimization": true}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true, "contiguous_memory_optimization": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`contiguous_memory_optimization` needs `partition_activations`, which is off",
        "`contiguous_memory_optimization` 需要 `partition_activations`，而后者没有开启",
    ),
    why: Text::new(
        "DeepSpeed lays out the buffers for partitioned activations. Without partitioned activations, configuring gradient checkpointing fails, unless the model code passes `partition_activations` itself.",
        "DeepSpeed 按切分后的激活值分配缓冲区。除非模型代码自己传入 `partition_activations`，否则配置梯度检查点时会报错。",
    ),
    help: Text::new(
        "turn on `partition_activations`, or turn off `contiguous_memory_optimization`",
        "开启 `partition_activations`，或关掉 `contiguous_memory_optimization`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // Under the HF Trainer nobody reads the section at all, and that is said once.
    if subject.front_end == FrontEnd::HfTrainer {
        return;
    }
    let path = ["activation_checkpointing", "contiguous_memory_optimization"];
    let Some((_, member)) = subject.member(&path) else { return };
    let is_on = member.value.value == Value::Bool(true);
    if is_on && !subject.is_on(["activation_checkpointing", "partition_activations"]) {
        found.push(at_member(&RULE, &WORDING, &path, member));
    }
}
