use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::model_first::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "I12",
    name: "fsdp-with-deepspeed",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new("FSDP together with DeepSpeed", "FSDP 与 DeepSpeed 同时使用"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --fsdp full_shard").files(&[("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', fsdp='full_shard auto_wrap', per_device_train_batch_size=1)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --fsdp ''").files(&[("ds.json", STAGE_3)]),
        Example::job("torchrun --nproc_per_node 2 t.py --deepspeed ds.json --fsdp False").files(&[("ds.json", STAGE_3)]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`fsdp` and `deepspeed` are given together, which the HF Trainer refuses",
        "同时给了 `fsdp` 和 `deepspeed`，HF Trainer 不允许",
    ),
    why: Text::new(
        "both shard the model over the ranks. The Trainer ends with `Using --fsdp xxx together with --deepspeed is not possible`.",
        "两者都要把模型切分到各个进程上。Trainer 会报错退出：`Using --fsdp xxx together with --deepspeed is not possible`。",
    ),
    help: Text::new("keep one of them", "只保留其中一个"),
};

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
            found.at(&said.place, Diagnostic::new(&RULE, &WORDING, "", said.place.span));
        }
    }
}
