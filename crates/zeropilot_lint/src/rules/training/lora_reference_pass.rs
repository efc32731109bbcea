use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::{STAGE_2, STAGE_3};
use zeropilot_job::{Framework, TaskName};
use zeropilot_text::Text;

use super::tasks::{Task, tasks};

pub(crate) static RULE: Rule = Rule {
    code: "G18",
    name: "lora-reference-pass",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new(
        "DPO with LoRA in ZeRO stage 3 gathers weights one by one",
        "stage 3 下用 LoRA 做 DPO，权重会逐个聚合",
    ),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/trl trl/trainer/dpo_trainer.py, compute_ref_log_probs",
        "deepspeedai/DeepSpeed deepspeed/runtime/zero/partitioned_param_coordinator.py, trace_prologue and _invalidate_trace",
    ],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args, peft_config=LoraConfig(r=8)).train()\n"),
        ("ds.json", STAGE_3),
    ])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1, precompute_ref_log_probs=True)\nDPOTrainer(model='m', args=args, peft_config=LoraConfig(r=8)).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args, peft_config=LoraConfig(r=8)).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the reference pass of DPO with LoRA disables prefetching: DeepSpeed gathers weights one by one",
        "用 LoRA 做 DPO 时，参考模型的前向会使预取失效：DeepSpeed 逐个聚合权重",
    ),
    why: Text::new(
        "The reference pass turns the adapters off, so the model runs other modules than DeepSpeed recorded, and DeepSpeed discards its record in every micro-step. A measured step of a small model ran 74 all-gathers; with precomputed reference log probabilities, it ran 2.",
        "参考模型就是关掉适配器的同一个模型，用到的模块与 DeepSpeed 记录的不同，所以每个 micro step 里 DeepSpeed 都会丢弃记录。小模型的一步实测有 74 次 all-gather；预先算好参考对数概率后只有 2 次。",
    ),
    help: Text::new(
        "set `precompute_ref_log_probs=True`: the reference model then runs only once, before training (the dataset must not be streamed)",
        "设 `precompute_ref_log_probs=True`：参考模型只在训练前运行一次（数据集不能是流式的）",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in tasks(job).filter(|task| task.stage == Some(3) && runs_without_adapters(task)) {
        found.at(&task.place, Diagnostic::new(&RULE, &WORDING, "", task.place.span));
    }
}

/// Whether the trained model is its own reference.
fn runs_without_adapters(task: &Task<'_>) -> bool {
    let said = task.job.task.as_ref();
    task.name == TaskName::Dpo
        && task.job.framework == Some(Framework::Trl)
        && task.trainer.is_some()
        && task.adapts() == Some(true)
        && said.is_some_and(|said| said.reference.is_none())
        && !task.is_handed("ref_model")
        && ["precompute_ref_log_probs", "reference_free"].iter().all(|name| task.is_off(name))
}
