use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Place};
use zeropilot_text::Text;

use super::model_first::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "I12",
    name: "fsdp-with-deepspeed",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new("FSDP together with DeepSpeed", "FSDP 与 DeepSpeed 同时使用"),
    wordings: &[&REFUSED, &UNUSED],
    sources: &[],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --fsdp full_shard").files(&[("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', fsdp='full_shard auto_wrap', per_device_train_batch_size=1)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("accelerate launch --config_file acc.yaml t.py").files(&[
            ("acc.yaml", "distributed_type: FSDP\nnum_processes: 2\nmixed_precision: bf16\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"),
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', bf16=True, per_device_train_batch_size=1)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("accelerate launch --use_fsdp --num_processes 2 t.py --deepspeed ds.json").files(&[("ds.json", STAGE_3)]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --fsdp ''").files(&[("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --fsdp False").files(&[("ds.json", STAGE_3)]),
    ],
    is_no_op: false,
};

static REFUSED: Wording = Wording {
    message: Text::new(
        "the HF Trainer rejects `fsdp` together with `deepspeed`",
        "HF Trainer 不允许同时使用 `fsdp` 和 `deepspeed`",
    ),
    why: Text::new(
        "FSDP and DeepSpeed both partition the model over the ranks. The Trainer exits with `Using --fsdp xxx together with --deepspeed is not possible`.",
        "FSDP 和 DeepSpeed 都要把模型切分到各个 rank 上。Trainer 会报错退出：`Using --fsdp xxx together with --deepspeed is not possible`。",
    ),
    help: Text::new("keep only one of `fsdp` and `deepspeed`", "`fsdp` 和 `deepspeed` 只保留一个"),
};

static UNUSED: Wording = Wording {
    message: Text::new(
        "accelerate is set to FSDP and the Trainer to DeepSpeed: the run uses DeepSpeed, not FSDP",
        "accelerate 设置了 FSDP，Trainer 设置了 DeepSpeed：实际用 DeepSpeed 训练，FSDP 不生效",
    ),
    why: Text::new(
        "The Trainer turns DeepSpeed on before accelerate selects a training method, and accelerate gives DeepSpeed priority. The run silently ignores everything under `fsdp_config`.",
        "Trainer 会先打开 DeepSpeed，accelerate 选择训练方式时优先用 DeepSpeed；`fsdp_config` 下的设置全部不生效，也没有提示。",
    ),
    help: Text::new(
        "for DeepSpeed, set `distributed_type: DEEPSPEED`, or start the run with torchrun; for FSDP, remove `deepspeed` from the training arguments",
        "要用 DeepSpeed，请写 `distributed_type: DEEPSPEED` 或改用 torchrun 启动；要用 FSDP，请从训练参数里删掉 `deepspeed`",
    ),
};

/// Where accelerate is asked for FSDP.
fn asked_of_accelerate(launch: &Launch) -> Option<Place> {
    if launch.by_accelerate {
        return None;
    }
    let option = launch.option("use_fsdp").map(|word| Place::here(word.span));
    let kind = launch.distributed_type.as_ref().filter(|kind| kind.value == "FSDP");
    option.or_else(|| kind.map(|kind| kind.place.clone()))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in &job.job.launches {
        let given = &launch.given;
        let has_config = given.config.is_some() || given.dictionary.is_some();
        let said = given.said("fsdp").filter(|said| {
            // Alone on a command line it looks like an empty text, which switches it off.
            !matches!(said.value.to_lowercase().as_str(), "" | "false" | "none" | "no" | "0")
        });
        if let Some(said) = said
            && has_config
            && given.front_end == Some(FrontEnd::HfTrainer)
        {
            found.at(&said.place, Diagnostic::new(&RULE, &REFUSED, "", said.place.span));
        } else if let Some(place) = asked_of_accelerate(launch)
            && has_config
            && given.front_end == Some(FrontEnd::HfTrainer)
        {
            let diagnostic = Diagnostic::new(&RULE, &UNUSED, "", place.span);
            found.at(&place, diagnostic.severity(Severity::Warning));
        }
    }
}
