use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::gradients::unmanaged_accumulation::is_rejected_compiled;
use crate::subject::Subject;
use zeropilot_text::Text;

/// The key without anything else.
const ON: &str = r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": true}}"#;

pub(crate) static RULE: Rule = Rule {
    code: "K30",
    name: "deepcompile-needs-compile",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new(
        "DeepCompile has no effect without `engine.compile()`",
        "不调用 `engine.compile()`，DeepCompile 不生效",
    ),
    wordings: &[&NOT_COMPILED, &NOT_REDUCED, &NOT_AVERAGED],
    sources: &[],
    examples: &[
        Example::new(
            ON,
        ),
        Example::new(
            ON,
        )
        .version("0.17.6"),
        Example::new(
            ON,
        )
        .version("0.16.9"),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.compile()\n"),
            ("ds.json", ON),
        ]),
        Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": false}}"#,
    ),
    ],
    is_no_op: false,
};

static NOT_COMPILED: Wording = Wording {
    message: Text::new(
        "DeepCompile compiles nothing until the script calls `engine.compile()`",
        "脚本调用 `engine.compile()` 之前，DeepCompile 不会编译任何东西",
    ),
    why: Text::new(
        "`deepspeed.initialize` reads the key and compiles nothing. Without a call to `engine.compile()`, training runs as if the key were not set.",
        "`deepspeed.initialize` 只读取这个键，并不编译；不调用 `engine.compile()` 时，训练与没有设置这个键时一样。",
    ),
    help: Text::new(
        "call `engine.compile()` after `deepspeed.initialize`; with accelerate, set `dynamo_backend`; with the HF Trainer, pass `torch_compile=True`",
        "在 `deepspeed.initialize` 之后调用 `engine.compile()`；accelerate 请设置 `dynamo_backend`，HF Trainer 请传入 `torch_compile=True`",
    ),
};

static NOT_REDUCED: Wording = Wording {
    message: Text::new(
        "with `deepcompile` but no `engine.compile()`, DeepSpeed 0.17 does not reduce gradients",
        "打开了 `deepcompile` 却没有调用 `engine.compile()`，DeepSpeed 0.17 不会规约梯度",
    ),
    why: Text::new(
        "Before 0.18, `deepcompile` leaves the reduction to the compiled graph even if nothing was compiled. Stages 1 to 3 exit in the first step with `KeyError: 0`; in stage 0, every GPU silently trains only on its own data.",
        "0.18 之前，只要打开 `deepcompile`，梯度规约就交给编译后的计算图，不管有没有编译。stage 1 到 3 在第一步以 `KeyError: 0` 退出；stage 0 下，每张卡只用自己的数据训练，而且不报错。",
    ),
    help: HELP,
};

static NOT_AVERAGED: Wording = Wording {
    message: Text::new(
        "without `engine.compile()`, DeepSpeed 0.16 never divides the loss by the gradient accumulation steps",
        "没有调用 `engine.compile()`，DeepSpeed 0.16 不会把 loss 除以梯度累积步数",
    ),
    why: Text::new(
        "Before 0.18, `deepcompile` leaves the division to the compiled graph even if nothing was compiled. With N gradient accumulation steps, the gradients are N times too large.",
        "0.18 之前，只要打开 `deepcompile`，除法就交给编译后的计算图，不管有没有编译。累积 N 步时，梯度就是应有大小的 N 倍。",
    ),
    help: HELP,
};

const HELP: Text = Text::new(
    "remove `deepcompile`, or call `engine.compile()` after `deepspeed.initialize`",
    "删掉 `deepcompile`，或者在 `deepspeed.initialize` 之后调用 `engine.compile()`",
);

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["compile", "deepcompile"];
    let is_compiled = subject.script.is_compiled || is_rejected_compiled(subject);
    if subject.version < EngineVersion::V0_16 || is_compiled {
        return;
    }
    if let Some(node) = subject.node(path)
        && node.value == Value::Bool(true)
    {
        let (wording, severity) = match subject.version {
            EngineVersion::V0_16 => (&NOT_AVERAGED, Severity::Warning),
            EngineVersion::V0_17 => (&NOT_REDUCED, Severity::Warning),
            _ => (&NOT_COMPILED, Severity::Note),
        };
        found.push(at_value(&RULE, wording, &path, node).severity(severity));
    }
}
