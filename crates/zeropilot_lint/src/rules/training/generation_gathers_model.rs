use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::{STAGE_2, STAGE_3};
use zeropilot_job::{Framework, RolloutName};
use zeropilot_text::Text;

use super::tasks::{Task, tasks};

pub(crate) static RULE: Rule = Rule {
    code: "G17",
    name: "generation-gathers-model",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new(
        "in ZeRO stage 3, every GPU gathers the full model to generate completions",
        "stage 3 下生成补全时，每张卡都会聚合整个模型",
    ),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/trl trl/models/utils.py, unwrap_model_for_generation and add_hooks",
        "modelscope/ms-swift swift/rlhf_trainers/rollout_mixin.py",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model m --train_type lora --deepspeed zero3"),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, ds3_gather_for_generation=False)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GKDConfig(deepspeed='ds.json', per_device_train_batch_size=1, lmbda=0.0)\nGKDTrainer(model='m', teacher_model='t', args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py --config grpo.yaml").files(&[
            ("t.py", "args, model = TrlParser((GRPOConfig, ModelConfig)).parse_args_and_config()\nGRPOTrainer(model=model.model_name_or_path, reward_funcs=score, args=args).train()\n"),
            ("grpo.yaml", "use_vllm: true\ndeepspeed: ds.json\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "each time the trainer generates completions, every GPU gathers the full model",
        "每次生成补全时，每张卡都会聚合整个模型",
    ),
    why: Text::new(
        "In ZeRO stage 3, the full model needs 2 bytes per 16-bit parameter on each GPU, regardless of the number of GPUs. From TRL 1.5 on, DeepSpeed also loses its record of the weight order: the next micro-step gathers weights one by one, without prefetching.",
        "ZeRO stage 3 下，不管有多少张卡，聚合后的完整模型在每张卡上每个 16 位参数都占 2 字节。从 TRL 1.5 起，这还会让 DeepSpeed 丢失权重使用顺序的记录，下一个 micro step 不会预取，而是逐个聚合权重。",
    ),
    help: Text::new(
        "generate with vLLM (`use_vllm=True`, not in TRL's GKD), raise `steps_per_generation`, or, for GRPO and RLOO, set `ds3_gather_for_generation=False` (less GPU memory, but much slower)",
        "改用 vLLM 生成（`use_vllm=True`，TRL 的 GKD 没有这个选项），或调大 `steps_per_generation`；GRPO 和 RLOO 也可以设 `ds3_gather_for_generation=False`（占用的显存更少，但慢得多）",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in tasks(job).filter(|task| task.stage == Some(3) && generates_itself(task)) {
        found.at(&task.place, Diagnostic::new(&RULE, &WORDING, "", task.place.span));
    }
}

/// Whether the trained model generates by itself, gathered whole.
fn generates_itself(task: &Task<'_>) -> bool {
    let has_trainer = match task.job.framework {
        Some(Framework::Trl) => task.trainer.is_some(),
        Some(Framework::Swift | Framework::Axolotl) => true,
        _ => false,
    };
    let rollout = task.job.task.as_ref().and_then(|said| said.rollout.as_ref());
    let is_left = rollout.is_none_or(|said| said.value == RolloutName::Generate);
    let is_unknown = |name: &str| task.launch.given.unknown.iter().any(|unknown| unknown == name);
    task.name.generates()
        && has_trainer
        && is_left
        && task.is_off("use_vllm")
        && !is_unknown("lmbda")
        && task.said("ds3_gather_for_generation").is_none()
        && !is_unknown("ds3_gather_for_generation")
        && !task.is_handed("rollout_func")
}
