use zeropilot_config::front_end::FrontEnd;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launch, Launcher, Place, Value};
use zeropilot_text::Text;

use super::model_first::STAGE_3;

pub(crate) static RULE: Rule = Rule {
    code: "S08",
    name: "checkpoint-without-state",
    group: Group::Saving,
    severity: Severity::Error,
    summary: Text::new(
        "the run resumes from a checkpoint without DeepSpeed's state",
        "续训用的 checkpoint 里没有 DeepSpeed 的状态",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers#23693", "Haochen-Wang409/ross#13"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", RESUMES),
            ("ds.json", STAGE_3),
            ("out/checkpoint-10/trainer_state.json", "{}"),
        ]),
        Example::job("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml").files(&[
            ("x.yaml", "stage: sft\nbf16: true\ndeepspeed: ds.json\nresume_from_checkpoint: out/checkpoint-10\n"),
            ("ds.json", STAGE_3),
            ("out/checkpoint-10/trainer_state.json", "{}"),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", RESUMES),
            ("ds.json", STAGE_3),
            ("out/checkpoint-10/trainer_state.json", "{}"),
            ("out/checkpoint-10/latest", "global_step10"),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", RESUMES),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

const RESUMES: &str = "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\ntrainer.train(resume_from_checkpoint='out/checkpoint-10')\n";

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` has no DeepSpeed state to resume from",
        "`{path}` 里没有可供续训的 DeepSpeed 状态",
    ),
    why: Text::new(
        "The directory has a `trainer_state.json` but no `latest`: the run that saved this checkpoint used `save_only_model` or did not use DeepSpeed. The HF Trainer loads only DeepSpeed's checkpoint and exits with `Can't find a valid checkpoint` or `failed to resume from checkpoint`.",
        "目录里有 `trainer_state.json` 却没有 `latest`：保存时用了 `save_only_model`，或者没有用 DeepSpeed。HF Trainer 只加载 DeepSpeed 的 checkpoint，因此会报错退出：`Can't find a valid checkpoint` 或 `failed to resume from checkpoint`。",
    ),
    help: Text::new(
        "start a new run from the weights in this directory, or resume from a checkpoint that was saved under DeepSpeed without `save_only_model`",
        "用这个目录里的权重重新开始训练；或者改用没有开启 `save_only_model`、在 DeepSpeed 下保存的 checkpoint 续训",
    ),
};

/// The checkpoint that is sure to be resumed, and where it is named.
fn resumed(launch: &Launch) -> Option<(String, Place)> {
    if let (Some(script), Some(name)) = (&launch.script, &launch.program) {
        let train = script.calls.iter().find(|call| {
            call.name() == "train" && call.argument(0, "resume_from_checkpoint").is_some()
        })?;
        return match train.argument(0, "resume_from_checkpoint")? {
            (Value::Literal(path), span) => Some((path.clone(), Place::in_file(name, span))),
            _ => None,
        };
    }
    let given = &launch.given;
    let is_taken = match launch.launcher {
        // Reward models and PPO start anew, whatever is said.
        Launcher::LlamaFactory => !matches!(given.value("stage"), Some("rm" | "ppo")),
        Launcher::Swift => given.said("resume_only_model").is_none(),
        Launcher::Axolotl => true,
        _ => false,
    };
    let said = given.said("resume_from_checkpoint").filter(|_| is_taken)?;
    Some((said.value.clone(), said.place.clone()))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in &job.job.launches {
        let given = &launch.given;
        let has_config = given.config.is_some() || given.dictionary.is_some();
        if !has_config || given.front_end != Some(FrontEnd::HfTrainer) {
            continue;
        }
        let Some((path, place)) = resumed(launch) else { continue };
        let directory = path.trim_end_matches('/');
        let has = |name: &str| (job.files)(&format!("{directory}/{name}")).is_some();
        if has("trainer_state.json") && !has("latest") && !has("latest_universal") {
            let diagnostic =
                Diagnostic::new(&RULE, &WORDING, "", place.span).with("path", directory);
            found.at(&place, diagnostic);
        }
    }
}
