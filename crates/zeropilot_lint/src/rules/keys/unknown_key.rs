//! A training script may read keys of its own from the same file. Where nobody says who reads it and
//! the config is a section in the settings of a program, a note says only that.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::keys::builds_mesh;
use zeropilot_config::problem::KeyPath;
use zeropilot_config::schema::Schema;
use zeropilot_config::syntax::{Member, Value};

use super::super::auto::misspelt::did_you_mean;
use super::{HAND_READ_SECTIONS, comment_key, wrong_level};
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::rename;
use crate::reading::ZERO;
use crate::report::MAX_FINDINGS;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::suggestion::suggest;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K01",
    name: "unknown-key",
    group: Group::Keys,
    severity: Severity::Warning,
    summary: Text::new("a key that DeepSpeed does not read", "不会被读取的键"),
    wordings: &[&TOP_LEVEL, &IN_SECTION, &EMBEDDED, &FP8],
    sources: &[
        "deepspeedai/DeepSpeed#653",
        "deepspeedai/DeepSpeed#774",
        "deepspeedai/DeepSpeed#1809",
    ],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "zero_optimisation": {"stage": 2}}"#),
        Example::new(r#"{"train_batch_size": 8, "use_dynamic_tiling": true}"#),
        Example::new(r#"{"train_batch_size": 8, "flops_profiler": {"profile_stpe": 1}}"#),
        Example::new(
            r#"{"train_batch_size": 8, "num_epochs": 3, "deepspeed": {"zero_optimization": {"stage": 2}}}"#,
        )
        .unsaid_reader(),
        Example::new(r#"{"train_batch_size": 8, "fp8": {"enabled": true}}"#),
    ],
    good: &[
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#),
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}}"#)
            .unsaid_reader(),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2, "data_parallel_size": 1}"#,
        )
        .ranks(2),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "gradient_clipping": 1.0, "msamp": {"enabled": true, "opt_level": "O2"}}"#,
        )
        .read_by(FrontEnd::Accelerate),
    ],
    is_no_op: true,
};

static TOP_LEVEL: Wording = Wording {
    message: Text::new(
        "DeepSpeed does not read the key `{key}`{nearest}",
        "DeepSpeed 不读取 `{key}` 这个键{nearest}",
    ),
    why: Text::new(
        "At the top level, DeepSpeed silently ignores keys it does not support: this setting has no effect.",
        "在顶层，DeepSpeed 会忽略不支持的键，也没有提示：这项设置不生效。",
    ),
    help: Text::new(
        "correct the name of `{key}`, or remove the key",
        "改正键名 `{key}`，或删掉这个键",
    ),
};

static IN_SECTION: Wording = Wording {
    message: Text::new(
        "DeepSpeed does not read the key `{key}` in `{section}`{nearest}",
        "DeepSpeed 不读取 `{section}` 里的 `{key}`{nearest}",
    ),
    why: Text::new(
        "In this section, DeepSpeed silently ignores keys it does not support: this setting has no effect.",
        "在这个配置段里，DeepSpeed 会忽略不支持的键，也没有提示：这项设置不生效。",
    ),
    help: TOP_LEVEL.help,
};

static EMBEDDED: Wording = Wording {
    message: Text::new(
        "the DeepSpeed config is in the section `{key}`, which DeepSpeed itself does not read",
        "DeepSpeed 配置写在配置段 `{key}` 里，DeepSpeed 本身不会读取这个配置段",
    ),
    why: Text::new(
        "This looks like the settings file of a program that passes the section to DeepSpeed and uses the other keys itself. If you pass the whole file to DeepSpeed, it reads only the top-level keys it supports and silently ignores all others.",
        "这看起来是某个程序的设置：程序把这个配置段交给 DeepSpeed，其余的键自己使用。如果把整个文件直接交给 DeepSpeed，它只读取顶层里支持的键，其余一概忽略且不提示。",
    ),
    help: Text::new(
        "save the section `{key}` as a separate file to check it",
        "要检查配置段 `{key}`，请把它另存为一个文件",
    ),
};

static FP8: Wording = Wording {
    message: Text::new(
        "DeepSpeed has no fp8 setting and does not read the key `{key}`",
        "DeepSpeed 不读取 `{key}` 这个键：它没有 fp8 设置",
    ),
    why: Text::new(
        "DeepSpeed trains in the precision that `fp16`, `bf16` or `torch_autocast` sets and silently ignores `{key}`. The model's own layers provide fp8 matrix multiplications.",
        "DeepSpeed 按 `fp16`、`bf16` 或 `torch_autocast` 指定的精度训练，`{key}` 不生效，也没有提示。fp8 矩阵乘法由模型里的层提供。",
    ),
    help: Text::new(
        "remove `{key}` and enable `bf16`. For fp8, use fp8 layers in the model, or use accelerate with `mixed_precision: fp8`, and `fp8_backend: te` for Transformer Engine",
        "删掉 `{key}` 并打开 `bf16`；要用 fp8，可在模型里使用 fp8 的层，或在 accelerate 里设置 `mixed_precision: fp8`（要用 Transformer Engine，再设置 `fp8_backend: te`）",
    ),
};

