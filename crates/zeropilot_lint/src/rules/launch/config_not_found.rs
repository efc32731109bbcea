use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L12",
    name: "config-not-found",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new("the DeepSpeed config does not exist", "DeepSpeed 配置文件不存在"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::job(
        "deepspeed --num_gpus 2 train.py --deepspeed_config /nonexistent/ds.json",
    )],
    good: &[Example::job("deepspeed --num_gpus 2 train.py --deepspeed_config $CONFIG")],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("there is no file `{name}`", "找不到文件 `{name}`"),
    why: Text::new(
        "zeropilot looked in the directory it runs in and in the directory of the script. It does not follow `cd`, and it does not know files that the script writes before the launch.",
        "zeropilot 在运行目录和脚本所在目录里都没有找到。它不跟踪 `cd`，也不知道脚本启动训练前会写出哪些文件。",
    ),
    help: Text::new(
        "correct the path, or run the script from the directory the path starts in; ignore this if the script changes directory or writes the file itself",
        "改正路径，或到路径起始的目录下运行脚本；如果脚本自己切换目录或生成这个文件，可以忽略",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for config in job.job.launches.iter().filter_map(|launch| launch.given.config.as_ref()) {
        if let Some(name) = config.text.as_deref()
            && !name.starts_with('{')
            && (job.files)(name).is_none()
        {
            let place = &config.place;
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", place.span).with("name", name);
            found.at(place, diagnostic);
        }
    }
}
