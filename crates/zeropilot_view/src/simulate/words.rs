//! Names and sentences about time.

use zeropilot_ask::BadBill;
use zeropilot_cluster::NetworkError;
use zeropilot_config::settings::Stage;
use zeropilot_step::time::{Cause, Stream, What};
use zeropilot_step::traffic::Kind;
use zeropilot_step::zero::Direction;
use zeropilot_text::{Language, Text, tr};

use super::SimulateReport;
use crate::escaped;

/// What kernels wait for.
pub(super) fn cause(cause: Cause) -> Text {
    match cause {
        Cause::Gather => Text::new("parameter all-gather", "参数 all-gather"),
        Cause::Reduction => Text::new("gradient reduction", "梯度规约"),
        Cause::Exchange => {
            Text::new("sequence- or tensor-parallel communication", "序列并行或张量并行的通信")
        }
        Cause::Weights => Text::new("all-gather of updated weights", "更新后权重的 all-gather"),
        Cause::SmallCalls => Text::new("norms and overflow flags", "梯度范数与溢出检查"),
        Cause::ToDevice => Text::new("copies to the GPU", "主机到 GPU 的拷贝"),
        Cause::ToHost => Text::new("copies to the host", "GPU 到主机的拷贝"),
        Cause::HostUpdate => Text::new("optimizer on the host", "CPU 上的参数更新"),
        Cause::Disk => Text::new("NVMe", "NVMe 读写"),
        Cause::Host => Text::new("CPU (starting kernels, hooks)", "CPU（下发 kernel、执行 hook）"),
    }
}

/// Where things happen.
pub(super) fn stream(stream: Stream) -> Text {
    match stream {
        Stream::Compute => Text::new("compute", "计算"),
        Stream::Communication => Text::new("communication", "通信"),
        Stream::Nearby => Text::new("communication in node", "节点内通信"),
        Stream::ToDevice => Text::new("host to GPU", "主机到 GPU"),
        Stream::ToHost => Text::new("GPU to host", "GPU 到主机"),
        Stream::Host => Text::new("CPU", "CPU"),
        Stream::Disk => Text::new("NVMe", "NVMe"),
    }
}

/// What happens in a span; modules by name where they are known.
pub(super) fn what(name: impl Fn(u32) -> Option<String>, what: What, language: Language) -> String {
    match what {
        What::Forward(module) => {
            module.and_then(name).unwrap_or_else(|| tr!(language, "forward", "前向"))
        }
        What::Backward(module) => module.and_then(name).map_or_else(
            || tr!(language, "backward", "反向"),
            |name| tr!(language, "backward of {name}", "{name} 的反向"),
        ),
        What::Update => tr!(language, "optimizer", "参数更新"),
        What::Call(call) => Kind::of(call.kind).name().to_owned(),
        What::Copy(copy) => match copy.direction {
            Direction::ToDevice => Text::new("copy to GPU", "拷贝到 GPU"),
            Direction::ToHost => Text::new("copy to host", "拷贝到主机"),
        }
        .get(language)
        .to_owned(),
        What::Disk => "NVMe".to_owned(),
        What::Wait(reason) => tr!(language, "wait: {}", "等待：{}", cause(reason).get(language)),
    }
}

