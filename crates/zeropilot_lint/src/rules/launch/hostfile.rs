use zeropilot_config::syntax::Span;

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Launcher, Place, hostfile_entries};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L06",
    name: "unreadable-hostfile",
    group: Group::Launch,
    severity: Severity::Error,
    summary: Text::new(
        "the `deepspeed` launcher cannot parse the hostfile",
        "`deepspeed` 启动器无法解析 hostfile",
    ),
    wordings: &[&LINE, &TWICE, &EMPTY],
    sources: &["deepspeedai/DeepSpeed#1481", "huggingface/transformers#21373"],
    examples: &[
        Example::job("deepspeed --hostfile hosts t.py").files(&[("hosts", "one slots=8\ntwo:8\n")]),
        Example::job("deepspeed --hostfile hosts t.py")
            .files(&[("hosts", "one slots=8\none slots=8\n")]),
        Example::job("deepspeed --hostfile hosts t.py").files(&[("hosts", "# one slots=8\n")]),
    ],
    good: &[Example::job("deepspeed --hostfile hosts t.py")
        .files(&[("hosts", "# ours\none slots=8\n\ntwo  slots=8 # new\n")])],
    is_no_op: false,
};

static LINE: Wording = Wording {
    message: Text::new(
        "the launcher cannot parse the line `{line}`",
        "启动器无法解析这一行：`{line}`",
    ),
    why: Text::new(
        "Each line must have a host name, a space, and `slots=` with the number of GPUs. The launcher exits with `Hostfile contains a bad entry`.",
        "每行应是主机名、空格、`slots=` 加卡数。启动器会报错退出：`Hostfile contains a bad entry`。",
    ),
    help: Text::new(
        "write the line in the form `worker-1 slots=8`",
        "把这一行写成 `worker-1 slots=8` 的形式",
    ),
};

static TWICE: Wording = Wording {
    message: Text::new("the host `{line}` is listed twice", "主机 `{line}` 出现了两次"),
    why: Text::new(
        "The launcher exits with `Hostfile contains multiple entries`.",
        "启动器会报错退出：`Hostfile contains multiple entries`。",
    ),
    help: Text::new(
        "keep one line for this host, with all its slots",
        "这台主机只保留一行，写上全部 slots",
    ),
};

static EMPTY: Wording = Wording {
    message: Text::new("the hostfile `{line}` lists no hosts", "hostfile `{line}` 里没有任何主机"),
    why: Text::new(
        "The launcher exits with `Hostfile is empty or not formatted correctly`.",
        "启动器会报错退出：`Hostfile is empty or not formatted correctly`。",
    ),
    help: Text::new(
        "write a line such as `worker-1 slots=8` for every node, or omit `--hostfile` on a single node",
        "每个节点写一行，如 `worker-1 slots=8`；单机则去掉 `--hostfile`",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for launch in job.job.launches.iter().filter(|launch| launch.launcher == Launcher::DeepSpeed) {
        let named = launch.option("hostfile").or_else(|| launch.option("H"));
        let Some((name, place)) = named.and_then(|word| Some((word.text.as_deref()?, word.span)))
        else {
            continue;
        };
        let Some(text) = (job.files)(name) else { continue };
        let entries = hostfile_entries(&text);
        if entries.is_empty() {
            found.here(Diagnostic::new(&RULE, &EMPTY, "", place).with("line", name));
        }
        for (index, entry) in entries.iter().enumerate() {
            let known = entry
                .host
                .filter(|host| entries[..index].iter().any(|earlier| earlier.host == Some(host)));
            let (wording, shown) = match (entry.host, known) {
                (None, _) => (&LINE, entry.line),
                (Some(_), Some(host)) => (&TWICE, host),
                (Some(_), None) => continue,
            };
            let span = Span::new(entry.start, entry.start + entry.line.len());
            let diagnostic = Diagnostic::new(&RULE, wording, "", span).with("line", shown);
            found.at(&Place::in_file(name, span), diagnostic);
        }
    }
}
