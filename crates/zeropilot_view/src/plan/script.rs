//! What a training script must do so that long sequences fit, as words and as code.

use zeropilot_job::Origin;
use zeropilot_plan::{Fitting, Target};
use zeropilot_step::shape::{Checkpoints, LongContext, MlpTiles};
use zeropilot_text::{Language, Text, tr};

use super::PlanReport;
use crate::strategy;

/// ", each sequence divided among 8 GPUs, activation checkpoints in host memory, tiled MLP".
pub(super) fn long_context(long: LongContext, language: Language) -> String {
    let LongContext { sequence_ranks, checkpoints, mlp_tiles } = long;
    let shared = match sequence_ranks {
        0 | 1 => String::new(),
        ranks => tr!(
            language,
            ", each sequence divided among {ranks} GPUs",
            "，每条序列切分到 {ranks} 张卡上"
        ),
    };
    let on_host = match checkpoints {
        Checkpoints::OnHost => {
            Text::new(", activation checkpoints in host memory", "，梯度检查点放在主机内存")
        }
        _ => Text::new("", ""),
    };
    let tiled = match mlp_tiles {
        MlpTiles::Whole => Text::new("", ""),
        _ => Text::new(", tiled MLP", "，MLP 分块"),
    };
    format!("{shared}{}{}", on_host.get(language), tiled.get(language))
}

/// "4 per GPU × 1 accumulation step × 8 GPUs", or per group of GPUs that share a sequence.
pub(super) fn batch(
    micro: u64,
    steps: u64,
    groups: u64,
    shares: u64,
    language: Language,
) -> String {
    let accumulated = strategy::accumulation(steps);
    if shares == 1 {
        let gpus = if groups == 1 { "GPU" } else { "GPUs" };
        return tr!(
            language,
            "{micro} per GPU × {accumulated} × {groups} {gpus}",
            "每卡 {micro} × 梯度累积 {steps} × {groups} 张卡"
        );
    }
    let name = if groups == 1 { "group" } else { "groups" };
    tr!(
        language,
        "{micro} per group of {shares} GPUs × {accumulated} × {groups} {name}",
        "每组（{shares} 张卡）{micro} × 梯度累积 {steps} × {groups} 组"
    )
}

