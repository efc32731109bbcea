//! What a person is told of checkpoints while a run goes on.

use zeropilot_record::{NoResume, RunEvent};
use zeropilot_text::{Language, Text, tr};

use crate::escaped;

/// The words for a happening that is about checkpoints.
pub(super) fn happened(happening: &RunEvent, language: Language) -> Option<String> {
    let text = match happening {
        RunEvent::Resuming { checkpoint, step } => tr!(
            language,
            "resuming from step {step}: {}",
            "从第 {step} 步续训：{}",
            escaped(checkpoint)
        ),
        RunEvent::BeginningAnew { reason, checkpoints } => {
            anew(*reason, checkpoints.as_deref(), language)
        }
        RunEvent::NotStartedAgain { reason, checkpoints } => {
            not_again(*reason, checkpoints, language)
        }
        RunEvent::CheckpointsShared { run, checkpoints } => tr!(
            language,
            "warning: run {} on this machine also writes its checkpoints to {}; the two runs overwrite each other's checkpoints\n  help: use a separate directory for each run",
            "警告：本机的运行 {} 也在向 {} 写 checkpoint，两者会互相覆盖\n  建议：给每个运行单独的目录",
            escaped(run),
            escaped(checkpoints)
        ),
        RunEvent::CheckpointsFound { checkpoints, step } => tr!(
            language,
            "warning: {} already contains checkpoints of another run, up to step {step}. The command has no option that resumes from them, so this run starts from scratch and overwrites checkpoints with the same names\n  help: use a new directory, or add the option that resumes from a checkpoint",
            "警告：{} 里已有另一次运行的 checkpoint（最高到第 {step} 步）。命令里没有续训选项，因此本次运行从头开始，并会覆盖同名的 checkpoint\n  建议：换一个新目录，或加上续训选项",
            escaped(checkpoints)
        ),
        RunEvent::ScratchNotAllowed { reason, step, checkpoint } => {
            scratch_refused(*reason, *step, checkpoint, language)
        }
        _ => return None,
    };
    Some(text)
}

fn no_resume(reason: NoResume, language: Language) -> &'static str {
    let reason = match reason {
        NoResume::NoCheckpoint => Text::new(
            "this run has not written a complete checkpoint yet",
            "本次运行还没有写出完整的 checkpoint",
        ),
        NoResume::OfAnotherRun => Text::new(
            "the checkpoints in the directory are from another run",
            "目录里的 checkpoint 来自另一次运行",
        ),
        NoResume::OptionUnknown => Text::new(
            "zeropilot needs --resume-with to make the program resume from a checkpoint",
            "zeropilot 需要 --resume-with 才能让训练程序续训",
        ),
        NoResume::OtherShape => Text::new(
            "DeepSpeed cannot load the last checkpoint in this stage and with this number of ranks",
            "DeepSpeed 无法在这个 stage 和总卡数下加载最近的 checkpoint",
        ),
        NoResume::NotLinkable => Text::new(
            "zeropilot cannot create a link to the checkpoint",
            "zeropilot 无法为 checkpoint 建立链接",
        ),
    };
    reason.get(language)
}

fn not_again(reason: NoResume, checkpoints: &str, language: Language) -> String {
    let (reason, checkpoints) = (no_resume(reason, language), escaped(checkpoints));
    tr!(
        language,
        "not restarting: {reason}. The command does not contain {checkpoints}, so a new attempt would overwrite the checkpoints in this directory\n  help: pass the directory to the training program as an option, or start again with another directory",
        "不再重新启动：{reason}；命令里没有写出 {checkpoints}，再次尝试会覆盖其中的 checkpoint\n  建议：用训练程序的选项指定该目录，或换一个目录重新启动"
    )
}

fn scratch_refused(reason: NoResume, step: u64, checkpoint: &str, language: Language) -> String {
    let (why, checkpoint) = (no_resume(reason, language), escaped(checkpoint));
    let text = tr!(
        language,
        "not restarting: {why}. A new attempt would start from scratch and lose the progress up to step {step} ({checkpoint})",
        "不再重新启动：{why}。再次尝试只能从头开始，会失去到第 {step} 步为止的进度（{checkpoint}）"
    );
    let help = match reason {
        NoResume::OptionUnknown => Text::new(
            "set --resume-with, or allow the loss with --allow-restart-from-scratch",
            "设置 --resume-with；如果可以放弃这些进度，加上 --allow-restart-from-scratch",
        ),
        _ => Text::new(
            "convert the checkpoint with DeepSpeed's ds_to_universal and start again with a lower batch or another stage, or allow the loss with --allow-restart-from-scratch",
            "用 DeepSpeed 的 ds_to_universal 转换 checkpoint，再以更小的 micro batch 或其他 stage 启动；如果可以放弃这些进度，加上 --allow-restart-from-scratch",
        ),
    };
    let help = help.get(language);
    tr!(language, "{text}\n  help: {help}", "{text}\n  建议：{help}")
}

fn anew(reason: NoResume, checkpoints: Option<&str>, language: Language) -> String {
    let reason = no_resume(reason, language);
    let fresh = checkpoints.map(|path| escaped(path));
    match fresh {
        None => tr!(language, "restarting from scratch: {reason}", "从头开始：{reason}"),
        Some(path) => tr!(
            language,
            "restarting from scratch: {reason}; new checkpoints will be in {path}",
            "从头开始：{reason}；新 checkpoint 写入 {path}"
        ),
    }
}
