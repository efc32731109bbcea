use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::{at_member, at_value};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K28",
    name: "timers-left-on",
    group: Group::Keys,
    severity: Severity::Note,
    summary: Text::new("timers or loggers are left on", "计时或日志开关没有关闭"),
    wordings: &[&TIMERS, &MEMORY, &COMMUNICATION],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "wall_clock_breakdown": true}"#),
        Example::new(r#"{"train_batch_size": 8, "memory_breakdown": true}"#),
        Example::new(r#"{"train_batch_size": 8, "comms_logger": {"enabled": true}}"#),
        Example::new(r#"{"train_batch_size": 8, "comms_logger": {"enabled": false}}"#),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "wall_clock_breakdown": false}"#)],
    is_no_op: false,
};

static TIMERS: Wording = Wording {
    message: Text::new(
        "`{path}` makes every micro-step wait for the GPU and prints timings",
        "`{path}` 让每个 micro step 都等 GPU 执行完，并打印耗时",
    ),
    why: Text::new(
        "DeepSpeed reads the timers at the end of every `step` call, and each read makes the host wait for the GPU.",
        "DeepSpeed 在每次调用 `step` 的末尾读取计时器，每读一次，主机都要等 GPU 执行完。",
    ),
    help: Text::new("remove `{path}` when you have finished measuring", "测量结束后删掉 `{path}`"),
};

static MEMORY: Wording = Wording {
    message: Text::new(
        "`{path}` runs garbage collection and prints GPU memory use several times per micro-step",
        "`{path}` 在每个 micro step 里多次做垃圾回收并打印显存占用",
    ),
    why: Text::new(
        "Rank 0 runs Python's garbage collection before each report, and the other ranks wait for it at the next collective.",
        "rank 0 每次打印前都要做一次 Python 垃圾回收，其他 rank 在下一次集合通信时等它。",
    ),
    help: TIMERS.help,
};

static COMMUNICATION: Wording = Wording {
    message: Text::new(
        "`{path}` makes every collective wait until the GPU has finished",
        "`{path}` 让每次集合通信都等 GPU 执行完",
    ),
    why: Text::new(
        "The section `{path}` turns the logger on, even if `enabled` is false. DeepSpeed then synchronizes the GPU after each collective, so communication no longer overlaps with computation.",
        "只要有配置段 `{path}` 就会打开通信日志，`enabled` 写 false 也一样。DeepSpeed 会在每次集合通信后同步 GPU，通信不再与计算重叠。",
    ),
    help: Text::new(
        "remove the section `{path}` when you have finished measuring",
        "测量结束后删掉配置段 `{path}`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (key, wording) in [("wall_clock_breakdown", &TIMERS), ("memory_breakdown", &MEMORY)] {
        let Some(node) = subject.node([key]) else { continue };
        if node.value == Value::Bool(true) {
            found.push(at_value(&RULE, wording, &[key], node));
        }
    }
    let section = "comms_logger";
    if let Some(member) = subject.root.member(section)
        && matches!(member.value.value, Value::Object(_))
    {
        found.push(at_member(&RULE, &COMMUNICATION, &[section], member));
    }
}