/// The code that a script needs beside the config; empty where it needs none.
pub(super) fn code(report: &PlanReport<'_>, choice: &Fitting, language: Language) -> String {
    let long = choice.way.work.long_context;
    let target = choice.recipe.target;
    let ranks = long.sequence_ranks;
    let shares = ranks > 1 && target != Target::Swift && !divides_already(report, ranks);
    let is_tiled = long.mlp_tiles != MlpTiles::Whole;
    let is_on_host = long.checkpoints == Checkpoints::OnHost;
    let shared = || {
        tr!(
            language,
            "divide each sequence among {ranks} GPUs (DeepSpeed's Ulysses)",
            "把每条序列分到 {ranks} 张卡（DeepSpeed Ulysses）"
        )
    };
    let tiled =
        Text::new("compute MLPs in tiles (example for Llama)", "分块计算 MLP（以 Llama 为例）");
    let on_host =
        Text::new("keep activation checkpoints in host memory", "把梯度检查点放到主机内存");
    let changes: Vec<String> = [
        shares.then(shared),
        is_tiled.then(|| tiled.get(language).to_owned()),
        is_on_host.then(|| on_host.get(language).to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if changes.is_empty() {
        return String::new();
    }
    let changes = changes.join(Text::new(", ", "，").get(language));
    let mut text = tr!(language, "\nYour script must {changes}:\n", "\n训练脚本需要{changes}：\n");
    let mut add = |is_needed: bool, code: &str| {
        if is_needed {
            text.extend(code.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n"));
        }
    };
    add(is_tiled, TILED_MLP);
    let micro = choice.way.work.micro_batch;
    add(shares, &sequence_parallel(target, ranks, micro, report.length));
    let has_loop = shares && target != Target::HfTrainer;
    let built = Text::new("…  # build the model", "…  # 构建模型").get(language);
    add(has_loop || is_on_host, built);
    add(is_on_host, CHECKPOINTS_ON_HOST);
    add(has_loop, SHARED_STEP);
    text
}

/// Whether the files of the job already divide each sequence among so many GPUs.
fn divides_already(report: &PlanReport<'_>, ranks: u64) -> bool {
    report.provenance.statements.iter().any(|one| {
        one.name == "sequence_parallel"
            && matches!(one.origin, Origin::File { .. })
            && one.value == ranks
    })
}

/// How a script says that ranks share sequences.
fn sequence_parallel(target: Target, ranks: u64, micro: u64, length: u64) -> String {
    if target == Target::HfTrainer {
        return format!(
            "from accelerate import ParallelismConfig\n\
             from accelerate.utils import DeepSpeedSequenceParallelConfig\n\
             shared = ParallelismConfig(\n    \
                 sp_size={ranks}, sp_backend=\"deepspeed\",\n    \
                 sp_handler=DeepSpeedSequenceParallelConfig(sp_attn_implementation=\"flash_attention_2\"),\n\
             )\n\
             args = TrainingArguments(..., parallelism_config=shared)\n"
        );
    }
    format!(
        "from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF, UlyssesSPDataLoaderAdapter\n\
         mpu = UlyssesSPAttentionHF.register_with_transformers(\n    \
             model_name_or_path=MODEL, core_attn_implementation=\"flash_attention_2\",\n    \
             sequence_parallel_size={ranks}, micro_batch_size={micro}, seq_length={length},\n\
         )\n"
    )
}

/// The same after the model is built: the engine, the loader, and a loss over the tokens of all ranks.
const SHARED_STEP: &str = r#"engine, _, _, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config="ds_config.json", mpu=mpu,
)
group = mpu.get_sequence_parallel_group()
loader = UlyssesSPDataLoaderAdapter(
    loader, sp_rank=mpu.get_sequence_parallel_rank(), sp_group=group,
    sp_world_size=mpu.get_sequence_parallel_world_size(), device=engine.device,
)
for batch in loader:  # input_ids, position_ids and labels; the adapter makes shift_labels from these
    loss = engine(**batch).loss
    counted = (batch["shift_labels"] != -100).sum()
    losses = torch.distributed.nn.functional.all_gather(loss, group=group)
    counts = torch.distributed.nn.functional.all_gather(counted, group=group)
    engine.backward(sum(loss * count for loss, count in zip(losses, counts)) / sum(counts))
    engine.step()
"#;

/// Inputs of checkpointed layers on the host: a reentrant checkpoint saves nothing else while it runs.
const CHECKPOINTS_ON_HOST: &str = r#"import torch.utils.checkpoint as checkpoint
apply = checkpoint.CheckpointFunction.apply

def on_host(*args):
    to_host = lambda tensor: (tensor.device, tensor.to("cpu"))
    to_device = lambda saved: saved[1].to(saved[0])
    with torch.autograd.graph.saved_tensors_hooks(to_host, to_device):
        return apply(*args)

checkpoint.CheckpointFunction.apply = on_host
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
"#;

/// A feed-forward layer in tiles.
const TILED_MLP: &str = r#"import math
from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledMLP
from transformers.models.llama import modeling_llama

def tiled(self, x):
    shards = torch.tensor(math.ceil(x.shape[-2] / x.shape[-1]), device=x.device)
    torch.distributed.all_reduce(shards, op=torch.distributed.ReduceOp.MAX)
    weights = [self.down_proj.weight, self.gate_proj.weight, self.up_proj.weight]
    compute = lambda self, x: self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
    return TiledMLP.apply(compute, self, x, shards.item(), weights)

modeling_llama.LlamaMLP.forward = tiled
"#;
