//! Where ranks stood when nothing moved, and what explains it, in words.

use zeropilot_record::{Activity, HangReason, NoStack, RanksAt};
use zeropilot_text::{Language, Text, tr};

use super::of_ranks;
use crate::escaped;

/// That nothing moved.
pub(super) fn happened(
    seconds: f64,
    ranks: &[u32],
    stood: &[RanksAt],
    explanation: Option<&HangReason>,
    language: Language,
) -> String {
    let mut text = tr!(
        language,
        "no progress for {seconds:.0} s{}",
        "已有 {seconds:.0} 秒没有任何进展{}",
        of_ranks(ranks, language)
    );
    let stood = stood.iter().map(|at| position(at, language));
    for line in stood.chain(explanation.map(|explained| reason(explained, language))) {
        text.push_str(&format!("\n  - {}", escaped(&line)));
    }
    text
}

/// `rank 1` or `ranks 0, 2`.
fn who(ranks: &[u32], language: Language) -> String {
    let list = ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match ranks {
        [_] => tr!(language, "rank {list}", "rank {list}"),
        _ => tr!(language, "ranks {list}", "rank {list}"),
    }
}

/// A verb of the third person.
fn verb(ranks: &[u32], one: &'static str, many: &'static str) -> &'static str {
    if ranks.len() == 1 { one } else { many }
}

fn doing(activity: Activity) -> Text {
    match activity {
        Activity::Forward => Text::new(" in the forward pass", "（前向时）"),
        Activity::Backward => Text::new(" in the backward pass", "（反向时）"),
        Activity::Step => Text::new(" in the optimizer step", "（参数更新时）"),
        Activity::Saving => Text::new(" while saving a checkpoint", "（保存 checkpoint 时）"),
        Activity::Loading => Text::new(" while loading a checkpoint", "（加载 checkpoint 时）"),
        Activity::Data => Text::new(" for the next batch", "（等待下一个 batch）"),
        Activity::Building => Text::new(
            " for another process to build a C++ extension",
            "（等待其他进程编译 C++ 扩展）",
        ),
        Activity::Meeting => Text::new(" while the ranks connect", "（各 rank 建立连接时）"),
    }
}

/// Where ranks stood.
pub(super) fn position(at: &RanksAt, language: Language) -> String {
    let (ranks, who) = (&at.ranks, who(&at.ranks, language));
    if let Some(why) = at.no_stack {
        let why = no_stack(why).get(language);
        let kernel = at.kernel.as_deref().unwrap_or("?");
        return tr!(
            language,
            "{who}: no Python stack available ({why}); process state and kernel function: {kernel}",
            "{who}：无法得到 Python 调用栈（{why}）；进程状态和内核函数：{kernel}"
        );
    }
    let place = at.place.as_deref().or(at.innermost.as_deref()).unwrap_or("?");
    let activity = at.activity.map_or("", |activity| doing(activity).get(language));
    let (waits, are) = (verb(ranks, "waits", "wait"), verb(ranks, "is", "are"));
    match (&at.collective, &at.pending, at.activity) {
        (Some(collective), _, _) => tr!(
            language,
            "{who} {waits} in {collective}{activity}, called at {place}",
            "{who} 在 {collective} 中等待{activity}，调用位置：{place}"
        ),
        (None, _, Some(Activity::Data | Activity::Building)) => tr!(
            language,
            "{who} {waits}{activity}, at {place}",
            "{who} 没有进展{activity}，位置：{place}"
        ),
        (None, Some(pending), _) => {
            let innermost = at.innermost.as_deref().unwrap_or("?");
            tr!(
                language,
                "{who} {waits} for {pending} to finish{activity}: at {place}, in {innermost}",
                "{who} 在等 {pending} 完成{activity}：位置 {place}，正在执行 {innermost}"
            )
        }
        (None, None, _) => {
            let innermost = at.innermost.as_deref().unwrap_or("?");
            tr!(
                language,
                "{who} {are} not in a collective: at {place}{activity}, in {innermost}",
                "{who} 不在集合通信中：位置 {place}{activity}，正在执行 {innermost}"
            )
        }
    }
}

fn no_stack(why: NoStack) -> Text {
    match why {
        NoStack::Refused => Text::new(
            "py-spy is not allowed to trace the process: it needs CAP_SYS_PTRACE, or kernel.yama.ptrace_scope=0",
            "py-spy 无权跟踪该进程：需要 CAP_SYS_PTRACE，或 kernel.yama.ptrace_scope=0",
        ),
        NoStack::NoTool => Text::new(
            "the process has no stack handler, and py-spy is not installed",
            "进程没有注册调用栈处理函数，也没有安装 py-spy",
        ),
        NoStack::NoAnswer => Text::new("the process did not respond", "进程没有响应"),
    }
}

