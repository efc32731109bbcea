//! PyTorch Lightning, many scripts and the autotuner add the batch before the engine reads the config.
//! Where nobody says who reads the file, or `autotuning` is enabled, the finding is a warning.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::Problem;
use zeropilot_config::syntax::Span;

use super::{ACCUMULATION, MICRO, TRAIN};
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::insert_members;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::keys::autotuning_left_on::started_by_the_autotuner;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B04",
    name: "no-batch-size",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new("no key sets the batch size", "没有任何键能确定 batch 大小"),
    wordings: &[&BARE, &UNSAID, &AUTOTUNER, &FILLED_BY_FRONT_END, &EMPTY],
    sources: &[],
    examples: &[
        Example::new(r#"{"zero_optimization": {"stage": 2}}"#),
        Example::new(r#"{"zero_optimization": {"stage": 2}}"#).unsaid_reader(),
        Example::new(r#"{"zero_optimization": {"stage": 2}, "autotuning": {"enabled": true}}"#)
            .script(started_by_the_autotuner),
        Example::new(r#"{"zero_optimization": {"stage": 2}}"#).read_by(FrontEnd::HfTrainer),
        Example::new(""),
    ],
    good: &[
        Example::new(r#"{"train_micro_batch_size_per_gpu": 1}"#),
        Example::new(r#"{"train_micro_batch_size_per_gpu": 1}"#).unsaid_reader(),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    is_no_op: false,
};

static BARE: Wording = Wording {
    message: Text::new(
        "neither `train_batch_size` nor `train_micro_batch_size_per_gpu` is set",
        "`train_batch_size` 和 `train_micro_batch_size_per_gpu` 都没有写",
    ),
    why: Text::new(
        "DeepSpeed cannot derive the batch size from `gradient_accumulation_steps` alone and raises an error at startup.",
        "只凭 `gradient_accumulation_steps` 推不出 batch 大小，DeepSpeed 启动时报错。",
    ),
    help: Text::new(
        "add `train_micro_batch_size_per_gpu` (samples per GPU and forward pass); it works for any number of ranks",
        "加上 `train_micro_batch_size_per_gpu`（每卡每次前向的样本数），它与总卡数无关",
    ),
};

static UNSAID: Wording = Wording {
    message: BARE.message,
    why: Text::new(
        "DeepSpeed itself, the HF Trainer and accelerate reject this config. zeropilot does not know whether another framework, such as PyTorch Lightning, or your own script adds the batch size first.",
        "DeepSpeed 本身、HF Trainer 和 accelerate 都不接受这个配置。zeropilot 不知道 PyTorch Lightning 等其他训练框架或自己的脚本会不会先补上 batch 大小。",
    ),
    help: Text::new(
        "add `train_micro_batch_size_per_gpu` unless the script adds it; use `--front-end` to name the framework that reads the file",
        "如果脚本不会补，就加上 `train_micro_batch_size_per_gpu`；也可以用 `--front-end` 指明由哪个训练框架读取",
    ),
};

static AUTOTUNER: Wording = Wording {
    message: BARE.message,
    why: Text::new(
        "`autotuning` is enabled: with `deepspeed --autotuning`, the autotuner sets the batch sizes of every experiment. Without this option, DeepSpeed raises an error at startup.",
        "启用了 `autotuning`：用 `deepspeed --autotuning` 启动时，每次试验的 batch 大小由 autotuner 写入；不带这个选项启动，DeepSpeed 会报错。",
    ),
    help: Text::new(
        "use this file only with `--autotuning`, or add `train_micro_batch_size_per_gpu`",
        "只配合 `--autotuning` 使用这个文件，或加上 `train_micro_batch_size_per_gpu`",
    ),
};

static FILLED_BY_FRONT_END: Wording = Wording {
    message: BARE.message,
    why: Text::new(
        "The framework replaces only keys whose value is `\"auto\"`. It does not add missing keys, and DeepSpeed raises an error at startup.",
        "训练框架只替换写成 `\"auto\"` 的键；没写的键不会补上，DeepSpeed 启动时报错。",
    ),
    help: Text::new(
        "add `train_batch_size` and `train_micro_batch_size_per_gpu` with the value `\"auto\"`; the framework then fills them in from the training arguments",
        "加上 `train_batch_size` 和 `train_micro_batch_size_per_gpu` 并写成 `\"auto\"`，由训练框架按训练参数填写",
    ),
};

static EMPTY: Wording = Wording {
    message: Text::new(
        "the file is empty, so no key sets the batch size",
        "文件是空的，无法确定 batch 大小",
    ),
    why: Text::new(
        "DeepSpeed treats an empty file as a config without keys and raises an error at startup.",
        "DeepSpeed 把空文件当作没有任何键的配置，启动时报错。",
    ),
    help: Text::new(
        "check that this is the right file, or create a config with `zeropilot new`",
        "确认指定的文件是否正确，或用 `zeropilot new` 生成一份配置",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    // An object that spans the file is no place to underline; its opening brace is.
    let start = subject.root.span.start;
    let span = Span::new(start, problem.span.end.min(start + 1));
    let told = |wording, severity| {
        Diagnostic::new(&RULE, wording, problem.path.clone(), span).severity(severity)
    };
    if subject.is_for_autotuner() {
        return told(&AUTOTUNER, Severity::Warning);
    }
    if subject.front_end == FrontEnd::DeepSpeed {
        return match subject {
            _ if subject.text.trim().is_empty() => told(&EMPTY, Severity::Error),
            _ if subject.is_reader_guessed => told(&UNSAID, Severity::Warning),
            _ => told(&BARE, Severity::Error),
        };
    }
    let missing: Vec<_> = [TRAIN, MICRO, ACCUMULATION]
        .into_iter()
        .filter(|key| subject.root.get(key).is_none())
        .map(|key| (key, "\"auto\""))
        .collect();
    let title = Text::new(
        "add the batch keys with the value `\"auto\"`",
        "加上 batch 相关的键，值写 `\"auto\"`",
    );
    let fix =
        insert_members(subject, subject.root, &missing).map(|edit| Fix::safe(title, vec![edit]));
    told(&FILLED_BY_FRONT_END, Severity::Error).fix(fix)
}