/// What would help against the longest wait.
pub(super) fn advice(report: &SimulateReport<'_>, longest: Cause) -> Text {
    let zero = report.question.zero;
    let has_nodes = report.question.cluster.gpus.layout.nodes > 1;
    match longest {
        Cause::Gather if has_nodes && zero.hpz_partition_size <= 1 => Text::new(
            "raise the micro-batch size, or keep a second copy of the weights on every node (zero_hpz_partition_size = GPUs per node)",
            "增大 micro batch，或在每个节点内保留一份权重副本（zero_hpz_partition_size = 每节点卡数）",
        ),
        Cause::Gather => Text::new(
            "raise the micro-batch size, or use a lower stage if it fits",
            "增大 micro batch；如果显存放得下，改用更低的 stage",
        ),
        Cause::Reduction if zero.stage == Stage::Two && report.program.accumulation > 1 => {
            Text::new(
                "use ZeRO-1 if it fits: it reduces gradients once per step, while ZeRO-2 reduces them in every micro-step",
                "如果显存放得下，改用 ZeRO-1：它每步只规约一次，ZeRO-2 每个 micro step 都要规约",
            )
        }
        Cause::Reduction if !zero.overlap_comm && zero.stage != Stage::Zero => Text::new(
            "set overlap_comm to true, or raise the micro-batch size",
            "把 overlap_comm 设为 true，或增大 micro batch",
        ),
        Cause::Reduction => Text::new(
            "raise the micro-batch size or the gradient accumulation steps",
            "增大 micro batch 或梯度累积步数",
        ),
        Cause::Exchange if report.program.manners.tensor_ranks > 1 => Text::new(
            "lower autotp_size if the model still fits, or use ZeRO-3 instead, which does not communicate inside layers",
            "如果显存放得下，减小 autotp_size；也可以改用 ZeRO-3，它在层内不通信",
        ),
        Cause::Exchange if has_nodes => Text::new(
            "divide sequences within a node only (set --sequence-parallel to at most the GPUs per node)",
            "只在节点内做序列并行（--sequence-parallel 不超过每节点卡数）",
        ),
        Cause::Exchange => Text::new(
            "divide each sequence among fewer GPUs if it still fits (--sequence-parallel)",
            "如果显存放得下，减小 --sequence-parallel，让每条序列分到更少的卡上",
        ),
        Cause::Weights | Cause::SmallCalls => {
            Text::new("raise the gradient accumulation steps", "增大梯度累积步数")
        }
        Cause::ToDevice | Cause::ToHost => Text::new(
            "set pin_memory to true and raise the micro-batch size; better still, offload less",
            "pin_memory 设为 true 并增大 micro batch；能少卸载更好",
        ),
        Cause::HostUpdate => Text::new(
            "raise the gradient accumulation steps, launch with --bind_cores_to_rank, or keep the optimizer on the GPU if it fits",
            "增大梯度累积步数，启动时加 --bind_cores_to_rank；显存放得下就不要卸载优化器",
        ),
        Cause::Disk => Text::new(
            "raise the gradient accumulation steps, or keep the offloaded states in host memory if they fit",
            "增大梯度累积步数；主机内存放得下时，不要卸载到 NVMe，改为卸载到主机内存",
        ),
        Cause::Host => Text::new(
            "raise the micro-batch size or the sequence length: the kernels are too small for the CPU to keep up",
            "增大 micro batch 或序列长度：kernel 太小，CPU 来不及下发",
        ),
    }
}

/// That nothing is known about the speed of the GPUs.
pub fn no_speed(language: Language) -> String {
    tr!(
        language,
        "error: the speed of these GPUs is unknown\n  help: name the GPU model, such as --gpus 8xA100-80G or \
             4x8xH100; a memory size is not enough to predict step time",
        "错误：不知道这些 GPU 的算力\n  \
             建议：只有显存大小无法估算时间，请写明型号，例如 --gpus 8xA100-80G 或 4x8xH100"
    )
}

/// That a text is no network.
pub fn bad_network(text: &str, error: &NetworkError, language: Language) -> String {
    let text = escaped(text);
    let why = match error {
        NetworkError::Unknown(name) => {
            tr!(language, ("{error}"), ("未知的网络类型 {}", escaped(name)))
        }
        NetworkError::Inside(name) => {
            tr!(language, ("{error}"), ("{} 不是节点之间的链路", escaped(name)))
        }
        NetworkError::Ports => tr!(language, "{error}", "端口数不对"),
    };
    tr!(
        language,
        "error: --network {text}: {why}\n  help: set the number and type of network ports per node: 8xNDR, 4xHDR, 1x100GbE",
        "错误：--network {text}：{why}\n  建议：写节点之间的链路，即端口数和类型，例如 8xNDR、4xHDR、1x100GbE"
    )
}

/// That a text is no range of GPUs.
pub fn bad_scale(text: &str, language: Language) -> String {
    let text = escaped(text);
    tr!(
        language,
        "error: --scale {text} is not a range of GPUs\n  help: write the smallest and the largest number, such as 8..1024; zeropilot simulates every doubling between them",
        "错误：--scale {text} 不是卡数范围\n  建议：写最小和最大的卡数，例如 8..1024；其间每翻一倍模拟一次"
    )
}

/// That a text is no price, or no amount of tokens.
pub fn bad_cost(bad: &BadBill, language: Language) -> String {
    let (option, text) = (bad.option, escaped(&bad.text));
    let help = match option {
        "tokens" => Text::new(
            "write a number, optionally with K, M, B or T: --tokens 10B",
            "写数字，可带单位 K、M、B 或 T，例如 --tokens 10B",
        ),
        _ => Text::new(
            "write the price per GPU hour: --cost 2.5/gpu-hour",
            "写每 GPU 小时的价格，例如 --cost 2.5/gpu-hour",
        ),
    };
    let help = help.get(language);
    tr!(
        language,
        "error: --{option} {text} cannot be parsed\n  help: {help}",
        "错误：无法解析 --{option} {text}\n  建议：{help}"
    )
}

/// That a text is not what drives do.
pub fn bad_nvme(text: &str, language: Language) -> String {
    let text = escaped(text);
    tr!(
        language,
        "error: --nvme {text} cannot be parsed\n  help: write the read and write speed of a node's drives in GB/s, such as 7/5",
        "错误：无法解析 --nvme {text}\n  建议：写每个节点 NVMe 的读/写速度（GB/s），例如 7/5"
    )
}
