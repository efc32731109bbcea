use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::STAGE_2;
use zeropilot_job::{Framework, Said};
use zeropilot_text::Text;

use super::tasks::{Task, tasks};

pub(crate) static RULE: Rule = Rule {
    code: "G20",
    name: "vllm-stays-awake",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new(
        "vLLM on the training GPUs keeps its GPU memory while the model trains",
        "与训练同卡的 vLLM 在训练时不释放显存",
    ),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/trl#2927",
        "huggingface/trl trl/generation/vllm_generation.py, VLLMGeneration",
        "modelscope/ms-swift swift/rlhf_trainers/args_mixin.py, sleep_level",
    ],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True, vllm_mode='colocate', vllm_gpu_memory_utilization=0.9)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model m --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.95 --deepspeed zero2"),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True, vllm_mode='colocate', vllm_gpu_memory_utilization=0.3)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8, use_vllm=True, vllm_mode='colocate', vllm_gpu_memory_utilization=0.9, vllm_enable_sleep_mode=True)\nGRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model m --use_vllm true --vllm_mode server --vllm_gpu_memory_utilization 0.9 --deepspeed zero2"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "vLLM reserves the fraction {share} of each GPU's memory, even while the model trains",
        "vLLM 占用每张卡显存的比例为 {share}，训练时也不释放",
    ),
    why: Text::new(
        "If `vllm_mode` is `colocate` and vLLM never sleeps, it reserves a fixed fraction of each training GPU's memory until the job ends. Model states and activations must fit in the rest.",
        "如果 `vllm_mode` 为 `colocate`，且 vLLM 在不生成时不休眠，它会一直占用每张训练卡显存的固定比例，直到任务结束。模型状态和激活值只能放在剩下的显存里。",
    ),
    help: Text::new(
        "let vLLM sleep while the model trains (`vllm_enable_sleep_mode=True` in TRL, `--sleep_level 1` in ms-swift), and lower `vllm_gpu_memory_utilization`: TRL's default is 0.3",
        "让 vLLM 在训练时休眠（TRL 用 `vllm_enable_sleep_mode=True`，ms-swift 用 `--sleep_level 1`），并调低 `vllm_gpu_memory_utilization`：TRL 的默认值是 0.3",
    ),
};

/// From this share on, next to nothing is left; it is vLLM's own default, meant for a GPU of its own.
const NEARLY_ALL: f64 = 0.9;

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in tasks(job) {
        if let Some(said) = kept_share(&task) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", said.place.span)
                .with("share", said.value.as_str());
            found.at(&said.place, diagnostic);
        }
    }
}

/// The share that vLLM keeps, where it is nearly everything.
fn kept_share<'a>(task: &Task<'a>) -> Option<&'a Said> {
    let sleep = match task.job.framework {
        Some(Framework::Trl) => "vllm_enable_sleep_mode",
        Some(Framework::Swift) => "sleep_level",
        _ => return None,
    };
    let is_beside = task.said("vllm_mode").is_some_and(|mode| mode.value == "colocate");
    let is_awake = task.is_on("use_vllm") == Some(true) && task.is_off(sleep);
    let share = task.said("vllm_gpu_memory_utilization").filter(|_| is_beside && is_awake)?;
    let is_nearly_all = share.value.parse::<f64>().is_ok_and(|share| share >= NEARLY_ALL);
    is_nearly_all.then_some(share)
}
