//! What a verdict rests on, in words.

use zeropilot_record::{Ending, Evidence};
use zeropilot_text::{Language, tr};
use zeropilot_units::Bytes;

use super::hang;
use crate::system;

pub(super) fn words(evidence: &Evidence, language: Language) -> String {
    match evidence {
        Evidence::CommandEnded(ending) => of_command(*ending, language),
        Evidence::RanksLeft(ranks) => tr!(
            language,
            "ranks {ranks:?} were still running when the command ended",
            "命令结束时 rank {ranks:?} 仍在运行"
        ),
        Evidence::RanksDone { done, seen } => tr!(
            language,
            "{done} of {seen} ranks reported a normal exit",
            "{done}/{seen} 个 rank 报告正常结束"
        ),
        Evidence::KernelKills(kills) => tr!(
            language,
            "the kernel killed {kills} process(es) because host memory ran out",
            "内核因主机内存不足杀死了 {kills} 个进程"
        ),
        Evidence::RankSignaled { rank: Some(rank), signal } => {
            tr!(
                language,
                "rank {rank} was terminated by signal {signal}",
                "rank {rank} 被信号 {signal} 终止"
            )
        }
        Evidence::RankSignaled { rank: None, signal } => {
            tr!(
                language,
                "a rank was terminated by signal {signal}",
                "有一个 rank 被信号 {signal} 终止"
            )
        }
        Evidence::FailedFirst(rank) => {
            tr!(language, "rank {rank} failed first", "最先失败的是 rank {rank}")
        }
        Evidence::LeftEarly(rank) => tr!(
            language,
            "rank {rank} exited while the others were still working",
            "rank {rank} 提前退出，其他 rank 仍在工作"
        ),
        Evidence::Exception { rank, worker, line, place } => {
            let rank = match (rank, worker) {
                (None, None) => String::new(),
                (Some(rank), None) => format!("rank {rank}: "),
                (rank, Some(worker)) => of_worker(*rank, *worker, language),
            };
            let place = place.as_ref().map_or(String::new(), |place| format!(" ({place})"));
            tr!(language, "{rank}{line}{place}", "{rank}{line}{place}")
        }
        Evidence::LossNotFinite => {
            tr!(language, "the loss is NaN or infinite", "loss 是 NaN 或无穷大")
        }
        Evidence::NotFiniteSince(step) => tr!(
            language,
            "since step {step}, the loss or the gradient norm has been NaN or infinite",
            "从第 {step} 步起，loss 或梯度范数是 NaN 或无穷大"
        ),
        Evidence::NormNotFiniteSince(step) => tr!(
            language,
            "since step {step}, the gradient norm has been NaN or infinite, but the loss is finite",
            "从第 {step} 步起，梯度范数是 NaN 或无穷大，但 loss 是有限值"
        ),
        Evidence::StepsDone(total) => tr!(
            language,
            "all {total} training steps were already done",
            "全部 {total} 步训练已经完成"
        ),
        Evidence::Disk { mount, free, total } => {
            let (free, total) = (Bytes(*free), Bytes(*total));
            tr!(
                language,
                "disk mounted at {mount}: {free} of {total} free",
                "挂载在 {mount} 的磁盘：共 {total}，剩余 {free}"
            )
        }
        Evidence::RanksAt(at) => hang::position(at, language),
        Evidence::Hang(reason) => hang::reason(reason, language),
        Evidence::ResumableFrom { step, checkpoint } => tr!(
            language,
            "checkpoint to resume from: step {step}, {checkpoint}",
            "可以续训的 checkpoint：第 {step} 步，{checkpoint}"
        ),
        Evidence::LogLine(line) => tr!(language, "log: {line}", "日志：{line}"),
        Evidence::Text(text) => system::told(text, language),
    }
}

/// How the command ended.
fn of_command(ending: Ending, language: Language) -> String {
    match ending {
        Ending::Exited(code) => match ending.signal() {
            Some(signal) => tr!(
                language,
                "the command exited with {code} (128 + {signal}): signal {signal} terminated a process",
                "命令以退出码 {code}（128 + {signal}）结束：信号 {signal} 终止了一个进程"
            ),
            None => tr!(language, "the command exited with {code}", "命令以退出码 {code} 结束"),
        },
        Ending::Signaled(signal) => tr!(
            language,
            "the command was terminated by signal {signal}",
            "命令被信号 {signal} 终止"
        ),
        Ending::Unknown => tr!(
            language,
            "zeropilot did not observe how the command ended",
            "zeropilot 没有观察到命令如何结束"
        ),
    }
}

/// A data worker, and the rank that it belongs to.
fn of_worker(rank: Option<u32>, worker: u32, language: Language) -> String {
    match rank {
        Some(rank) => tr!(
            language,
            "rank {rank}, data worker {worker}: ",
            "rank {rank} 的数据加载进程 {worker}："
        ),
        None => tr!(language, "data worker {worker}: ", "数据加载进程 {worker}："),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_worker_is_named_with_its_rank() {
        let line = "ValueError: bad sample".to_owned();
        let evidence = Evidence::Exception { rank: Some(1), worker: Some(3), line, place: None };
        let expected = "rank 1, data worker 3: ValueError: bad sample";
        assert_eq!(words(&evidence, Language::English), expected);
    }

    #[test]
    fn evidence_has_the_same_numbers_in_both_languages() {
        let evidence = Evidence::RanksDone { done: 1, seen: 2 };
        assert_eq!(words(&evidence, Language::English), "1 of 2 ranks reported a normal exit");
        assert_eq!(words(&evidence, Language::Chinese), "1/2 个 rank 报告正常结束");
        let line = Evidence::LogLine("{} of {}".to_owned());
        assert_eq!(words(&line, Language::Chinese), "日志：{} of {}");
    }
}
