//! B08: the script accumulates, the config does not say so.
//!
//! # What it does
//! Finds a config without `gradient_accumulation_steps` where the training script asks for
//! accumulation.
//!
//! # Why is this bad?
//! accelerate writes 1 into a config that does not have the key. The engine then steps after every
//! micro batch, and the batch is smaller than asked by that factor.

use zeropilot_config::front_end::Arguments;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::front_end::TrainerArguments;
use zeropilot_config::syntax::Node;

use super::{ACCUMULATION, MICRO, TRAIN};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::language::Text;
use crate::reading::at_member;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;

pub(crate) static RULE: Rule = Rule {
    code: "B08",
    name: "accumulation-missing",
    group: Group::Batch,
    severity: Severity::Warning,
    summary: Text::new("the script accumulates, the config does not say so", "脚本要梯度累积，配置里却没写"),
    wordings: &[&WORDING],
    sources: &["huggingface/accelerate#3369", "huggingface/accelerate#1773"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(accumulating),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(accumulating),
    ],
    check: Some(check),
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the script accumulates {steps} steps, but without `gradient_accumulation_steps` in the config the engine takes 1",
        "脚本要累积 {steps} 步，但配置里没有 `gradient_accumulation_steps`，引擎会按 1 执行",
    ),
    why: Text::new(
        "only a key that is there is filled. accelerate writes 1 for a missing one and warns when training begins.",
        "只有写出来的键才会被填；缺少时 accelerate 直接写成 1，训练开始时才给一行警告。",
    ),
    help: Text::new(
        "add `\"gradient_accumulation_steps\": \"auto\"`",
        "加上 `\"gradient_accumulation_steps\": \"auto\"`",
    ),
};

fn accumulating() -> Arguments {
    let trainer =
        TrainerArguments { gradient_accumulation_steps: Some(8), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
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
    found.push(
        at_member(&RULE, &WORDING, &[ACCUMULATION], member)
            .with("steps", i128::from(steps))
            .fix(fix),
    );
}
