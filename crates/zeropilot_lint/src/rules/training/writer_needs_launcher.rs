use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{Value, parse_hjson};
use zeropilot_job::Launcher;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L20",
    name: "writer-needs-launcher",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "`checkpoint.writer` without the `deepspeed` launcher",
        "没用 `deepspeed` 启动器却写了 `checkpoint.writer`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
        (
            "ds.json",
            r#"{"train_micro_batch_size_per_gpu": 1, "checkpoint": {"writer": {"type": "MOCK"}}}"#,
        ),
    ])],
    good: &[Example::job("deepspeed --num_gpus 2 t.py").files(&[
        ("t.py", "engine, _, _, _ = deepspeed.initialize(model=model, config='ds.json')\n"),
        (
            "ds.json",
            r#"{"train_micro_batch_size_per_gpu": 1, "checkpoint": {"writer": {"type": "MOCK"}}}"#,
        ),
    ])],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`checkpoint.writer` needs the `deepspeed` launcher, not `{launcher}`",
        "`checkpoint.writer` 需要用 `deepspeed` 启动，而不是 `{launcher}`",
    ),
    why: Text::new(
        "Only DeepSpeed's launcher sets `CROSS_SIZE`. Under `{launcher}`, the run exits with `KeyError: 'CROSS_SIZE'`.",
        "只有 DeepSpeed 的启动器会设置 `CROSS_SIZE`。用 `{launcher}` 启动会报错退出：`KeyError: 'CROSS_SIZE'`。",
    ),
    help: Text::new(
        "start the run with `deepspeed`, or remove the `checkpoint.writer` section",
        "改用 `deepspeed` 启动，或删掉 `checkpoint.writer` 配置段",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (launch, report) in job.launches() {
        let Some(report) = report.filter(|report| report.version >= EngineVersion::V0_19) else {
            continue;
        };
        let sets = |name: &str| {
            let mut set = launch.variables.iter().chain(&job.job.exported);
            set.any(|set| set.name == name)
        };
        let Some(name) = launch.given.config.as_ref().and_then(|config| config.text.as_deref())
        else {
            continue;
        };
        let text = launch.config_text.clone().or_else(|| (job.files)(name));
        let config = text.and_then(|text| parse_hjson(&text).ok());
        let writer = config.as_ref().and_then(|config| config.get("checkpoint")?.get("writer"));
        let is_section = writer.is_some_and(|node| matches!(node.value, Value::Object(_)));
        let is_torchrun = launch.launcher == Launcher::Torchrun;
        if report.resolved.is_some() && is_section && is_torchrun && !sets("CROSS_SIZE") {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", launch.span());
            found.here(diagnostic.with("launcher", launch.launcher.name()));
        }
    }
}
