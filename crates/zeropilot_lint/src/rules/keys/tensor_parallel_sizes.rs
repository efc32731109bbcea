use num_traits::ToPrimitive as _;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K32",
    name: "tensor-parallel-sizes",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "tensor-parallel sizes that do not match, or a stage that does not support tensor parallelism",
        "张量并行度不匹配，或所用的 stage 不支持张量并行",
    ),
    wordings: &[&TWO_SIZES, &REMAINDER, &STAGE_3],
    sources: &[],
    examples: &[Example::new(r#"{"train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}}"#).ranks(4), Example::new(r#"{"train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 3}}"#).ranks(2), Example::new(r#"{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}, "tensor_parallel": {"autotp_size": 2}}"#).version("0.18.9")],
    good: &[Example::new(r#"{"train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 2}}}"#).ranks(4), Example::new(r#"{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}, "tensor_parallel": {"autotp_size": 2}}"#).ranks(2)],
    is_no_op: false,
};

static TWO_SIZES: Wording = Wording {
    message: Text::new(
        "`tp_size` is {tp}, but `autotp_size` is {autotp}",
        "`tp_size` 是 {tp}，而 `autotp_size` 是 {autotp}",
    ),
    why: Text::new(
        "DeepSpeed compares the two sizes at startup and exits with a `ValueError` if they differ.",
        "DeepSpeed 启动时比较这两个数，不同就以 `ValueError` 退出。",
    ),
    help: Text::new(
        "remove `tensor_parallel.tp.tp_size`, or set it to {autotp}",
        "删掉 `tensor_parallel.tp.tp_size`，或把它设为 {autotp}",
    ),
};

static REMAINDER: Wording = Wording {
    message: Text::new(
        "{ranks} ranks cannot be divided into groups of {autotp} (`autotp_size`)",
        "{ranks} 个 rank 无法按 `autotp_size` {autotp} 平均分组",
    ),
    why: Text::new(
        "Every group needs the same number of ranks. DeepSpeed exits with an `AssertionError` that has no message.",
        "每组的 rank 数必须相同。DeepSpeed 会以 `AssertionError` 退出，而且没有错误信息。",
    ),
    help: Text::new(
        "choose an `autotp_size` that divides {ranks}",
        "选一个能整除 {ranks} 的 `autotp_size`",
    ),
};

static STAGE_3: Wording = Wording {
    message: Text::new(
        "DeepSpeed {version} does not support tensor parallelism in ZeRO stage 3",
        "DeepSpeed {version} 的张量并行不支持 ZeRO stage 3",
    ),
    why: Text::new(
        "DeepSpeed exits with an `AssertionError` (\"the compatibility between 'autotp' and 'zero_stage = 3' has not been validated\"). DeepSpeed 0.19.4 and later versions support both together.",
        "DeepSpeed 会以 `AssertionError` 退出（`the compatibility between 'autotp' and 'zero_stage = 3' has not been validated`）。DeepSpeed 0.19.4 起可以同时使用。",
    ),
    help: Text::new(
        "use ZeRO stage 2 or lower, or DeepSpeed 0.19.4 or later",
        "改用 ZeRO stage 2 或更低，或升级到 DeepSpeed 0.19.4 及以上",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let size = |path: &[&str]| {
        let node = subject.node(path.iter().copied())?;
        match &node.value {
            Value::Int(size) => size.to_usize().filter(|size| *size > 1).map(|size| (size, node)),
            _ => None,
        }
    };
    let Some((autotp, node)) = size(&["tensor_parallel", "autotp_size"]) else { return };
    if subject.version < EngineVersion::V0_19 {
        if subject.version >= EngineVersion::V0_16 && subject.stage() == Some(3) {
            let path = ["tensor_parallel", "autotp_size"];
            let told = at_value(&RULE, &STAGE_3, &path, node);
            found.push(told.with("version", subject.version.name()));
        }
        return;
    }
    let tp = ["tensor_parallel", "tp", "tp_size"];
    if let Some((size, node)) = size(&tp)
        && size != autotp
    {
        let told = at_value(&RULE, &TWO_SIZES, &tp, node);
        found.push(told.with("tp", size).with("autotp", autotp));
    }
    let ranks = subject.world.size;
    if subject.world.source == WorldSource::Given && !ranks.is_multiple_of(autotp) {
        let path = ["tensor_parallel", "autotp_size"];
        let told = at_value(&RULE, &REMAINDER, &path, node);
        found.push(told.with("ranks", ranks).with("autotp", autotp));
    }
}
