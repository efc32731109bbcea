use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P20",
    name: "autocast-module-path",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "a `torch_autocast` module without its package name",
        "`torch_autocast` 的模块没有写包名",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16", "lower_precision_safe_modules": ["Linear"]}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16", "lower_precision_safe_modules": ["torch.nn.Linear"]}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{module}` in `lower_precision_safe_modules` is not the full path of a class",
        "`lower_precision_safe_modules` 里的 `{module}` 不是类的完整路径",
    ),
    why: Text::new(
        "DeepSpeed imports each entry as a package and a class at startup. For an entry without a dot, it exits with a `ValueError`.",
        "DeepSpeed 启动时按“包名.类名”导入每一项；没有点号就以 `ValueError` 退出。",
    ),
    help: Text::new(
        "write the full path, such as `torch.nn.Linear`",
        "写完整路径，例如 `torch.nn.Linear`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["torch_autocast", "lower_precision_safe_modules"];
    let is_read = subject.reads("torch_autocast", path[1]);
    if subject.enabled("torch_autocast") != Some(true) || !is_read {
        return;
    }
    let Some(Value::Array(modules)) = subject.node(path).map(|node| &node.value) else { return };
    for node in modules {
        if let Value::Str(module) = &node.value
            && !module.contains('.')
        {
            found.push(at_value(&RULE, &WORDING, &path, node).with("module", module.as_str()));
        }
    }
}
