use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::{STAGE_2, STAGE_3};
use zeropilot_job::Framework;
use zeropilot_text::Text;

use super::tasks::{Task, tasks};

pub(crate) static RULE: Rule = Rule {
    code: "G19",
    name: "vllm-sync-gathers-model",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new(
        "in ZeRO stage 3, every GPU gathers the full model to pass its weights to vLLM",
        "stage 3 下，把权重交给 vLLM 时每张卡都会聚合整个模型",
    ),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/trl trl/generation/vllm_generation.py, _iter_named_params",
        "modelscope/ms-swift swift/rlhf_trainers/rollout_mixin.py, split_batches",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True, vllm_mode='server')\nGRPOTrainer(model='m', reward_funcs=score, args=args, peft_config=LoraConfig(r=8)).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model m --train_type lora --use_vllm true --vllm_mode server --deepspeed zero3"),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True, vllm_mode='server')\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True, vllm_mode='server')\nGRPOTrainer(model='m', reward_funcs=score, args=args, peft_config=LoraConfig(r=8)).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model m --train_type lora --use_vllm true --vllm_mode server --move_model_batches 16 --deepspeed zero3"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "before each generation, every GPU gathers the full model to pass its weights to vLLM",
        "每次生成之前，每张卡都会聚合整个模型，再把权重交给 vLLM",
    ),
    why: Text::new(
        "The gathered model needs 2 bytes per 16-bit parameter on each GPU, regardless of the number of GPUs. TRL gathers it to merge LoRA adapters, which PEFT cannot do on shards; ms-swift always gathers it, unless `--move_model_batches` splits the model.",
        "不管有多少张卡，聚合后的模型在每张卡上每个 16 位参数都占 2 字节。PEFT 不能在分片上合并 LoRA 的适配器，所以 TRL 会一次聚合全部权重；ms-swift 不管用哪种方法都这样做，除非用 `--move_model_batches` 把模型分批。",
    ),
    help: Text::new(
        "in ms-swift, set `--move_model_batches 16`; in TRL, leave GPU memory for the full model, or use LoRA in stage 2, which needs no gathering",
        "ms-swift 请设 `--move_model_batches 16`；TRL 请在每张卡上给整个模型留出显存，或者在 stage 2 下用 LoRA，不需要聚合",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in tasks(job).filter(|task| task.stage == Some(3) && gathers_at_once(task)) {
        found.at(&task.place, Diagnostic::new(&RULE, &WORDING, "", task.place.span));
    }
}

fn gathers_at_once(task: &Task<'_>) -> bool {
    let is_unknown = |name: &str| task.launch.given.unknown.iter().any(|unknown| unknown == name);
    let is_whole = match task.job.framework {
        Some(Framework::Trl) => task.trainer.is_some() && task.adapts() == Some(true),
        Some(Framework::Swift) => {
            task.said("move_model_batches").is_none() && !is_unknown("move_model_batches")
        }
        _ => false,
    };
    task.name.generates()
        && is_whole
        && task.is_on("use_vllm") == Some(true)
        && !task.is_handed("rollout_func")
}
