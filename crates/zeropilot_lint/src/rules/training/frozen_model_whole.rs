use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::{STAGE_2, STAGE_3};
use zeropilot_job::Framework;
use zeropilot_text::Text;

use super::frozen_models;

pub(crate) static RULE: Rule = Rule {
    code: "G16",
    name: "frozen-model-whole",
    group: Group::Gradients,
    severity: Severity::Note,
    summary: Text::new(
        "below ZeRO stage 3, every GPU holds the full reference or teacher model",
        "stage 低于 3 时，每张卡上都有一份完整的参考模型或教师模型",
    ),
    wordings: &[&WORDING, &IN_LLAMAFACTORY],
    sources: &["huggingface/trl trl/models/utils.py, prepare_deepspeed"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("NPROC_PER_NODE=2 swift rlhf --rlhf_type kto --model m --train_type full --deepspeed ds.json")
            .files(&[("ds.json", STAGE_2)]),
        Example::job("FORCE_TORCHRUN=1 NPROC_PER_NODE=2 llamafactory-cli train dpo.yaml").files(&[
            ("dpo.yaml", "model_name_or_path: m\nstage: dpo\nfinetuning_type: full\ndeepspeed: ds.json\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1, precompute_ref_log_probs=True)\nDPOTrainer(model='m', args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args, peft_config=LoraConfig(r=8)).train()\n"),
            ("ds.json", STAGE_2),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = ORPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nORPOTrainer(model='m', args=args).train()\n"),
            ("ds.json", STAGE_2),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "every GPU holds the full reference or teacher model: only ZeRO stage 3 partitions it",
        "每张卡上都有一份完整的参考模型或教师模型：只有 ZeRO stage 3 才会切分它",
    ),
    why: Text::new(
        "For a frozen model, TRL, LLaMA-Factory and ms-swift create a separate DeepSpeed engine, which changes every stage except 3 to 0. The frozen weights are then not partitioned and use 2 bytes per parameter on each GPU.",
        "TRL、LLaMA-Factory 和 ms-swift 会为冻结的模型另建一个 DeepSpeed engine。它只保留 stage 3，其他 stage 都会变成 0，所以冻结的权重不会被切分：每张卡上每个参数占 2 字节。",
    ),
    help: Text::new(
        "use stage 3, set `precompute_ref_log_probs=True` (DPO and KTO), or use LoRA, which needs no second model. `zeropilot memory` shows how much GPU memory each option saves",
        "改用 stage 3；DPO 和 KTO 也可以设 `precompute_ref_log_probs=True`；或者用 LoRA，不需要第二个模型。`zeropilot memory` 会给出每种做法能省多少显存",
    ),
};

/// LLaMA-Factory cannot compute the reference before training.
static IN_LLAMAFACTORY: Wording = Wording {
    message: WORDING.message,
    why: WORDING.why,
    help: Text::new(
        "use stage 3, or set `finetuning_type: lora`, which needs no second model. `zeropilot memory` shows how much GPU memory each option saves",
        "改用 stage 3；或者设 `finetuning_type: lora`，不需要第二个模型。`zeropilot memory` 会给出每种做法能省多少显存",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in frozen_models::launches(job) {
        if matches!(task.stage, Some(0..=2)) {
            let wording = match task.job.framework {
                Some(Framework::LlamaFactory) => &IN_LLAMAFACTORY,
                _ => &WORDING,
            };
            found.at(&task.place, Diagnostic::new(&RULE, wording, "", task.place.span));
        }
    }
}