/// What explains it.
pub(super) fn reason(reason: &HangReason, language: Language) -> String {
    match reason {
        HangReason::Stopped => tr!(
            language,
            "a signal (SIGSTOP) or a debugger stopped the process",
            "进程被信号（SIGSTOP）或调试器暂停"
        ),
        HangReason::ExtensionLock { path: Some(path), .. } => tr!(
            language,
            "no process on this machine holds the lock {path} of PyTorch's extension cache: a killed build left it behind. If no other machine builds the extension now, remove the lock: rm {path}",
            "本机没有进程持有 PyTorch 扩展缓存的锁 {path}：它是编译进程被杀死时留下的。如果没有其他机器正在编译该扩展，删除它：rm {path}"
        ),
        HangReason::ExtensionLock { path: None, is_held: true } => tr!(
            language,
            "another process is still building a C++ extension",
            "另一个进程仍在编译 C++ 扩展"
        ),
        HangReason::ExtensionLock { path: None, is_held: false } => tr!(
            language,
            "these ranks wait for a lock in PyTorch's extension cache",
            "这些 rank 在等待 PyTorch 扩展缓存的锁"
        ),
        HangReason::OneRank { condition, place, rule } => {
            let rule = rule_words(rule.as_deref(), language);
            tr!(
                language,
                "`if {condition}` at {place} is true on one rank only, but the call inside needs all ranks: make the call on all ranks{rule}",
                "{place} 的 `if {condition}` 只在一个 rank 上成立，而其中的调用需要所有 rank 参与：让所有 rank 都执行这个调用{rule}"
            )
        }
        HangReason::Data => tr!(
            language,
            "the data loader returns no batch: check the dataset, its workers and its storage",
            "数据加载器没有返回 batch：检查数据集、加载进程和存储"
        ),
        HangReason::LeftLoop { place, skip: None } => tr!(
            language,
            "some ranks have left the loop at {place} while the others still train in it: give every rank the same number of batches",
            "部分 rank 已离开 {place} 的循环，其他 rank 还在其中训练：让每个 rank 的 batch 数相同"
        ),
        HangReason::LeftLoop { place, skip: Some(skip) } => tr!(
            language,
            "some ranks have left the loop at {place} while the others still train in it. Either these ranks had fewer batches, or the `continue` at {skip} skipped a step. Give every rank the same number of steps",
            "部分 rank 已离开 {place} 的循环，其他 rank 还在其中训练：要么这些 rank 的 batch 更少，要么 {skip} 的 `continue` 跳过了一步。让每个 rank 的步数相同"
        ),
        HangReason::OtherPath { skip: Some(skip), rule } => {
            let rule = rule_words(rule.as_deref(), language);
            tr!(
                language,
                "the ranks are in different parts of the loop: the `continue` at {skip} skips calls that every rank must make{rule}",
                "各 rank 处在循环的不同位置：{skip} 的 `continue` 跳过了所有 rank 都必须执行的调用{rule}"
            )
        }
        HangReason::OtherPath { skip: None, rule: Some(rule) } => {
            let rule = rule_words(Some(rule), language);
            tr!(
                language,
                "the ranks are at different points of a step. In ZeRO stage 3, this happens if a batch does not use every module, for example a batch of text without images{rule}",
                "各 rank 处在一步中的不同位置。在 ZeRO stage 3 下，某个 batch 没有用到全部模块（例如只有文本、没有图像）就会这样{rule}"
            )
        }
        HangReason::OtherPath { skip: None, rule: None } => tr!(
            language,
            "the ranks wait in different collectives: they took different code paths",
            "各 rank 在不同的集合通信中等待：它们执行了不同的代码路径"
        ),
        HangReason::Elsewhere => {
            tr!(
                language,
                "some ranks wait in a collective that the other ranks have not reached",
                "部分 rank 在集合通信中等待，其他 rank 没有执行到这次通信"
            )
        }
        HangReason::NotCalled { group, call, operation } => tr!(
            language,
            "PyTorch's flight recorder shows {operation} as call {call} of process group {group}: some ranks wait in it, and others never called it",
            "PyTorch flight recorder 的记录：{operation} 是进程组 {group} 的第 {call} 次调用，部分 rank 在其中等待，其他 rank 没有调用它"
        ),
        HangReason::OtherCall { group, call, operation, other } => tr!(
            language,
            "PyTorch's flight recorder shows different collectives as call {call} of process group {group}: {operation} on most ranks, {other} on others. All ranks must make the same calls in the same order, with the same shapes",
            "PyTorch flight recorder 的记录：进程组 {group} 的第 {call} 次调用不一致，多数 rank 是 {operation}，其他 rank 是 {other}。所有 rank 必须按相同的顺序、以相同的形状发起相同的调用"
        ),
        HangReason::AllWait => tr!(
            language,
            "all ranks on this machine wait in the same collective. A rank on another machine is missing, or the network or a GPU link does not respond",
            "本机所有 rank 在同一个集合通信中等待：另一台机器上缺少 rank，或者网络或 GPU 互联没有响应"
        ),
    }
}

fn rule_words(rule: Option<&str>, language: Language) -> String {
    rule.map_or(String::new(), |rule| {
        tr!(language, " (see `zeropilot rule {rule}`)", "（见 `zeropilot rule {rule}`）")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_and_several_are_said_as_people_say_it() {
        let at = RanksAt {
            ranks: vec![1],
            collective: Some("barrier".to_owned()),
            activity: Some(Activity::Saving),
            place: Some("train.py:75".to_owned()),
            ..RanksAt::default()
        };
        let one = "rank 1 waits in barrier while saving a checkpoint, called at train.py:75";
        assert_eq!(position(&at, Language::English), one);
        let several = RanksAt { ranks: vec![0, 2], activity: None, ..at };
        let words = "ranks 0, 2 wait in barrier, called at train.py:75";
        assert_eq!(position(&several, Language::English), words);
        let zh = "rank 0, 2 在 barrier 中等待，调用位置：train.py:75";
        assert_eq!(position(&several, Language::Chinese), zh);
    }
}
