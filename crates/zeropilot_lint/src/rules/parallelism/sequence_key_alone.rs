use num_traits::ToPrimitive as _;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{Node, Value};

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::{Script, Sharing};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K34",
    name: "sequence-parallel-key-alone",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new(
        "`sequence_parallel_size` in the config does not turn sequence parallelism on",
        "配置里的 `sequence_parallel_size` 不会打开序列并行",
    ),
    wordings: &[&ALONE, &WITHOUT_GROUPS],
    sources: &[
        "deepspeedai/DeepSpeed deepspeed/runtime/config.py, DeepSpeedConfig.__init__",
        "deepspeedai/DeepSpeed deepspeed/compile/custom_ops/sp_dp_registry.py",
    ],
    examples: &[
        Example::new(r#"{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2}"#),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2}"#),
        ]),
    ],
    good: &[
        Example::new(r#"{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 1}"#),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            (
                "t.py",
                "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\nengine.compile()\n",
            ),
            (
                "ds.json",
                r#"{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2, "compile": {"deepcompile": true, "passes": ["autosp"]}}"#,
            ),
        ]),
        Example::new(r#"{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2}"#)
            .script(|| Script { sharing: Some(Sharing::Ranks(2)), ..Script::default() }),
    ],
    is_no_op: false,
};

static ALONE: Wording = Wording {
    message: Text::new(
        "DeepSpeed uses `sequence_parallel_size` only to compute the batch size, not to split sequences",
        "DeepSpeed 只用 `sequence_parallel_size` 计算 batch 大小：这个键不会切分序列",
    ),
    why: Text::new(
        "Ranks share a sequence only if the script or accelerate registers Ulysses and passes its groups to `deepspeed.initialize`, or if DeepCompile runs `autosp`. Otherwise, every rank attends over its own full sequence, and the GPU memory use stays the same.",
        "只有脚本或 accelerate 注册 Ulysses 并把分组传给 `deepspeed.initialize`，或者 DeepCompile 启用 `autosp`，多个 rank 才会共用一条序列。否则每个 rank 仍然计算自己的整条序列，显存也不会减少。",
    ),
    help: Text::new(
        "call `UlyssesSPAttentionHF.register_with_transformers` and pass its result as `mpu=` to `deepspeed.initialize`",
        "调用 `UlyssesSPAttentionHF.register_with_transformers`，并把返回值作为 `mpu=` 传给 `deepspeed.initialize`",
    ),
};

static WITHOUT_GROUPS: Wording = Wording {
    message: Text::new(
        "sequence parallelism is off: `deepspeed.initialize` gets no `mpu`; the key affects only batch sizes",
        "序列并行没有生效：`deepspeed.initialize` 没有收到 `mpu`，这个键只影响 batch 大小",
    ),
    why: ALONE.why,
    help: ALONE.help,
};

const KEY: &str = "sequence_parallel_size";

/// The size, where it is the only thing that speaks of sequence parallelism.
pub(crate) fn size_alone<'a>(subject: &Subject<'a>) -> Option<&'a Node> {
    let node = subject.node([KEY])?;
    let is_shared = match &node.value {
        Value::Int(size) => size.to_u64().is_some_and(|size| size > 1),
        _ => false,
    };
    // With both keys the engine builds a mesh, which other attention uses.
    let has_mesh = subject.node(["data_parallel_size"]).is_some();
    let has_groups = subject.script.sharing.is_some() || has_mesh || splits_by_compiling(subject);
    let is_alone = is_shared && !has_groups && subject.version >= EngineVersion::V0_17;
    is_alone.then_some(node)
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = size_alone(subject) else { return };
    found.push(match subject.script.makes_engine {
        true => at_value(&RULE, &WITHOUT_GROUPS, &[KEY], node).severity(Severity::Warning),
        false => at_value(&RULE, &ALONE, &[KEY], node),
    });
}

/// Whether a pass of DeepCompile splits sequences; it makes its groups from the key.
fn splits_by_compiling(subject: &Subject<'_>) -> bool {
    let is_pass = |pass: &Node| matches!(&pass.value, Value::Str(name) if name == "autosp");
    subject.node(["compile", "passes"]).is_some_and(|passes| match &passes.value {
        Value::Array(passes) => passes.iter().any(is_pass),
        _ => false,
    })
}
