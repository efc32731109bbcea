use zeropilot_config::front_end::AccelerateArguments;
use zeropilot_config::front_end::Arguments;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::front_end::TrainerArguments;
use zeropilot_config::syntax::Node;

use super::{ACCUMULATION, MICRO, TRAIN};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::at_member;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B08",
    name: "accumulation-missing",
    group: Group::Batch,
    severity: Severity::Warning,
    summary: Text::new("the script sets gradient accumulation, but the config does not", "脚本设置了梯度累积，配置里却没写"),
    wordings: &[&WORDING, &TRAINER],
    sources: &[
        "huggingface/accelerate#3369",
        "huggingface/accelerate#1773",
        "huggingface/accelerate#3630",
    ],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(accumulating),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "gradient_clipping": 1.0}"#,
        )
        .read_by(FrontEnd::Accelerate)
        .arguments(accumulating),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(accumulating),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "accelerate accumulates 1 micro-batch, not {steps}: the config has no `gradient_accumulation_steps`",
        "accelerate 只累积 1 步，而不是 {steps} 步：配置里没有 `gradient_accumulation_steps`",
    ),
    why: Text::new(
        "accelerate fills in only keys that the config contains. For this missing key, it uses 1 instead of the script's number and logs a warning when it prepares the model.",
        "accelerate 只填配置里写了的键；缺少这个键时按 1 处理，并覆盖脚本里的步数，准备模型时只打印一行警告。",
    ),
    help: Text::new(
        "add `\"gradient_accumulation_steps\": \"auto\"`",
        "加上 `\"gradient_accumulation_steps\": \"auto\"`",
    ),
};

/// The Trainer counts micro-steps itself and hands the boundary to DeepSpeed, through accelerate since 1.8.
static TRAINER: Wording = Wording {
    message: Text::new(
        "the script accumulates gradients over {steps} steps, but the config has no `gradient_accumulation_steps`",
        "脚本要累积 {steps} 步，但配置里没有 `gradient_accumulation_steps`",
    ),
    why: Text::new(
        "With accelerate 1.8 or later, the HF Trainer sets the gradient accumulation boundary itself, and training is not affected. With an older accelerate, DeepSpeed updates the weights after every micro-batch.",
        "使用 accelerate 1.8 及以上版本时，HF Trainer 自己设定累积边界，训练结果不变。使用更旧的 accelerate 时，DeepSpeed 每个 micro batch 都会更新一次参数。",
    ),
    help: WORDING.help,
};

fn accumulating() -> Arguments {
    let trainer =
        TrainerArguments { gradient_accumulation_steps: Some(8), ..TrainerArguments::default() };
    let accelerate = AccelerateArguments {
        gradient_accumulation_steps: Some(8),
        ..AccelerateArguments::default()
    };
    Arguments { trainer, accelerate, ..Arguments::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let steps = match subject.front_end {
        FrontEnd::DeepSpeed => None,
        FrontEnd::HfTrainer => subject.arguments.trainer.gradient_accumulation_steps,
        FrontEnd::Accelerate => subject.arguments.accelerate.gradient_accumulation_steps,
    };
    let Some(steps) = steps.filter(|steps| *steps > 1) else { return };
    let has = |key| subject.root.get(key).is_some_and(|node: &Node| number(node).is_some());
    // A written global batch no longer multiplies, which the engine itself refuses.
    if subject.root.get(ACCUMULATION).is_some() || has(TRAIN) {
        return;
    }
    let member = subject.root.member(MICRO).or_else(|| subject.members().first());
    let Some(member) = member else { return };
    let title = Text::new(
        "add `\"gradient_accumulation_steps\": \"auto\"`",
        "加上 `\"gradient_accumulation_steps\": \"auto\"`",
    );
    let fix = insert_members(subject, subject.root, &[(ACCUMULATION, "\"auto\"")])
        .map(|edit| Fix::guess(title, vec![edit]));
    let (wording, severity) = match subject.front_end {
        FrontEnd::HfTrainer => (&TRAINER, Severity::Note),
        _ => (&WORDING, Severity::Warning),
    };
    found.push(
        at_member(&RULE, wording, &[ACCUMULATION], member)
            .severity(severity)
            .with("steps", i128::from(steps))
            .fix(fix),
    );
}
