use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Member;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::edit::insert_members;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::{Job, Script};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "S01",
    name: "no-consolidated-weights",
    group: Group::Saving,
    severity: Severity::Note,
    summary: Text::new("stage 3 does not gather the weights when it saves", "stage 3 保存时不聚合权重"),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers#25817", "huggingface/transformers#10789", "FlagOpen/FlagEmbedding#873"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(adapters),
    ],
    is_no_op: false,
};

fn adapters() -> Script {
    Script { trains_adapters: true, ..Script::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "the run saves no full model: `stage3_gather_16bit_weights_on_model_save` is not true",
        "不会保存完整的模型：`stage3_gather_16bit_weights_on_model_save` 没有设为 true",
    ),
    why: Text::new(
        "Unless `stage3_gather_16bit_weights_on_model_save` is true, the HF Trainer saves a partitioned checkpoint instead of the full weights and logs only one line. It still gathers PEFT adapters.",
        "没有打开 `stage3_gather_16bit_weights_on_model_save` 时，HF Trainer 只保存分片的 checkpoint，不保存完整权重，日志里只有一行提示。PEFT 的适配器仍会先聚合再保存。",
    ),
    help: Text::new(
        "set `stage3_gather_16bit_weights_on_model_save` to true, or convert the checkpoint with `zero_to_fp32.py`; PEFT adapters alone need neither",
        "把 `stage3_gather_16bit_weights_on_model_save` 设为 true，或者用 `zero_to_fp32.py` 转换 checkpoint；只保存 PEFT 适配器时两者都不需要",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let is_whole = subject.front_end == FrontEnd::HfTrainer && !subject.script.trains_adapters;
    if !is_whole || subject.stage() != Some(3) {
        return;
    }
    let job = subject.script.job.as_ref();
    // Where its files do not show a Trainer, or only predictions, nothing is known of a save.
    if job.is_some_and(|job| subject.is_reader_guessed || only_predicts(job)) {
        return;
    }
    let is_false = |member: &Member| member.value.value == Value::Bool(false);
    let gathers = match subject.zero_member("gather_16bit_weights_on_model_save") {
        None => subject.node([ZERO, "stage3_gather_fp16_weights_on_model_save"]).is_some(),
        Some(member) => !is_false(member),
    };
    let Some((_, zero)) = subject.member(&[ZERO]) else { return };
    if !gathers {
        let key = "stage3_gather_16bit_weights_on_model_save";
        let title = Text::new(
            "set `stage3_gather_16bit_weights_on_model_save` to true",
            "把 `stage3_gather_16bit_weights_on_model_save` 设为 true",
        );
        let edit = match subject.zero_member("gather_16bit_weights_on_model_save") {
            Some(member) => Some(Edit::new(member.value.span, "true")),
            None => insert_members(subject, &zero.value, &[(key, "true")]),
        };
        found.push(
            at_member(&RULE, &WORDING, &[ZERO], zero)
                .fix(edit.map(|edit| Fix::guess(title, vec![edit]))),
        );
    }
}

/// Whether a script makes predictions and neither trains nor saves a model.
fn only_predicts(job: &Job) -> bool {
    let has = |name: &str| job.calls.iter().flatten().any(|call| call == name);
    has("predict") && !["train", "save_model", "save_pretrained"].into_iter().any(has)
}
