//! An option for every fine-grained key of `zero_optimization`, under the key's own name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use zeropilot_plan::{Knob, KnobKind, KnobValue, Knobs, Section};
use zeropilot_units::Elements;

/// What the options are gathered under.
pub(crate) const HEADING: &str =
    "Fine-grained keys of zero_optimization; sizes are elements, not bytes";

/// The keys that were given.
#[derive(Debug, Default)]
pub(crate) struct KnobOptions(pub(crate) Knobs);

/// The name of a key's option, without dashes.
fn option(knob: Knob) -> &'static str {
    static NAMES: LazyLock<BTreeMap<Knob, String>> =
        LazyLock::new(|| Knob::ALL.iter().map(|knob| (*knob, name(*knob))).collect());
    NAMES.get(&knob).map_or("", String::as_str)
}

fn name(knob: Knob) -> String {
    let section = match knob.section() {
        Section::Zero => "",
        Section::OffloadOptimizer => "offload-optimizer-",
        Section::OffloadParam => "offload-param-",
    };
    format!("{section}{}", knob.key().replace('_', "-"))
}

fn parser(kind: KnobKind) -> ValueParser {
    match kind {
        KnobKind::Elements => {
            ValueParser::new(|text: &str| text.parse::<Elements>().map(KnobValue::Elements))
        }
        KnobKind::Count => ValueParser::new(|text: &str| text.parse().map(KnobValue::Count)),
        KnobKind::Flag => ValueParser::new(|text: &str| text.parse().map(KnobValue::Flag)),
        KnobKind::Share => ValueParser::new(|text: &str| text.parse().map(KnobValue::Share)),
    }
}

fn value_name(kind: KnobKind) -> &'static str {
    match kind {
        KnobKind::Elements => "ELEMENTS",
        KnobKind::Count => "N",
        KnobKind::Flag => "BOOL",
        KnobKind::Share => "0-1",
    }
}

fn argument(knob: Knob) -> Arg {
    let (english, _) = help(knob);
    Arg::new(option(knob))
        .long(option(knob))
        .value_name(value_name(knob.kind()))
        .value_parser(parser(knob.kind()))
        .help(english)
        .help_heading(HEADING)
        .hide_possible_values(true)
        .allow_negative_numbers(true)
}

