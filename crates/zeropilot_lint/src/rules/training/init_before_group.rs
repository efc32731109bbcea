use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::settings::Settings;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::Value;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B02",
    name: "config-before-process-group",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new(
        "the script reads the config before it starts the process group",
        "脚本在建立进程组之前就读取了配置",
    ),
    wordings: &[&WORDING],
    sources: &[
        "hiyouga/LlamaFactory#2574",
        "deepspeedai/DeepSpeed#3228",
        "deepspeedai/DeepSpeed#6914",
    ],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py").files(&[
        ("t.py", "with deepspeed.zero.Init(config_dict_or_path='ds.json'):\n    model = Model()\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
        ("ds.json", THREE_SIZES),
    ])],
    good: &[
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "deepspeed.init_distributed()\nwith deepspeed.zero.Init(config_dict_or_path='ds.json'):\n    model = Model()\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", THREE_SIZES),
        ]),
        Example::job("deepspeed --num_gpus 2 t.py").files(&[
            ("t.py", "with deepspeed.zero.Init(config_dict_or_path='ds.json'):\n    model = Model()\nengine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
            ("ds.json", super::STAGE_3),
        ]),
    ],
    is_no_op: false,
};

const THREE_SIZES: &str = r#"{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` reads `{name}` as if there were only 1 rank, so its batch sizes do not match",
        "`{call}` 读取 `{name}` 时会当作只有 1 个 rank，三个 batch 大小对不上",
    ),
    why: Text::new(
        "The script reads the config before it starts the process group, and without a group, DeepSpeed assumes 1 rank. It exits with `train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size`, regardless of the actual number of ranks.",
        "脚本在建立进程组之前读取配置，没有进程组时，DeepSpeed 按 1 个 rank 计算。不管实际有几个 rank，都会报错退出：`train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size`。",
    ),
    help: Text::new(
        "call `deepspeed.init_distributed()` first, or omit `train_batch_size` from the config",
        "先调用 `deepspeed.init_distributed()`，或在配置里去掉 `train_batch_size`",
    ),
};

/// Calls that start the process group, by themselves or as part of something else.
const STARTS: [&str; 6] = [
    "init_distributed",
    "init_process_group",
    "init_device_mesh",
    "Accelerator",
    "PartialState",
    "initialize_distributed",
];

/// Whether a config is taken for as many ranks as there are and not for one.
fn needs_all_ranks(job: &JobView<'_>, text: &str, training: &Training<'_>) -> bool {
    let taken = |world_size| {
        let settings = Settings {
            version: training.config.map_or_else(|| Settings::default().version, |one| one.version),
            world_size: Some(world_size),
            front_end: Some(FrontEnd::DeepSpeed),
            ..Settings::default()
        };
        job.accepts(text, &settings)
    };
    training.launch.world.is_some_and(|world| world > 1 && taken(world) && !taken(1))
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let script = training.script;
        let starts = STARTS.iter().any(|name| script.calls(name))
            || script.training_arguments().next().is_some();
        if starts {
            continue;
        }
        let inits = script.calls.iter().filter(|call| {
            matches!(call.callee.as_str(), "deepspeed.zero.Init" | "zero.Init")
                && call.keyword("enabled").is_none()
                && call.keyword("mpu").is_none()
        });
        // The engine starts the group too, if it is made first.
        let made = script.engine().map(|(call, _)| call.span.end);
        for call in inits.filter(|call| made.is_none_or(|end| call.span.end < end)) {
            let Some((Value::Literal(name), _)) = call.keyword("config_dict_or_path") else {
                continue;
            };
            let text = (job.files)(name);
            if text.is_some_and(|text| needs_all_ranks(job, &text, &training)) {
                let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span)
                    .with("call", call.callee.as_str())
                    .with("name", name.as_str());
                found.at(&training.place(call.span), diagnostic);
            }
        }
    }
}
