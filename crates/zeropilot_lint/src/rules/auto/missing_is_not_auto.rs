use zeropilot_config::front_end::Arguments;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::front_end::Number;
use zeropilot_config::front_end::TrainerArguments;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Node;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A10",
    name: "missing-is-not-auto",
    group: Group::Auto,
    severity: Severity::Warning,
    summary: Text::new("the HF Trainer does not fill in a missing key", "HF Trainer 不会填没有写的键"),
    wordings: &[&WORDING],
    sources: &["huggingface/accelerate#3807", "deepspeedai/DeepSpeed#7220"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(clipping),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}, "gradient_clipping": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(decay),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(clipping),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}, "gradient_clipping": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(decay),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{argument}` {value} has no effect: the config has no `{path}`, so DeepSpeed uses {default}",
        "脚本的 `{argument}` {value} 不生效：配置里没有 `{path}`，DeepSpeed 用的是 {default}",
    ),
    why: Text::new(
        "The HF Trainer fills in only keys that the config contains. For a missing key, DeepSpeed uses its own default.",
        "HF Trainer 只填配置里写了的键；没有写的键，DeepSpeed 用自己的默认值。",
    ),
    help: Text::new("add `\"{key}\": \"auto\"`", "加上 `\"{key}\": \"auto\"`"),
};

fn clipping() -> Arguments {
    let trainer =
        TrainerArguments { max_grad_norm: Some(Number::Float(0.3)), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

fn decay() -> Arguments {
    let trainer =
        TrainerArguments { weight_decay: Some(Number::Float(0.1)), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.front_end != FrontEnd::HfTrainer {
        return;
    }
    let trainer = &subject.arguments.trainer;
    let clipping = if subject.version >= EngineVersion::V0_19 { 1.0 } else { 0.0 };
    top_level(subject, trainer.max_grad_norm, clipping, found);
    let builds = subject
        .optimizer_type()
        .is_some_and(|(name, _)| matches!(name.to_lowercase().as_str(), "adam" | "adamw"));
    if builds {
        let in_optimizer = |key, argument, value, default, found: &mut Vec<_>| {
            optimizer(subject, key, argument, value, default, found);
        };
        in_optimizer("lr", "learning_rate", trainer.learning_rate, 1e-3, found);
        in_optimizer("weight_decay", "weight_decay", trainer.weight_decay, 0.0, found);
        in_optimizer("eps", "adam_epsilon", trainer.adam_epsilon, 1e-8, found);
    }
}

fn top_level(
    subject: &Subject<'_>,
    value: Option<Number>,
    default: f64,
    found: &mut Vec<Diagnostic>,
) {
    let Some(value) = value.filter(|value| plain(*value) != default) else { return };
    let (None, Some(first)) = (subject.root.get("gradient_clipping"), subject.members().first())
    else {
        return;
    };
    let diagnostic = at_member(&RULE, &WORDING, &["gradient_clipping"], first);
    found.push(word(subject, diagnostic, subject.root, "max_grad_norm", value, default));
}

fn optimizer(
    subject: &Subject<'_>,
    key: &'static str,
    argument: &'static str,
    value: Option<Number>,
    default: f64,
    found: &mut Vec<Diagnostic>,
) {
    let Some(value) = value.filter(|value| plain(*value) != default) else { return };
    let Some((_, params)) = subject.member(&["optimizer", "params"]) else { return };
    let is_open = matches!(params.value.value, Value::Object(_));
    if is_open && params.value.get(key).is_none() {
        let diagnostic = at_member(&RULE, &WORDING, &["optimizer", "params", key], params);
        found.push(word(subject, diagnostic, &params.value, argument, value, default));
    }
}

fn word(
    subject: &Subject<'_>,
    diagnostic: Diagnostic,
    object: &Node,
    argument: &'static str,
    value: Number,
    default: f64,
) -> Diagnostic {
    let title = Text::new("add `\"{key}\": \"auto\"`", "加上 `\"{key}\": \"auto\"`");
    let key = diagnostic.path.key().to_owned();
    let fix = insert_members(subject, object, &[(&key, "\"auto\"")])
        .map(|edit| Fix::guess(title, vec![edit]));
    diagnostic
        .with("argument", argument)
        .with("value", shown(plain(value)))
        .with("default", shown(default))
        .fix(fix)
}

/// As Python would write it, near enough for a sentence.
fn shown(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-4 { format!("{number:e}") } else { format!("{number:?}") }
}

fn plain(number: Number) -> f64 {
    match number {
        #[expect(clippy::cast_precision_loss, reason = "learning rates are small numbers")]
        Number::Int(number) => number as f64,
        Number::Float(number) => number,
    }
}
