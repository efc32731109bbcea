use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I10",
    name: "save-only-model-with-best",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "`save_only_model` with `load_best_model_at_end`",
        "`save_only_model` 与 `load_best_model_at_end` 同时使用",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(both),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .script(only),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the HF Trainer rejects `save_only_model` together with `load_best_model_at_end` under DeepSpeed",
        "在 DeepSpeed 下，HF Trainer 不允许同时使用 `save_only_model` 和 `load_best_model_at_end`",
    ),
    why: Text::new(
        "The Trainer loads the best model from DeepSpeed's own checkpoint, which `save_only_model` does not write.",
        "Trainer 要从 DeepSpeed 的 checkpoint 加载最佳模型，而开启 `save_only_model` 后不会保存这种 checkpoint。",
    ),
    help: Text::new(
        "turn off `save_only_model` or `load_best_model_at_end` in the script",
        "在脚本里关掉 `save_only_model` 或 `load_best_model_at_end`",
    ),
};

fn both() -> Script {
    Script { save_only_model: Some(true), load_best_model_at_end: Some(true), ..Script::default() }
}

fn only() -> Script {
    Script { save_only_model: Some(true), ..Script::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let script = subject.script;
    let both = script.save_only_model == Some(true) && script.load_best_model_at_end == Some(true);
    if both
        && subject.front_end == FrontEnd::HfTrainer
        && let Some(first) = subject.members().first()
    {
        found.push(Diagnostic::new(&RULE, &WORDING, "", first.key_span));
    }
}
