use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Made, PythonScript};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L12",
    name: "config-not-found",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new("the DeepSpeed config does not exist", "DeepSpeed 配置文件不存在"),
    wordings: &[&WORDING, &LATER],
    sources: &[],
    examples: &[
        Example::job("deepspeed --num_gpus 2 train.py --deepspeed_config /nonexistent/ds.json"),
        Example::job(
            "python write_config.py\ndeepspeed --num_gpus 2 train.py --deepspeed_config ds.json",
        ),
    ],
    good: &[
        Example::job("deepspeed --num_gpus 2 train.py --deepspeed_config $CONFIG"),
        Example::job("cd src && deepspeed --num_gpus 2 train.py --deepspeed_config conf/ds.json")
            .files(&[("src/conf/ds.json", r#"{"train_micro_batch_size_per_gpu": 2}"#)]),
        Example::job(
            "cat > ds.json <<EOF\n{\"train_micro_batch_size_per_gpu\": 2}\nEOF\ndeepspeed --num_gpus 2 train.py --deepspeed_config ds.json",
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("file `{name}` not found", "找不到文件 `{name}`"),
    why: Text::new(
        "The file is not in the current directory, the script's directory or a directory between them; zeropilot also followed the script's `cd`. No command before the launch writes the file.",
        "当前目录、脚本所在目录以及两者之间的目录里都没有这个文件，zeropilot 也考虑了脚本里的 `cd`。启动训练之前也没有命令会生成这个文件。",
    ),
    help: Text::new(
        "correct the path, or run the script from the directory that the path is relative to",
        "改正路径，或在该相对路径对应的目录下运行脚本",
    ),
};

static LATER: Wording = Wording {
    message: Text::new(
        "`{name}` does not exist yet, so zeropilot did not check it",
        "`{name}` 还不存在，zeropilot 没有检查它",
    ),
    why: Text::new(
        "A command before the launch may write the file, or the script changes to a directory that is known only at run time.",
        "这个文件可能由启动训练之前的命令生成；也可能是脚本切换了目录，而该目录要到运行时才能确定。",
    ),
    help: Text::new(
        "check the file once it exists: `zeropilot check {name}`",
        "文件生成后再检查：`zeropilot check {name}`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in &job.job.launches {
        let Some(config) = launch.given.config.as_ref() else { continue };
        let Some(name) = config.text.as_deref() else { continue };
        let is_there = launch.config_text.is_some() || (job.files)(name).is_some();
        if is_there || name.starts_with('{') {
            continue;
        }
        let is_made = launch.made != Some(Made::No)
            || (config.place.file.is_some() && launch.script.as_ref().is_some_and(writes_files));
        let (wording, severity) = match is_made {
            true => (&LATER, Severity::Note),
            false => (&WORDING, Severity::Error),
        };
        let place = &config.place;
        let diagnostic = Diagnostic::new(&RULE, wording, "", place.span);
        found.at(place, diagnostic.severity(severity).with("name", name));
    }
}

/// Whether a training script writes files or changes its directory, and so may make the config itself.
fn writes_files(script: &PythonScript) -> bool {
    let writes =
        ["open", "write_text", "dump", "chdir", "copy", "copyfile", "save", "run", "system"];
    script.calls.iter().any(|call| writes.contains(&call.name()))
}