impl Args for KnobOptions {
    fn augment_args(command: Command) -> Command {
        command.args(Knob::ALL.iter().map(|knob| argument(*knob)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KnobOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for &knob in Knob::ALL {
            if let Some(value) = matches.get_one::<KnobValue>(option(knob)) {
                let set = self.0.set(knob, *value);
                set.map_err(|error| {
                    clap::Error::raw(clap::error::ErrorKind::ValueValidation, error)
                })?;
            }
        }
        Ok(())
    }
}

/// The help of an option by its name, in Chinese.
pub(crate) fn chinese(name: &str) -> Option<&'static str> {
    Knob::ALL.iter().find(|knob| option(**knob) == name).map(|knob| help(*knob).1)
}

/// What a key does, in English and Chinese.
#[expect(clippy::too_many_lines, reason = "one text for each key")]
fn help(knob: Knob) -> (&'static str, &'static str) {
    match knob {
        Knob::ReduceBucketSize => {
            ("Reduce this many gradient elements at once", "一次规约的梯度元素数")
        }
        Knob::AllgatherBucketSize => (
            "Gather this many weight elements at once after the optimizer step (stages 1, 2)",
            "参数更新后一次聚合的权重元素数（stage 1、2）",
        ),
        Knob::OverlapComm => {
            ("Reduce gradients during the backward pass", "反向传播的同时规约梯度")
        }
        Knob::ContiguousGradients => (
            "Copy gradients into one buffer as soon as they are computed",
            "梯度算出后立即拷贝到一块连续缓冲区",
        ),
        Knob::ReduceScatter => (
            "Reduce each gradient only to the rank that owns it",
            "梯度只规约到所属的 rank，而不是所有 rank",
        ),
        Knob::RoundRobinGradients => (
            "Let the ranks share the copying of gradients to host memory (stages 1, 2)",
            "由各 rank 分担梯度到主机内存的拷贝（stage 1、2）",
        ),
        Knob::UseMultiRankBucketAllreduce => (
            "Combine small reductions of several ranks (stages 1, 2)",
            "合并多个 rank 的小块规约（stage 1、2）",
        ),
        Knob::IgnoreUnusedParameters => (
            "Continue if a parameter has no gradient (stages 1, 2)",
            "有参数没有梯度时继续训练（stage 1、2）",
        ),
        Knob::SubGroupSize => (
            "Update this many parameter elements at once (stage 3)",
            "优化器一次更新的参数元素数（stage 3）",
        ),
        Knob::PrefetchBucketSize => {
            ("Prefetch this many weight elements (stage 3)", "预取的权重元素数（stage 3）")
        }
        Knob::ParamPersistenceThreshold => (
            "Do not partition parameters with at most this many elements (stage 3)",
            "元素数不超过此值的参数不切分（stage 3）",
        ),
        Knob::ModelPersistenceThreshold => (
            "Limit the total size of unpartitioned parameters (stage 3)",
            "未切分参数的总量上限（stage 3）",
        ),
        Knob::MaxLiveParameters => (
            "Limit the number of weight elements that are gathered at the same time (stage 3)",
            "同时聚合的权重元素数上限（stage 3）",
        ),
        Knob::MaxReuseDistance => (
            "Keep gathered weights that are used again within this many elements (stage 3)",
            "在这么多个元素之内会再次用到的权重，聚合后不释放（stage 3）",
        ),
        Knob::ModuleGranularityThreshold => (
            "Gather a module as one unit if its average number of parameters per submodule is below this value (stage 3)",
            "模块平均每个子模块的参数量低于此值时，作为整体聚合（stage 3）",
        ),
        Knob::Gather16bitWeightsOnModelSave => (
            "Gather the full weights on rank 0 when the model is saved (stage 3)",
            "保存时把完整权重聚合到 rank 0（stage 3）",
        ),
        Knob::UseAllReduceForFetchParams => (
            "Gather weights with all-reduce instead of all-gather (stage 3)",
            "用 all-reduce 代替 all-gather 聚合权重（stage 3）",
        ),
        Knob::AllgatherSequential => {
            ("Gather weights one at a time (stage 3)", "逐个聚合权重（stage 3）")
        }
        Knob::HpzPartitionSize => (
            "Keep a second copy of the weights within groups of this many ranks (stage 3)",
            "按此 rank 数分组，每组内再保留一份权重（stage 3）",
        ),
        Knob::QuantizedWeights => {
            ("Send weights in 8 bits (stage 3)", "以 8 位传输权重（stage 3）")
        }
        Knob::QuantizedNontrainableWeights => {
            ("Keep frozen weights in 8 bits (stage 3)", "冻结的权重以 8 位保存（stage 3）")
        }
        Knob::QuantizedGradients => {
            ("Send gradients in 4 bits (stage 3)", "以 4 位传输梯度（stage 3）")
        }
        Knob::MemoryEfficientLinear => (
            "Do not keep gathered weights for the backward pass (stage 3)",
            "不为反向传播保留聚合的权重（stage 3）",
        ),
        Knob::OptimizerRatio => (
            "Run this fraction of the update on the CPU (stage 3)",
            "放在 CPU 上更新的参数比例（stage 3）",
        ),
        Knob::OptimizerBufferCount => {
            ("Use this many buffers for optimizer states on NVMe", "NVMe 上优化器状态的缓冲区个数")
        }
        Knob::OptimizerPipelineRead => (
            "Read the next optimizer states while the CPU updates the current ones",
            "CPU 更新当前一批优化器状态的同时，读取下一批",
        ),
        Knob::OptimizerPipelineWrite => (
            "Write the previous optimizer states while the CPU updates the current ones",
            "CPU 更新当前一批优化器状态的同时，写回上一批",
        ),
        Knob::OptimizerFastInit => (
            "Write the initial optimizer states in larger blocks",
            "初始化时以更大的块写入优化器状态",
        ),
        Knob::ParamBufferCount => {
            ("Use this many buffers for weights on NVMe", "NVMe 上权重的缓冲区个数")
        }
        Knob::ParamBufferSize => (
            "Set the size of each buffer; one rank's shard of the largest parameter must fit",
            "每个缓冲区的大小，要放得下最大参数在一个 rank 上的分片",
        ),
        Knob::ParamMaxInCpu => (
            "Keep this many weight elements in host memory instead of on NVMe",
            "权重卸载到 NVMe 时，仍留在主机内存里的权重元素数",
        ),
    }
}
