use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::reading::{ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "Z08",
    name: "output-tied-by-mistake",
    group: Group::Construction,
    severity: Severity::Warning,
    summary: Text::new(
        "the checkpoint's output layer weight is lost",
        "checkpoint 里的输出矩阵会丢失",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(CONFIG).read_by(FrontEnd::HfTrainer).script(flan)],
    good: &[
        Example::new(CONFIG).read_by(FrontEnd::HfTrainer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(flan),
    ],
    is_no_op: false,
};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "under ZeRO stage 3, transformers ties the output layer to the embedding and loses the stored weight",
        "ZeRO stage 3 下，transformers 会把输出矩阵与词嵌入绑定，checkpoint 里的输出矩阵会丢失",
    ),
    why: Text::new(
        "The checkpoint stores `lm_head` separately from `shared`. To decide whether to tie the two, transformers compares them; partitioned parameters are empty and look equal, so they are tied.",
        "checkpoint 里的 `lm_head` 与 `shared` 是分开保存的。transformers 通过比较两者来判断是否绑定，而切分后的参数是空的，看起来相等，因此会被绑定。",
    ),
    help: Text::new(
        "use ZeRO stage 2 for this model, or load the model before you create the training arguments and copy `lm_head` yourself",
        "这个模型请用 ZeRO stage 2；或者在创建训练参数之前加载模型，并自行复制 `lm_head`",
    ),
};

fn flan() -> Script {
    Script { output_stored_apart: Some(true), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let is_stored_apart = subject.script.output_stored_apart == Some(true);
    if let Some((_, member)) = subject.member(&[ZERO, "stage"])
        && is_stored_apart
        && subject.stage() == Some(3)
        && subject.front_end == FrontEnd::HfTrainer
    {
        found.push(at_member(&RULE, &WORDING, &[ZERO, "stage"], member));
    }
}
