use zeropilot_config::front_end::Arguments;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::front_end::TrainerArguments;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P03",
    name: "precision-missing-at-load",
    group: Group::Precision,
    severity: Severity::Warning,
    summary: Text::new(
        "stage 3 without the precision section that the script needs",
        "stage 3 的配置缺少脚本需要的精度配置段",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(bf16),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(bf16),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(bf16),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the script trains in {wanted}, but the config has no `{wanted}` section when stage 3 loads the model",
        "脚本用 {wanted} 训练，但 stage 3 加载模型时配置里还没有 `{wanted}` 配置段",
    ),
    why: Text::new(
        "Stage 3 partitions parameters while it loads them, in the type that the config sets at that time: fp32. The section that accelerate adds afterwards does not convert them.",
        "stage 3 在加载时就切分参数，类型以当时的配置为准，也就是 fp32。accelerate 之后补上的配置段不会再转换它们。",
    ),
    help: Text::new(
        "add `\"{wanted}\": {{\"enabled\": \"auto\"}}` to the config",
        "在配置里加上 `\"{wanted}\": {{\"enabled\": \"auto\"}}`",
    ),
};

fn bf16() -> Arguments {
    let trainer =
        TrainerArguments { bf16: Some(true), fp16: Some(false), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.front_end != FrontEnd::HfTrainer || subject.stage() != Some(3) {
        return;
    }
    let trainer = &subject.arguments.trainer;
    let wanted = match (trainer.bf16, trainer.fp16) {
        (Some(true), _) => "bf16",
        (_, Some(true)) => "fp16",
        _ => return,
    };
    let has = |section| subject.root.get(section).is_some();
    if has("bf16") || has("bfloat16") || has("fp16") {
        return;
    }
    let Some((_, zero)) = subject.member(&[ZERO]) else { return };
    let title = Text::new(
        "add `\"{wanted}\": {{\"enabled\": \"auto\"}}` to the config",
        "在配置里加上 `\"{wanted}\": {{\"enabled\": \"auto\"}}`",
    );
    let section = [(wanted, "{\"enabled\": \"auto\"}")];
    let fix =
        insert_members(subject, subject.root, &section).map(|edit| Fix::guess(title, vec![edit]));
    found.push(at_member(&RULE, &WORDING, &[ZERO], zero).with("wanted", wanted).fix(fix));
}
