use zeropilot_config::front_end::{Arguments, FrontEnd, PluginArguments, Problem};
use zeropilot_config::problem::KeyPath;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I01",
    name: "fields-in-accelerate-config",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "accelerate's own config repeats the DeepSpeed config",
        "accelerate 自己的配置与 DeepSpeed 配置重复",
    ),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/accelerate#941",
        "yuvalkirstain/PickScore#2",
        "huggingface/accelerate#3385",
    ],
    examples: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::Accelerate)
    .arguments(stage_in_yaml)],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::Accelerate)],
    is_no_op: false,
};

fn stage_in_yaml() -> Arguments {
    let plugin = PluginArguments {
        accelerate_config_fields: vec!["zero_stage".to_owned()],
        ..PluginArguments::default()
    };
    Arguments { plugin, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "accelerate's config file sets {fields}, which must be in this file instead",
        "accelerate 的配置文件设置了 {fields}，这些应写在本文件里",
    ),
    why: Text::new(
        "accelerate raises an error at startup if its config sets these fields next to `deepspeed_config_file`.",
        "accelerate 的配置里既有 `deepspeed_config_file` 又有这些设置时，启动会报错。",
    ),
    help: Text::new(
        "remove {fields} from accelerate's config file",
        "从 accelerate 的配置文件里删掉 {fields}",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, fields: &[String]) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, KeyPath::default(), problem.span)
        .with("fields", Argument::Words(fields.to_vec()))
}
