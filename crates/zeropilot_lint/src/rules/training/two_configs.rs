use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::Value;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L19",
    name: "config-given-twice",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "both the command line and the script pass a config",
        "命令行和脚本各给了一份配置",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "parser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, config='ds.json')\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py --deepspeed_config ds.json").files(&[("t.py", "parser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model)\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)]), Example::job("deepspeed --num_gpus 2 t.py").files(&[("t.py", "parser = deepspeed.add_config_arguments(parser)\nargs = parser.parse_args()\nengine, _, _, _ = deepspeed.initialize(args=args, model=model, config='ds.json')\n"), ("ds.json", r#"{"train_micro_batch_size_per_gpu": 1}"#)])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`deepspeed.initialize` gets a config, and `--deepspeed_config` names another one",
        "`deepspeed.initialize` 已经有配置，`--deepspeed_config` 又给了一份",
    ),
    why: Text::new(
        "DeepSpeed accepts only one config and exits with an `AssertionError`.",
        "DeepSpeed 只接受一份配置，会以 `AssertionError` 退出。",
    ),
    help: Text::new(
        "remove `--deepspeed_config` from the command, or `config` from the call to `deepspeed.initialize`",
        "去掉命令里的 `--deepspeed_config`，或去掉 `deepspeed.initialize` 里的 `config`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings() {
        let Some((made, _)) = training.script.engine() else { continue };
        let is_config =
            |name: &str| made.keyword(name).is_some_and(|(value, _)| !matches!(value, Value::None));
        let names_one = training.launch.words.iter().any(|word| {
            let text = word.text.as_deref().unwrap_or_default();
            text == "--deepspeed_config" || text.starts_with("--deepspeed_config=")
        });
        let takes_option = training.script.calls("add_config_arguments");
        let hands_options = made.handed(usize::MAX, "args").is_some();
        if names_one
            && takes_option
            && hands_options
            && (is_config("config") || is_config("config_params"))
            && !training.script.sets("args", "deepspeed_config")
        {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", made.span);
            found.at(&training.place(made.span), diagnostic);
        }
    }
}
