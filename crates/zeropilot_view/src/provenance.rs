//! What an answer rests on: where its values come from, what was assumed, and what no prediction follows.

mod json;

use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use zeropilot_ask::{Note, Provenance, Statement, UnreadableConfig};
use zeropilot_job::{Direction, NotModelled, Origin};
use zeropilot_text::{Language, Text, tr};

pub(crate) use self::json::Shape;
use crate::escaped;
use crate::simulate::human::token_words;

/// Values as people name them, and the option that sets each.
const NAMES: [(&str, Text, &str); 45] = [
    ("model", Text::new("model", "模型"), "--model"),
    ("config", Text::new("DeepSpeed config", "DeepSpeed 配置"), "--config"),
    ("world_size", Text::new("world size", "总卡数（world size）"), "--gpus"),
    ("stage", Text::new("ZeRO stage", "ZeRO stage"), "--stage"),
    ("offload", Text::new("offload", "卸载"), "--offload"),
    ("precision", Text::new("precision", "精度"), "--precision"),
    ("seq_len", Text::new("sequence length", "序列长度"), "--seq-len"),
    ("image", Text::new("image", "图像"), "--image"),
    (
        "images_per_sample",
        Text::new("images per sequence", "每条序列的图像数"),
        "--images-per-sample",
    ),
    ("max_pixels", Text::new("maximum pixels", "像素上限"), "--max-pixels"),
    ("freeze", Text::new("frozen parts", "冻结的部分"), "--freeze"),
    ("micro_batch", Text::new("micro-batch size", "micro batch"), "--micro-batch"),
    ("grad_accum", Text::new("gradient accumulation steps", "梯度累积步数"), "--grad-accum"),
    ("method", Text::new("method", "训练方式"), "--method"),
    ("lora_rank", Text::new("LoRA rank", "LoRA 秩"), "--lora-rank"),
    ("quantization", Text::new("quantized base model", "量化基座模型"), "--quantization"),
    ("lora_targets", Text::new("LoRA targets", "LoRA 目标模块"), "--lora-targets"),
    (
        "grad_checkpointing",
        Text::new("gradient checkpointing", "梯度检查点"),
        "--grad-checkpointing",
    ),
    ("attention", Text::new("attention", "注意力实现"), "--attention"),
    ("fused_loss", Text::new("fused loss", "融合 loss"), "--fused-loss"),
    ("loss_shards", Text::new("loss shards", "loss 分块"), "--loss-shards"),
    ("liger", Text::new("Liger's kernels", "Liger Kernel"), "--liger"),
    ("sequence_parallel", Text::new("GPUs per sequence", "每条序列的卡数"), "--sequence-parallel"),
    ("tiled_mlp", Text::new("tiled MLP", "MLP 分块计算"), "--tiled-mlp"),
    ("activation_offload", Text::new("activation offload", "激活卸载"), "--activation-offload"),
    (
        "expandable_segments",
        Text::new("expandable segments", "可扩展显存段"),
        "--expandable-segments",
    ),
    ("optimizer", Text::new("optimizer", "优化器"), "--optimizer"),
    ("global_batch", Text::new("global batch size", "全局 batch"), "--global-batch"),
    ("gpus", Text::new("GPUs", "GPU"), "--gpus"),
    ("without_deepspeed", Text::new("without DeepSpeed", "不用 DeepSpeed"), "--without-deepspeed"),
    ("deepspeed_version", Text::new("DeepSpeed", "DeepSpeed"), "--deepspeed-version"),
    ("transformers_version", Text::new("transformers", "transformers"), "--transformers-version"),
    ("trl_version", Text::new("TRL", "TRL"), "--trl-version"),
    ("task", Text::new("task", "任务"), "--task"),
    ("teacher", Text::new("teacher", "教师模型"), "--teacher"),
    ("reward_model", Text::new("reward model", "奖励模型"), "--reward-model"),
    ("critic", Text::new("value model", "价值模型"), "--critic"),
    (
        "rollout_batch",
        Text::new("completions scored at once", "一次打分的补全数"),
        "--rollout-batch",
    ),
    ("reference", Text::new("reference", "参考模型"), "--reference"),
    ("completion_len", Text::new("completion length", "补全长度"), "--completion-len"),
    ("rollout", Text::new("rollout", "补全的来源"), "--rollout"),
    (
        "vllm_gpu_memory_utilization",
        Text::new("vLLM's share of GPU memory", "vLLM 占用显存的比例"),
        "--vllm-gpu-memory-utilization",
    ),
    ("vllm_sleep", Text::new("vLLM's sleep mode", "vLLM 休眠模式"), "--vllm-sleep"),
    (
        "vllm_tensor_parallel_size",
        Text::new("vLLM's tensor parallelism", "vLLM 张量并行数"),
        "--vllm-tensor-parallel-size",
    ),
    ("trainer", Text::new("trainer", "训练器"), "--trainer"),
];

