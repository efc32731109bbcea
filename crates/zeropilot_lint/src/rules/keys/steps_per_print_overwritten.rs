use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::reading::number;
use crate::reading::remove_idle;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K26",
    name: "steps-per-print-overwritten",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new(
        "accelerate overwrites `steps_per_print`",
        "accelerate 会覆盖 `steps_per_print`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}, "steps_per_print": 10}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "steps_per_print": 10}"#)],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`steps_per_print` has no effect: accelerate sets it to infinity",
        "`steps_per_print` 不生效：accelerate 会把它设成无穷大",
    ),
    why: Text::new(
        "Under the HF Trainer and accelerate, DeepSpeed prints no progress lines, whatever the config sets.",
        "在 HF Trainer 和 accelerate 下，不管这里写什么，DeepSpeed 都不会打印进度行。",
    ),
    help: Text::new(
        "remove `steps_per_print`, and use the Trainer's `logging_steps`",
        "删掉 `steps_per_print`，改用 Trainer 的 `logging_steps`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.front_end == FrontEnd::DeepSpeed {
        return;
    }
    let Some(member) = subject.root.member("steps_per_print") else { return };
    if number(&member.value).is_some() {
        let fix = remove_idle(subject, subject.root, member);
        found.push(at_member(&RULE, &WORDING, &["steps_per_print"], member).fix(fix));
    }
}
