//! Stage, offload, fine-grained keys.

use zeropilot_plan::{Knob, Refusal, Section};
use zeropilot_text::Text;

use crate::objection::Objection;

pub(super) fn objection(refusal: &Refusal) -> Option<Objection> {
    Some(match refusal {
        Refusal::PresetAndStage { preset, stage } => Objection::new(
            Text::new("{preset} is not stage {stage}", "{preset} 不是 stage {stage}"),
            Text::new("A preset sets the stage and the offload.", "预设已包含 stage 和卸载设置。"),
            Text::new("keep either the preset or --stage", "预设和 --stage 只写一个"),
        )
        .with("preset", preset)
        .with("stage", stage.number()),
        Refusal::OffloadAtStage0 => Objection::new(
            Text::new("stage 0 does not support offload", "stage 0 不支持卸载"),
            Text::new(
                "DeepSpeed offloads the shard of each rank, and stage 0 has no shards. DeepSpeed ignores the section.",
                "卸载的是各 rank 的分片，而 stage 0 不切分；DeepSpeed 会忽略这个配置段。",
            ),
            Text::new(
                "use --stage 2 to keep optimizer states in host memory, or --stage 3 to keep weights there too",
                "要把优化器状态放在主机内存，用 --stage 2；权重也要放，用 --stage 3",
            ),
        ),
        Refusal::ParameterOffloadBelowStage3(stage) => Objection::new(
            Text::new(
                "weights cannot be offloaded with stage {stage}",
                "stage {stage} 不能卸载权重",
            ),
            Text::new(
                "Only stage 3 partitions weights. In lower stages, DeepSpeed reads `offload_param` but does not use it.",
                "只有 stage 3 会切分权重；在更低的 stage，DeepSpeed 会读取 `offload_param`，但不会使用它。",
            ),
            Text::new(
                "use --stage 3, or offload the optimizer states alone: --offload-optimizer cpu",
                "改用 --stage 3，或只卸载优化器状态：--offload-optimizer cpu",
            ),
        )
        .with("stage", stage.number()),
        Refusal::NvmeBelowStage3(stage) => Objection::new(
            Text::new("stage {stage} does not support NVMe offload", "stage {stage} 不支持 NVMe 卸载"),
            Text::new(
                "Below stage 3, DeepSpeed offloads to host memory even if the config sets NVMe, and host memory then fills up.",
                "低于 stage 3 时，即使配置写的是 NVMe，DeepSpeed 也会卸载到主机内存，主机内存会被占满。",
            ),
            Text::new("use --stage 3, or --offload-optimizer cpu", "改用 --stage 3，或 --offload-optimizer cpu"),
        )
        .with("stage", stage.number()),
        Refusal::NvmeWithoutPath => Objection::new(
            Text::new("NVMe offload needs a directory", "NVMe 卸载需要指定目录"),
            Text::new(
                "Without `nvme_path`, DeepSpeed accepts the file but fails when the model is built.",
                "没有 `nvme_path` 时配置能通过解析，但创建模型时会报错。",
            ),
            Text::new(
                "add --nvme-path with a directory for this job only, on a fast local disk; DeepSpeed empties it \
                 at the start",
                "加上 --nvme-path，指向本地高速盘上这个任务专用的目录；DeepSpeed 启动时会清空它",
            ),
        ),
        Refusal::PathWithoutNvme => Objection::new(
            Text::new("--nvme-path is given, but nothing is offloaded to NVMe", "给出了 --nvme-path，但没有任何数据卸载到 NVMe"),
            Text::new("DeepSpeed would not read the path.", "DeepSpeed 不会读取这个路径。"),
            Text::new(
                "use the preset zero3_nvme, or --offload-optimizer nvme",
                "使用预设 zero3_nvme，或加上 --offload-optimizer nvme",
            ),
        ),
        Refusal::AsyncIoWithoutNvme => Objection::new(
            Text::new("the --aio options need NVMe offload", "--aio 选项需要 NVMe 卸载"),
            Text::new("DeepSpeed reads `aio` only with NVMe offload.", "只有卸载到 NVMe 时，DeepSpeed 才会读取 `aio`。"),
            Text::new("omit these options, or use the preset zero3_nvme", "去掉这些选项，或使用预设 zero3_nvme"),
        ),
        other => return knob(other),
    })
}