fn known(name: &str) -> Option<(Text, &'static str)> {
    NAMES.iter().find(|(known, ..)| *known == name).map(|(_, words, option)| (*words, *option))
}

pub(crate) fn words(name: &str, language: Language) -> &str {
    known(name).map_or(name, |(words, _)| words.get(language))
}

/// The block below an answer, after an empty line; empty if nothing is from a job, assumed or left out.
pub(crate) fn below(provenance: &Provenance, language: Language) -> String {
    let text = human(provenance, language);
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What an answer rests on, for people.
pub fn human(provenance: &Provenance, language: Language) -> String {
    [
        from_job(provenance, language),
        installed(provenance, language),
        assumed(provenance, language),
        unknown(provenance, language),
        not_modelled(&provenance.not_modelled, language),
        notes(&provenance.notes, language),
    ]
    .concat()
}

/// One line for each thing that a reader must know beside the numbers.
pub fn notes(notes: &[Note], language: Language) -> String {
    let line = |note: &Note| {
        let words = note_words(*note, language);
        tr!(language, "Note: {words}.\n", "注意：{words}。\n")
    };
    notes.iter().map(line).collect()
}

pub(crate) fn note_words(note: Note, language: Language) -> String {
    match note {
        Note::Fp16Assumed { card } => tr!(
            language,
            "{card} does not support bf16, so zeropilot assumes fp16",
            "{card} 不支持 bf16，因此按 fp16 计算"
        ),
        Note::NoBf16 { card } => {
            let problem = no_bf16(card, language);
            tr!(language, "{problem}; use fp16", "{problem}；请改用 fp16")
        }
        Note::LargeHost { need } => tr!(
            language,
            "this strategy needs {need} of host memory on every node, more than most machines have; set --host-ram to the host memory of your nodes",
            "该方案每个节点需要 {need} 主机内存，多数机器没有这么大；请用 --host-ram 写明实际的主机内存"
        ),
        Note::LongRun { tokens, is_assumed, days } => long_run(tokens, is_assumed, days, language),
        Note::OpenBatch => tr!(
            language,
            "--global-batch is not given, so each strategy has its own global batch size, and zeropilot compares times per sequence",
            "未指定 --global-batch，各方案的全局 batch 不同，耗时按每条序列比较"
        ),
        Note::OptimizerUnused => tr!(
            language,
            "DeepSpeed builds AdamW from the written config, so --optimizer has no effect; if a trainer builds the optimizer, name the trainer with --for, such as --for hf-trainer",
            "DeepSpeed 会按写出的配置创建 AdamW，所以 --optimizer 不生效；如果由 Trainer 创建优化器，请用 --for 指定，如 --for hf-trainer"
        ),
        Note::NetworkUnused => tr!(
            language,
            "all GPUs are in one node, so --network has no effect",
            "所有卡都在一个节点内，--network 不生效"
        ),
        Note::MeasuredMachine { ranks, links: true } => tr!(
            language,
            "speeds come from a measurement with {ranks} ranks on this machine (`zeropilot calibrate`)",
            "速度采用本机 {ranks} 个 rank 的实测值（`zeropilot calibrate`）"
        ),
        Note::MeasuredMachine { ranks, links: false } => tr!(
            language,
            ("GPU speeds come from a measurement with {ranks} ranks on one node (`zeropilot calibrate`). Links were \
              not measured with this many GPUs, so zeropilot uses typical values for machines of this kind"),
            ("单卡速度采用一个节点上 {ranks} 个 rank 的实测值（`zeropilot calibrate`）。没有测过这么多 GPU \
              之间的通信，链路速度按此类机器的常见值计算")
        ),
        Note::TrlAssumed => tr!(
            language,
            "zeropilot assumes TRL 1.16, which never stores all logits; TRL before 1.7 stores them and needs more GPU memory (set --trl-version)",
            "按 TRL 1.16 计算，它从不保存完整的 logits；1.7 之前的 TRL 会保存，需要更多显存：请用 --trl-version 指定"
        ),
        Note::TrlScoresAssumed => tr!(
            language,
            "zeropilot assumes TRL 1.16, which computes log-probabilities without storing all logits; TRL before 1.15 stores them and needs more GPU memory (set --trl-version)",
            "按 TRL 1.16 计算，它不保存完整的 logits 就能算出 log 概率；1.15 之前的 TRL 会保存，需要更多显存：请用 --trl-version 指定"
        ),
        Note::PpoCheckpointing => tr!(
            language,
            "PPO's trainers do not read `gradient_checkpointing`. With --grad-checkpointing, zeropilot assumes that the script calls `gradient_checkpointing_enable()` on the policy. The value model keeps all its activations",
            "PPO 的训练器不读取 `gradient_checkpointing`：--grad-checkpointing 表示脚本自己对策略模型调用了 `gradient_checkpointing_enable()`；价值模型总是保留全部激活值"
        ),
        Note::FrozenWithOptimizer => tr!(
            language,
            "before 1.10, TRL also passes the config's `optimizer` section to the frozen models. Each frozen model then builds an optimizer with its own fp32 states. Remove the section (the Trainer builds the optimizer), or use TRL 1.10",
            "1.10 之前的 TRL 会把配置段 `optimizer` 也用于冻结的模型：它们各自创建优化器和 fp32 状态。请删掉这个配置段（由 Trainer 创建优化器），或升级到 TRL 1.10"
        ),
        Note::FrozenTowerDifferentiated => tr!(
            language,
            "with gradient checkpointing, the backward pass also runs through the frozen vision tower. A transformers hook makes the output of the tower's input layer require a gradient. To avoid the tower's activation checkpoints and its backward pass, remove this hook after you enable gradient checkpointing",
            "开启梯度检查点后，冻结的视觉塔也会做反向：transformers 会让它输入层的输出需要梯度。启用梯度检查点之后移除这个 hook，可以省下视觉塔的检查点和一次反向"
        ),
        Note::QuantizedLoadedWhole => tr!(
            language,
            "transformers loads the whole quantized model on every GPU before ZeRO-3 partitions it. More GPUs therefore do not lower the GPU memory that loading needs; with `--load partitioned`, the prediction excludes loading",
            "transformers 会先在每张卡上加载完整的量化模型，然后 ZeRO-3 才切分，所以增加卡数不会降低加载时的显存；加上 `--load partitioned`，预测就不计入加载阶段的显存"
        ),
        Note::RepeatedSequences { ranks } => tr!(
            language,
            "GPUs that share layers train on the same sequences: DeepSpeed's `train_batch_size` counts each sequence {ranks} times, but zeropilot counts its tokens once",
            "同一张量并行组的各张卡训练相同的序列：DeepSpeed 的 `train_batch_size` 会把每条序列算 {ranks} 次，这里的 token 数只算一次"
        ),
        Note::SharedGradients { times, avoided: true } => tr!(
            language,
            "zeropilot omits stages 1 and 2: with {times} GPUs per sequence, DeepSpeed multiplies gradients by {times} in these stages (`zeropilot rule G21`)",
            "不考虑 stage 1 和 2：{times} 张卡共同处理一条序列时，DeepSpeed 会把梯度乘以 {times}（`zeropilot rule G21`）"
        ),
        Note::SharedGradients { times, avoided: false } => tr!(
            language,
            "in this stage, DeepSpeed multiplies gradients and their norm by {times} if {times} GPUs share a sequence; use stage 3 (`zeropilot rule G21`)",
            "{times} 张卡共同处理一条序列时，DeepSpeed 在这个 stage 会把梯度及其范数乘以 {times}；请改用 stage 3（`zeropilot rule G21`）"
        ),
        Note::WideRows => tr!(
            language,
            "the hidden states on a GPU have more than 2³¹ elements. Published runs with Liger's kernels stay just below this limit; a run above this limit failed with an illegal memory access",
            "一张卡的隐藏状态超过 2³¹ 个元素；使用 Liger kernel 的公开训练都略低于这个数，唯一超过的一例报非法内存访问"
        ),
        Note::HpzVersion => tr!(
            language,
            "hpZ needs DeepSpeed 0.18.3 or later; in older versions, the first steps compute with wrong weights (deepspeedai/DeepSpeed#7606)",
            "hpZ 需要 DeepSpeed 0.18.3 或更新版本；更早的版本在最初几步用错误的权重计算（deepspeedai/DeepSpeed#7606）"
        ),
    }
}

/// That a run takes longer than most people wait.
fn long_run(tokens: u64, is_assumed: bool, days: u64, language: Language) -> String {
    let tokens = token_words(tokens as f64, language);
    match is_assumed {
        true => tr!(
            language,
            "on these GPUs, training on {tokens} takes {days} days; use more or faster GPUs, or LoRA",
            "用这些 GPU 训练 {tokens} 需要 {days} 天；请增加卡数、换更快的 GPU，或改用 LoRA"
        ),
        false => tr!(
            language,
            "on these GPUs, training on {tokens} takes {days} days; use more or faster GPUs, or fewer tokens",
            "用这些 GPU 训练 {tokens} 需要 {days} 天；请增加卡数、换更快的 GPU，或减少 token"
        ),
    }
}

/// What bf16 means on GPUs that have none.
pub(crate) fn no_bf16(card: &str, language: Language) -> String {
    tr!(
        language,
        "{card} does not support bf16: DeepSpeed rejects it, or PyTorch emulates it slowly, at an unknown speed",
        "{card} 不支持 bf16：DeepSpeed 会拒绝这种精度，或由 PyTorch 低速模拟，速度未知"
    )
}

/// Values of the job's files and of its framework, one a line.
fn from_job(provenance: &Provenance, language: Language) -> String {
    let is_of_job = |one: &&Statement| {
        !matches!(one.origin, Origin::Option | Origin::Assumed | Origin::Installed { .. })
    };
    let rows: Vec<[String; 3]> = provenance
        .statements
        .iter()
        .filter(is_of_job)
        .map(|one| {
            let name = words(one.name, language).to_owned();
            [
                name,
                escaped(&value(&one.value, language)).into_owned(),
                origin(&one.origin, language),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let widths: [usize; 2] =
        [0, 1].map(|at| rows.iter().map(|row| row[at].width()).max().unwrap_or(0));
    let head = match provenance.framework {
        None => tr!(language, "From the job:", "取自训练任务："),
        Some(framework) => {
            let name = framework.name();
            tr!(language, "From the job ({name}):", "取自训练任务（{name}）：")
        }
    };
    let mut text = format!("{head}\n");
    for [name, value, origin] in rows {
        let pad = |text: &str, width: usize| " ".repeat(width - text.width());
        let (first, second) = (pad(&name, widths[0]), pad(&value, widths[1]));
        text.push_str(&format!("  {name}{first}  {value}{second}  {origin}\n"));
    }
    text
}

/// What counts because it is installed, one a line.
fn installed(provenance: &Provenance, language: Language) -> String {
    let all = provenance.statements.iter();
    all.filter(|one| matches!(one.origin, Origin::Installed { .. }))
        .map(|one| {
            let (name, value) = (words(one.name, language), value(&one.value, language));
            let place = origin(&one.origin, language);
            tr!(language, "{name} {value} ({place}).\n", "{name} {value}（{place}）。\n")
        })
        .collect()
}

/// What nobody said, in a line; empty if everything was said.
pub(crate) fn assumed(provenance: &Provenance, language: Language) -> String {
    let assumed: Vec<String> = provenance
        .statements
        .iter()
        .filter(|one| one.origin == Origin::Assumed)
        .map(|one| {
            let (name, value) = (words(one.name, language), value(&one.value, language));
            match known(one.name) {
                Some((_, option)) => {
                    tr!(language, "{name} {value} ({option})", "{name} {value}（{option}）")
                }
                None => format!("{name} {value}"),
            }
        })
        .collect();
    if assumed.is_empty() {
        return String::new();
    }
    let list = assumed.join(Text::new(", ", "、").get(language));
    tr!(language, "Assumed: {list}.\n", "假定：{list}。\n")
}

fn unknown(provenance: &Provenance, language: Language) -> String {
    if provenance.unknown.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = provenance.unknown.iter().map(|name| words(name, language)).collect();
    let list = names.join(Text::new(", ", "、").get(language));
    tr!(
        language,
        "Known only at run time: {list}. Set these values with options.\n",
        "运行时才知道：{list}。请用选项指定。\n"
    )
}

/// That a verdict and its bounds leave something out that can need more; empty if they do not.
pub(crate) fn uncovered(provenance: &Provenance, language: Language) -> String {
    let left_out = provenance.not_modelled.iter();
    let count = left_out.filter(|one| one.direction != Direction::Lower).count();
    match count {
        0 => String::new(),
        1 => tr!(
            language,
            "The verdict and the bounds ignore one setting that zeropilot does not model; see below.\n",
            "上面的结论和上下界没有计入 1 项未建模的内容，见下文。\n"
        ),
        _ => tr!(
            language,
            "The verdict and the bounds ignore {count} settings that zeropilot does not model; see below.\n",
            "上面的结论和上下界没有计入 {count} 项未建模的内容，见下文。\n"
        ),
    }
}

/// One line for each thing that no prediction follows.
pub fn not_modelled(all: &[NotModelled], language: Language) -> String {
    all.iter()
        .map(|one| {
            let what = match language {
                Language::English => &one.en,
                Language::Chinese => &one.zh,
            };
            let (written, place) = (escaped(&one.written), origin(&one.origin, language));
            let effect = effect(one.direction).get(language);
            tr!(
                language,
                "Not modeled: {what} (`{written}`, {place}). {effect}\n",
                "未建模：{what}（`{written}`，{place}）。{effect}\n"
            )
        })
        .collect()
}

fn effect(direction: Direction) -> Text {
    match direction {
        Direction::Lower => Text::new(
            "The run may need less memory or time than predicted.",
            "实际占用或耗时可能低于预测。",
        ),
        Direction::Higher => Text::new(
            "The run needs more memory or time than predicted.",
            "实际占用或耗时高于预测。",
        ),
        Direction::Either => Text::new(
            "The run may need less or more memory or time than predicted.",
            "实际占用或耗时可能低于或高于预测。",
        ),
    }
}

/// Where a value comes from, in a few words.
pub fn origin(origin: &Origin, language: Language) -> String {
    match origin {
        Origin::File { name, line } => {
            let name = escaped(name);
            format!("{name}:{line}")
        }
        Origin::FrameworkDefault { version } => {
            tr!(language, "default of {version}", "{version} 的默认值")
        }
        Origin::Installed { place } => {
            let place = escaped(place);
            tr!(language, "installed in {place}", "安装在 {place}")
        }
        Origin::Option => tr!(language, "option", "选项"),
        Origin::Assumed => tr!(language, "assumed", "假定"),
    }
}

fn value(value: &Value, language: Language) -> String {
    match value {
        Value::Bool(true) => Text::new("on", "开").get(language).to_owned(),
        Value::Bool(false) => Text::new("off", "关").get(language).to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// That the config of a job cannot be read before it runs.
pub fn unreadable_config(problem: &UnreadableConfig, language: Language) -> String {
    let help = if problem.is_computed {
        Text::new(
            "pass the config with --config, or set --stage and --offload",
            "用 --config 给出配置，或用 --stage 和 --offload 指定",
        )
    } else {
        Text::new(
            "run zeropilot in the directory where you start the job, or pass the config with --config",
            "在启动任务的目录运行 zeropilot，或用 --config 给出配置",
        )
    };
    let (why, help) = (unreadable(problem, language), help.get(language));
    tr!(language, "{why}\n  help: {help}", "{why}\n  建议：{help}")
}

/// The same without what to do about it.
pub(crate) fn unreadable(problem: &UnreadableConfig, language: Language) -> String {
    let (name, place) = (escaped(&problem.name), origin(&problem.origin, language));
    if problem.is_computed {
        return tr!(
            language,
            "error: the script builds its DeepSpeed config at run time ({place})",
            "错误：脚本在运行时才生成 DeepSpeed 配置（{place}）"
        );
    }
    tr!(
        language,
        "error: the job names the DeepSpeed config {name} ({place}), which does not exist",
        "错误：任务使用的 DeepSpeed 配置 {name}（{place}）不存在"
    )
}
