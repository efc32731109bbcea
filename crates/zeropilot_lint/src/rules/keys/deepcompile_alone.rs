use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K30",
    name: "deepcompile-needs-compile",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new(
        "DeepCompile does nothing without `engine.compile()`",
        "不调用 `engine.compile()`，DeepCompile 不生效",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": true}}"#,
    )],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.compile()\n"),
            ("ds.json", r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": true}}"#),
        ]),
        Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": false}}"#,
    ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepCompile compiles nothing until the script calls `engine.compile()`",
        "脚本调用 `engine.compile()` 之前，DeepCompile 不会编译任何东西",
    ),
    why: Text::new(
        "`deepspeed.initialize` reads the key and compiles nothing. Without the call, training runs as if the key were not set.",
        "`deepspeed.initialize` 只读取这个键，并不编译；不调用的话，训练与没有设置这个键时一样。",
    ),
    help: Text::new(
        "call `engine.compile()` after `deepspeed.initialize`; with accelerate set `dynamo_backend`, with the HF Trainer pass `torch_compile=True`",
        "在 `deepspeed.initialize` 之后调用 `engine.compile()`；accelerate 请设置 `dynamo_backend`，HF Trainer 请传入 `torch_compile=True`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["compile", "deepcompile"];
    if subject.version < EngineVersion::V0_16 || subject.script.is_compiled {
        return;
    }
    if let Some(node) = subject.node(path)
        && node.value == Value::Bool(true)
    {
        found.push(at_value(&RULE, &WORDING, &path, node));
    }
}