fn knob(refusal: &Refusal) -> Option<Objection> {
    Some(match refusal {
        Refusal::KnobNotRead { knob, stage } => Objection::new(
            Text::new("DeepSpeed does not read `{key}` in stage {stage}", "在 stage {stage} 下，DeepSpeed 不读取 `{key}`"),
            Text::new(
                "DeepSpeed would accept the key, but the key would have no effect.",
                "DeepSpeed 会接受这个键，但它不生效。",
            ),
            Text::new("omit the key, or use stage {stages}", "去掉这个键，或改用 stage {stages}"),
        )
        .with("key", knob.path())
        .with("stage", stage.number())
        .with("stages", stages(*knob)),
        Refusal::KnobWithoutOffload(knob) => Objection::new(
            Text::new("`{key}` needs {section} {device}", "`{key}` 需要 {section} {device}"),
            Text::new("Without this setting, the config lacks the section that contains the key, or DeepSpeed ignores the key.", "没有这项设置，配置里就没有这个键所在的配置段，或者 DeepSpeed 会忽略这个键。"),
            Text::new("add {section} {device}, or omit the key", "加上 {section} {device}，或去掉这个键"),
        )
        .with("key", knob.path())
        .with("section", section(*knob))
        .with("device", if knob.is_for_disk() { "nvme" } else { "cpu" }),
        Refusal::NotAShare { knob, share } => Objection::new(
            Text::new("`{key}` is {share}, not between 0 and 1", "`{key}` 为 {share}，不在 0 到 1 之间"),
            Text::new(
                "The value is the fraction of the optimizer step that runs on the CPU.",
                "这个值表示参数更新中有多大比例在 CPU 上执行。",
            ),
            Text::new("use a fraction such as 0.7", "写一个比例，例如 0.7"),
        )
        .with("key", knob.path())
        .with("share", share),
        Refusal::OddAllgatherBucket(size) => Objection::new(
            Text::new("`allgather_bucket_size` {size} is odd", "`allgather_bucket_size` {size} 是奇数"),
            Text::new(
                "DeepSpeed aligns shards to two elements and rejects an odd bucket size.",
                "DeepSpeed 按两个元素对齐分片，通信桶大小是奇数时会拒绝启动。",
            ),
            Text::new("use an even number", "改成偶数"),
        )
        .with("size", size),
        Refusal::Zero(knob) => Objection::new(
            Text::new("`{key}` cannot be 0", "`{key}` 不能为 0"),
            Text::new("DeepSpeed requires a value of at least 1.", "DeepSpeed 要求至少为 1。"),
            Text::new("write a positive number, or omit the key", "写一个正数，或去掉这个键"),
        )
        .with("key", knob.path()),
        Refusal::HpzDoesNotDivide { size, world } => Objection::new(
            Text::new(
                "{world} ranks cannot be divided into groups of {size}",
                "二次切分每组 {size} 个 rank，不能整除 {world} 个 rank",
            ),
            Text::new(
                "`zero_hpz_partition_size` forms groups of equal size, and DeepSpeed raises an error if some ranks are left over.",
                "`zero_hpz_partition_size` 要求各组一样大，分不均时 DeepSpeed 会报错。",
            ),
            Text::new("set `zero_hpz_partition_size` to the number of GPUs per node", "把 `zero_hpz_partition_size` 设为每个节点的卡数"),
        )
        .with("size", size)
        .with("world", world),
        Refusal::QuantizedGradientsWithoutReduceScatter => Objection::new(
            Text::new(
                "`zero_quantized_gradients` needs `reduce_scatter`, which is false",
                "`zero_quantized_gradients` 需要 `reduce_scatter`，而它是 false",
            ),
            Text::new(
                "The quantized all-to-all replaces the reduce-scatter, and DeepSpeed raises an error if reduce-scatter is off.",
                "量化的 all-to-all 用来代替 reduce-scatter；关闭 reduce-scatter 时，DeepSpeed 会报错退出。",
            ),
            Text::new("omit `zero_quantized_gradients`, or turn `reduce_scatter` on", "去掉 `zero_quantized_gradients`，或打开 `reduce_scatter`"),
        ),
        _ => return None,
    })
}

fn stages(knob: Knob) -> String {
    knob.stages().iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

fn section(knob: Knob) -> &'static str {
    match knob.section() {
        Section::OffloadParam => "--offload-param",
        Section::OffloadOptimizer | Section::Zero => "--offload-optimizer",
    }
}
