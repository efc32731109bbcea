//! What a verdict rests on, in words.

use zeropilot_record::{Ending, Evidence};
use zeropilot_text::{Language, tr};

use super::hang;

pub(super) fn words(evidence: &Evidence, language: Language) -> String {
    match evidence {
        Evidence::CommandEnded(Ending::Exited(code)) => {
            tr!(language, "the command exited with {code}", "命令以退出码 {code} 结束")
        }
        Evidence::CommandEnded(Ending::Signaled(signal)) => {
            tr!(language, "signal {signal} ended the command", "命令被信号 {signal} 终止")
        }
        Evidence::CommandEnded(Ending::Unknown) => {
            tr!(language, "the command ended unobserved", "没有看到命令是怎样结束的")
        }
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
            "processes that the kernel killed for memory: {kills}",
            "内核因内存不足杀死了 {kills} 个进程"
        ),
        Evidence::RankSignaled { rank: Some(rank), signal } => {
            tr!(language, "signal {signal} ended rank {rank}", "rank {rank} 被信号 {signal} 终止")
        }
        Evidence::RankSignaled { rank: None, signal } => {
            tr!(language, "signal {signal} ended a rank", "有一个 rank 被信号 {signal} 终止")
        }
        Evidence::FailedFirst(rank) => {
            tr!(language, "rank {rank} failed first", "最先失败的是 rank {rank}")
        }
        Evidence::LeftEarly(rank) => tr!(
            language,
            "rank {rank} left while the others were still working",
            "rank {rank} 提前退出，其他 rank 仍在工作"
        ),
        Evidence::Exception { rank, line, place } => {
            let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
            let place = place.as_ref().map_or(String::new(), |place| format!(" ({place})"));
            tr!(language, "{rank}{line}{place}", "{rank}{line}{place}")
        }
        Evidence::LossNotFinite => {
            tr!(language, "the loss is NaN or infinite", "loss 是 NaN 或无穷大")
        }
        Evidence::NotFiniteSince(step) => tr!(
            language,
            "the loss or the gradient norm is NaN or infinite since step {step}",
            "从第 {step} 步起，loss 或梯度范数是 NaN 或无穷大"
        ),
        Evidence::RanksAt(at) => hang::position(at, language),
        Evidence::Hang(reason) => hang::reason(reason, language),
        Evidence::ResumableFrom { step, checkpoint } => tr!(
            language,
            "checkpoint to resume from: step {step}, {checkpoint}",
            "可以续训的 checkpoint：第 {step} 步，{checkpoint}"
        ),
        Evidence::LogLine(line) => tr!(language, "log: {line}", "日志：{line}"),
        Evidence::Text(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_has_the_same_numbers_in_both_languages() {
        let evidence = Evidence::RanksDone { done: 1, seen: 2 };
        assert_eq!(words(&evidence, Language::English), "1 of 2 ranks reported a normal exit");
        assert_eq!(words(&evidence, Language::Chinese), "1/2 个 rank 报告正常结束");
        let line = Evidence::LogLine("{} of {}".to_owned());
        assert_eq!(words(&line, Language::Chinese), "日志：{} of {}");
    }
}