/// Keys that go by another name in other versions or in training scripts: section, that name, the
/// engine's name.
const RENAMED: [(&str, &str, &str); 4] = [
    ("aio", "thread_count", "intra_op_parallelism"),
    ("", "max_grad_norm", "gradient_clipping"),
    ("", "grad_clip", "gradient_clipping"),
    ("", "seq_parallel_comm_data_type", "seq_parallel_communication_data_type"),
];

/// The section of MS-AMP, which accelerate reads, also under the HF Trainer.
pub(crate) fn is_of_accelerate(front_end: FrontEnd, key: &str) -> bool {
    key == "msamp" && front_end != FrontEnd::DeepSpeed
}

fn renamed(section: &str, key: &str) -> Option<String> {
    let found = RENAMED.iter().find(|(place, old, _)| *place == section && *old == key);
    found.map(|(_, _, new)| (*new).to_owned())
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let schema = subject.schema();
    let embedded = embedded(subject);
    if let Some(section) = embedded {
        let path = KeyPath(vec![section.key.clone()]);
        let told = Diagnostic::new(&RULE, &EMBEDDED, path, section.key_span);
        found.push(told.severity(Severity::Note));
    }
    for member in subject.members() {
        if found.len() >= MAX_FINDINGS {
            return;
        }
        if !reads(schema, &member.key) {
            let is_read = builds_mesh(subject.root, &member.key, subject.version)
                || is_of_accelerate(subject.front_end, &member.key);
            if embedded.is_none() && !is_read {
                found.push(top_level(subject, member));
            }
        } else if let Value::Object(members) = &member.value.value
            && HAND_READ_SECTIONS.contains(&member.key.as_str())
            && schema.removed(&member.key).is_none()
        {
            in_section(subject, &member.key, members, found);
        }
    }
}

/// The section that holds the config, in a file that is no config itself: nobody said who reads it, no
/// section of it is one of the engine's, and one that is not has a ZeRO section of its own.
fn embedded<'a>(subject: &Subject<'a>) -> Option<&'a Member> {
    let is_section = |member: &&Member| matches!(member.value.value, Value::Object(_));
    let sections = || subject.members().iter().filter(is_section);
    let is_config = sections().any(|member| reads(subject.schema(), &member.key));
    if !subject.is_reader_guessed || is_config {
        return None;
    }
    sections().find(|member| {
        let zero = member.value.get(ZERO);
        zero.is_some_and(|zero| matches!(zero.value, Value::Object(_)))
    })
}

/// Whether the engine asks for a top-level key, or for one inside it.
fn reads(schema: &Schema, key: &str) -> bool {
    schema.reads_top_level(key) || schema.raw_members(key).next().is_some()
}

/// A top-level key that the engine does not read: perhaps a remark, perhaps in the wrong place.
fn top_level(subject: &Subject<'_>, member: &Member) -> Diagnostic {
    if comment_key::is_remark(&member.key) {
        return comment_key::found(KeyPath(vec![member.key.clone()]), member);
    }
    let path = KeyPath(vec![member.key.clone()]);
    if let Some(home) = wrong_level::home(subject, &member.key) {
        return wrong_level::found(subject, path, member, home);
    }
    if member.key.eq_ignore_ascii_case("fp8") {
        return found(&FP8, subject, path, member, None);
    }
    let meant = renamed("", &member.key)
        .or_else(|| suggest(&member.key, subject.schema().top_level_keys()));
    found(&TOP_LEVEL, subject, path, member, meant)
}

fn in_section(
    subject: &Subject<'_>,
    section: &str,
    members: &[Member],
    found: &mut Vec<Diagnostic>,
) {
    let known: Vec<&str> = subject.schema().raw_members(section).collect();
    if known.is_empty() || known.contains(&"*") {
        return;
    }
    let unknown = members.iter().filter(|member| !known.contains(&member.key.as_str()));
    for member in unknown.take(MAX_FINDINGS) {
        let path = KeyPath(vec![section.to_owned(), member.key.clone()]);
        if comment_key::is_remark(&member.key) {
            found.push(comment_key::found(path, member));
            continue;
        }
        let meant = renamed(section, &member.key)
            .filter(|new| known.contains(&new.as_str()))
            .or_else(|| suggest(&member.key, known.iter().copied()));
        found.push(self::found(&IN_SECTION, subject, path, member, meant));
    }
}

fn found(
    wording: &'static Wording,
    subject: &Subject<'_>,
    path: KeyPath,
    member: &Member,
    meant: Option<String>,
) -> Diagnostic {
    let section = path.0[..path.0.len() - 1].iter().map(String::as_str);
    let is_taken = meant.as_ref().is_some_and(|meant| {
        subject.node(section).is_some_and(|object| object.get(meant).is_some())
    });
    let title = Text::new("rename the key to `{meant}`", "改名为 `{meant}`");
    let fix = meant
        .as_ref()
        .filter(|_| !is_taken)
        .map(|meant| Fix::guess(title, vec![rename(member.key_span, meant)]));
    Diagnostic::new(&RULE, wording, path, member.key_span)
        .with("nearest", did_you_mean(meant.as_deref()))
        .with("meant", meant.unwrap_or_default())
        .fix(fix)
}
