use zeropilot_config::problem::KeyPath;
use zeropilot_config::python::is_auto;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A03",
    name: "auto-in-optimizer-params",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "`\"auto\"` in optimizer or scheduler parameters reaches DeepSpeed as a string",
        "优化器或调度器参数里的 `\"auto\"` 会原样传给 DeepSpeed",
    ),
    wordings: &[&WORDING],
    sources: &["hiyouga/LlamaFactory#1485", "deepspeedai/Megatron-DeepSpeed#298"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is `\"auto\"`, and DeepSpeed does not replace it",
        "`{path}` 写的是 `\"auto\"`，DeepSpeed 不会替换它",
    ),
    why: Text::new(
        "DeepSpeed passes optimizer and scheduler parameters to the constructor unchanged. The config loads, but `deepspeed.initialize` fails.",
        "DeepSpeed 把优化器和调度器的参数原样传给构造函数。配置能加载，但 `deepspeed.initialize` 会报错。",
    ),
    help: Text::new("set `{path}` to a number", "把 `{path}` 写成具体数值"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !subject.may_leave_auto() {
        return;
    }
    for section in ["optimizer", "scheduler"] {
        let Some(node) = subject.node([section, "params"]) else { continue };
        let Value::Object(members) = &node.value else { continue };
        for member in members.iter().filter(|member| is_auto(&member.value.value)) {
            let path = KeyPath([section, "params", &member.key].map(str::to_owned).to_vec());
            found.push(Diagnostic::new(&RULE, &WORDING, path, member.value.span));
        }
    }
}
