use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, settings};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::settings::Settings;
use zeropilot_job::{Launch, Launcher};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I14",
    name: "swift-gathering-twice",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "ms-swift's `--deepspeed_autotp_size` adds a key that the config already has under another name",
        "ms-swift 的 `--deepspeed_autotp_size` 会加入一个键，而配置里已经用另一个名字写了同一个键",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("NPROC_PER_NODE=2 swift sft --model m --deepspeed ./ds.json --deepspeed_autotp_size 2").files(&[(
        "./ds.json",
        r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
    )])],
    good: &[
        Example::job("NPROC_PER_NODE=2 swift sft --model m --deepspeed ./ds.json --deepspeed_autotp_size 2").files(&[(
            "./ds.json",
            r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}"#,
        )]),
        Example::job("NPROC_PER_NODE=2 swift sft --model m --deepspeed ./ds.json").files(&[(
            "./ds.json",
            r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#,
        )]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`--deepspeed_autotp_size` adds `{added}`, which the config already has under its other name",
        "`--deepspeed_autotp_size` 会往配置里加 `{added}`，而配置里已经用另一个名字写了同一个键",
    ),
    why: Text::new(
        "The config has `{written}`, which is the same key. DeepSpeed accepts either name, but not both.",
        "配置里写的是 `{written}`，两者是同一个键。两种写法 DeepSpeed 都接受，但不能同时出现。",
    ),
    help: Text::new("remove `{written}` from the config", "从配置里删掉 `{written}`"),
};

const ADDED: &str = "gather_16bit_weights_on_model_save";
const WRITTEN: &str = "stage3_gather_16bit_weights_on_model_save";

/// Whether the engine refuses a config only after ms-swift has added its key.
fn is_spoilt(job: &JobView<'_>, text: &str, launch: &Launch) -> bool {
    let Ok(mut config) = serde_json::from_str::<Value>(text) else { return false };
    let settings = settings(launch, &Settings::default());
    let Some(section) = config.get_mut("zero_optimization").and_then(Value::as_object_mut) else {
        return false;
    };
    if !section.contains_key(WRITTEN) {
        return false;
    }
    section.insert(ADDED.to_owned(), Value::Bool(true));
    job.accepts(text, &settings) && !job.accepts(&config.to_string(), &settings)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::Swift) {
        let Some(said) = launch.given.said("deepspeed_autotp_size") else { continue };
        let config = launch.given.config.as_ref().and_then(|config| config.text.as_deref());
        let text = config.and_then(|name| (job.files)(name));
        if text.is_some_and(|text| is_spoilt(job, &text, launch)) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", said.place.span)
                .with("added", ADDED)
                .with("written", WRITTEN);
            found.at(&said.place, diagnostic);
        }
    }
}
