use zeropilot_config::constructors::Constructors;
use zeropilot_config::constructors::Parameters;
use zeropilot_config::syntax::Value;

use super::super::auto::misspelt::did_you_mean;
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O19",
    name: "scheduler-parameters",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("parameters that do not match the scheduler", "参数与调度器不匹配"),
    wordings: &[&UNKNOWN, &MISSING, &ABSENT],
    sources: &["huggingface/transformers#24359"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_steps": 10, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10, "warmup_max_lr": 1e-4, "warmup_type": "linear"}}}"#,
        ),
        Example::new(r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR"}}"#),
        Example::new(r#"{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {}}}"#),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10, "total_num_steps": 100, "warmup_max_lr": 1e-4, "warmup_type": "linear"}}}"#,
        ),
    ],
    is_no_op: false,
};

static UNKNOWN: Wording = Wording {
    message: Text::new(
        "`{name}` has no parameter `{key}`{nearest}",
        "`{name}` 不接受参数 `{key}`{nearest}",
    ),
    why: Text::new(
        "DeepSpeed passes `scheduler.params` unchanged to the constructor, which fails with `unexpected keyword argument`.",
        "DeepSpeed 把 `scheduler.params` 原样传给构造函数，多余的参数会直接报 `unexpected keyword argument`。",
    ),
    help: Text::new(
        "correct the name or remove the parameter; valid parameters are {known}",
        "改正参数名或删掉它；可用的参数有 {known}",
    ),
};

static MISSING: Wording = Wording {
    message: Text::new("`{name}` needs {missing}", "`{name}` 需要参数 {missing}"),
    why: Text::new(
        "The constructor has no default for this parameter, and no framework fills in a missing key.",
        "这个参数在构造函数里没有默认值，训练框架也不会填没写的键。",
    ),
    help: Text::new(
        "add the missing parameter; under the HF Trainer, `\"auto\"` is enough",
        "补上缺少的参数；由 HF Trainer 读取时写 `\"auto\"` 即可",
    ),
};

static ABSENT: Wording = Wording {
    message: Text::new(
        "`scheduler` has a type but no `params`",
        "`scheduler` 写了类型却没有 `params`",
    ),
    why: Text::new(
        "DeepSpeed unpacks `scheduler.params` and fails if this key is missing.",
        "DeepSpeed 要展开 `scheduler.params`，没有就报错。",
    ),
    help: Text::new(
        "add `\"params\": {{}}` with the parameters of `{name}`: {known}",
        "加上 `\"params\": {{}}`，里面写 `{name}` 的参数：{known}",
    ),
};

/// What the scheduler of the config takes: the engine's own, or PyTorch's.
fn all_parameters(subject: &Subject<'_>) -> Option<(&'static str, &'static Parameters)> {
    let name = subject.text_at(["scheduler", "type"])?;
    let torch = &Constructors::of(subject.version).torch_schedulers;
    let of_torch = || torch.get_key_value(name).map(|(name, taken)| (name.as_str(), taken));
    parameters(subject).or_else(of_torch)
}

/// What the scheduler of the config takes, if it is one of the engine's own.
pub(crate) fn parameters(subject: &Subject<'_>) -> Option<(&'static str, &'static Parameters)> {
    let name = subject.text_at(["scheduler", "type"])?;
    let schedulers = &Constructors::of(subject.version).schedulers;
    schedulers.get_key_value(name).map(|(name, parameters)| (name.as_str(), parameters))
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, parameters)) = all_parameters(subject) else { return };
    let Some((_, section)) = subject.member(&["scheduler"]) else { return };
    let known: Vec<String> = parameters.names().map(str::to_owned).collect();
    let params = section.value.get("params");
    let Some(Value::Object(members)) = params.map(|node| &node.value) else {
        if params.is_none_or(|node| node.value == Value::Null) {
            found.push(
                at_member(&RULE, &ABSENT, &["scheduler"], section)
                    .with("name", name)
                    .with("known", Argument::Words(known)),
            );
        }
        return;
    };
    for member in members.iter().filter(|member| !parameters.takes(&member.key)) {
        let meant = suggest(&member.key, parameters.names());
        found.push(
            at_member(&RULE, &UNKNOWN, &["scheduler", "params", &member.key], member)
                .with("name", name)
                .with("nearest", did_you_mean(meant.as_deref()))
                .with("known", Argument::Words(known.clone())),
        );
    }
    let is_written = |key: &String| members.iter().any(|member| member.key == *key);
    let missing: Vec<String> =
        parameters.required.iter().filter(|key| !is_written(key)).cloned().collect();
    if !missing.is_empty() {
        found.push(
            at_member(&RULE, &MISSING, &["scheduler"], section)
                .with("name", name)
                .with("missing", Argument::Words(missing)),
        );
    }
}
