use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_job::{Assignment, Launch, Launcher, hostfile_entries};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "L05",
    name: "variables-left-behind",
    group: Group::Launch,
    severity: Severity::Note,
    summary: Text::new(
        "environment variables do not reach the other nodes",
        "环境变量不会传到其他节点",
    ),
    wordings: &[&WORDING],
    sources: &["AMDResearch/hpcfund#35", "deepspeedai/DeepSpeed#1481"],
    examples: &[Example::job("export HF_HOME=/data/hf\ndeepspeed --hostfile hosts t.py")
        .files(&[TWO_HOSTS])],
    good: &[
        Example::job("export NCCL_DEBUG=INFO\ndeepspeed --hostfile hosts t.py").files(&[TWO_HOSTS]),
        Example::job("export HF_HOME=/data/hf\ndeepspeed --hostfile hosts t.py")
            .files(&[TWO_HOSTS, (".deepspeed_env", "HF_HOME=/data/hf\n")]),
        Example::job("export HF_HOME=/data/hf\ndeepspeed --hostfile hosts t.py")
            .files(&[("hosts", "one slots=8\n")]),
    ],
    is_no_op: false,
};

const TWO_HOSTS: (&str, &str) = ("hosts", "one slots=8\ntwo slots=8\n");

static WORDING: Wording = Wording {
    message: Text::new(
        "`deepspeed` does not pass {names} to the nodes in the hostfile",
        "`deepspeed` 不会把 {names} 传到 hostfile 里的各个节点",
    ),
    why: Text::new(
        "The launcher passes on only variables that begin with `NCCL`, `PYTHON`, `MV2`, `UCX` or `MLFLOW`, or are listed in `.deepspeed_env`. No such file in the home or working directory lists {names}.",
        "启动器只会传递以 `NCCL`、`PYTHON`、`MV2`、`UCX`、`MLFLOW` 开头的变量，以及用户主目录或工作目录下 `.deepspeed_env` 里列出的变量；这两处都没有列出 {names}。",
    ),
    help: Text::new(
        "add the variables as `NAME=value` to `.deepspeed_env`, unless every node sets them at login",
        "把这些变量以 `NAME=value` 的形式写进 `.deepspeed_env`；如果每个节点登录时都会设置，则不必处理",
    ),
};

/// Beginnings of what libraries read during training.
const READ: [&str; 11] = [
    "HF_",
    "TRANSFORMERS_",
    "WANDB_",
    "TOKENIZERS_",
    "PYTORCH_",
    "TORCH_",
    "OMP_",
    "GLOO_",
    "DS_",
    "DEEPSPEED_",
    "TRITON_",
];

fn is_read(name: &str) -> bool {
    // The launcher itself reads this one.
    name != "DS_ENV_FILE"
        && (READ.iter().any(|start| name.starts_with(start)) || name == "LD_LIBRARY_PATH")
}

/// Whether the launcher goes over ssh to more than one node, and takes nothing else along.
fn goes_out(job: &JobView<'_>, launch: &Launch) -> bool {
    let others = ["launcher", "no_ssh", "num_nodes", "include", "i", "exclude", "e", "force_multi"];
    let hosts = launch.option("hostfile").or_else(|| launch.option("H"));
    let text = hosts.and_then(|hosts| (job.files)(hosts.text.as_deref()?));
    launch.launcher == Launcher::DeepSpeed
        && !launch.has_option(&others)
        && job.job.variable(launch, "DS_ENV_FILE").is_none()
        && text.is_some_and(|text| hostfile_entries(&text).len() > 1)
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    let sent = (job.files)(".deepspeed_env").unwrap_or_default();
    let is_sent = |name: &str| {
        sent.lines().any(|line| line.split_once('=').is_some_and(|(key, _)| key == name))
    };
    for launch in job.job.launches.iter().filter(|launch| goes_out(job, launch)) {
        let set = job.job.exported.iter().chain(&launch.variables);
        let mut left: Vec<&Assignment> = Vec::new();
        for one in set.filter(|set| is_read(&set.name) && !is_sent(&set.name)) {
            if !left.iter().any(|known| known.name == one.name) {
                left.push(one);
            }
        }
        if let Some(first) = left.first() {
            let names = left.iter().map(|set| set.name.clone()).collect();
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", first.value.span)
                .with("names", Argument::Words(names));
            found.here(diagnostic);
        }
    }
}
