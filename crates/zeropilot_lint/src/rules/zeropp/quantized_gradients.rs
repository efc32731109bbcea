use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::ZERO;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "X05",
    name: "quantized-gradients-need-reduce-scatter",
    group: Group::ZeroPlusPlus,
    severity: Severity::Error,
    summary: Text::new(
        "quantized gradients without `reduce_scatter`",
        "使用量化梯度，但关闭了 `reduce_scatter`",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#4886"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true, "reduce_scatter": false}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`zero_quantized_gradients` needs `reduce_scatter`, which is false",
        "`zero_quantized_gradients` 需要开启 `reduce_scatter`，但配置里是 false",
    ),
    why: Text::new(
        "The quantized all-to-all replaces the reduce-scatter. DeepSpeed checks `reduce_scatter` when it creates the optimizer and exits with an error.",
        "量化的 all-to-all 用来代替 reduce-scatter。DeepSpeed 创建优化器时会检查 `reduce_scatter`，没有开启就报错退出。",
    ),
    help: Text::new(
        "remove `reduce_scatter`, whose default is true, or remove `zero_quantized_gradients`",
        "删掉 `reduce_scatter`（默认就是 true），或删掉 `zero_quantized_gradients`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.stage() != Some(3)
        || subject.zero_switch("zero_quantized_gradients") != Some(true)
        || subject.zero_switch("reduce_scatter") != Some(false)
    {
        return;
    }
    let path = [ZERO, "reduce_scatter"];
    if let Some(node) = subject.node(path) {
        let title = Text::new("set `reduce_scatter` to true", "把 `reduce_scatter` 设为 true");
        let fix = Fix::guess(title, vec![Edit::new(node.span, "true")]);
        found.push(at_value(&RULE, &WORDING, &path, node).fix(Some(fix)));
    }
}
