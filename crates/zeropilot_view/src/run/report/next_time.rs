//! What a run teaches about the next one.

use zeropilot_record::{Attempt, Cause, NoResume, RunEvent};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::Page;
use super::measures::Measures;
use crate::run::{advice_after, setup_words};

/// A share of the memory below which more of it could be used.
const ROOMY: f64 = 0.6;

/// What to change, most important first.
pub(super) fn wishes(page: &Page<'_>, measures: &Measures, language: Language) -> Vec<String> {
    let Some(verdict) = page.verdict else { return Vec::new() };
    let mut wishes: Vec<String> = Vec::new();
    wishes.extend(advice_after(page.info, verdict, language));
    if verdict.cause == Cause::Completed {
        wishes.extend(fallback(&verdict.attempts, language));
        wishes.extend(room(measures, language));
    }
    wishes.extend(anew(page, language));
    wishes.extend(prediction(page, measures, language));
    wishes
}

/// The fallback on which it worked, if it was not the first.
fn fallback(attempts: &[Attempt], language: Language) -> Option<String> {
    let last = attempts.last().filter(|last| !last.strategy.is_as_given())?;
    let strategy = setup_words(&last.strategy, language);
    let config = last.config.clone().unwrap_or_default();
    Some(tr!(
        language,
        "start directly with the strategy that worked, {strategy}, and skip the failed attempts: {config}",
        "直接用成功的方案（{strategy}）启动，省去前面失败的尝试：{config}"
    ))
}

/// Memory of GPUs that nobody used.
fn room(measures: &Measures, language: Language) -> Option<String> {
    let (total, (_, most)) = (measures.gpu_total?, measures.fullest()?);
    let share = most as f64 / total as f64;
    (share < ROOMY).then(|| {
        let percent = share * 100.0;
        tr!(language, "the fullest GPU used {percent:.0}% of its memory: a larger micro-batch size or a lower stage may be faster (zeropilot plan)", "最满的一张卡只用了 {percent:.0}% 的显存：增大 micro batch 或降低 stage 可能更快（用 zeropilot plan 比较）")
    })
}

/// Work that was done twice because there was no checkpoint to go on from, or nobody said how.
fn anew(page: &Page<'_>, language: Language) -> Option<String> {
    let reason = page.events.iter().find_map(|event| match event.happening {
        RunEvent::BeginningAnew { reason, .. } => Some(reason),
        _ => None,
    })?;
    let wish = match reason {
        NoResume::NoCheckpoint => Text::new(
            "save checkpoints more often: one attempt restarted from scratch, because no checkpoint was complete",
            "更频繁地保存 checkpoint：有一次重启时还没有完整的 checkpoint，只能从头训练",
        ),
        NoResume::OptionUnknown => Text::new(
            "set how the program resumes from a checkpoint (--resume-with): one attempt restarted from scratch",
            "用 --resume-with 指定如何续训：有一次重启后只能从头训练",
        ),
        NoResume::OfAnotherRun => Text::new(
            "use a new directory for the checkpoints of each run: one attempt restarted from scratch next to checkpoints of another run",
            "给每次运行单独的 checkpoint 目录：有一次重启时目录里只有另一次运行的 checkpoint，只能从头训练",
        ),
        NoResume::OtherShape | NoResume::NotLinkable => return None,
    };
    Some(wish.get(language).to_owned())
}

/// A prediction that was too low.
fn prediction(page: &Page<'_>, measures: &Measures, language: Language) -> Option<String> {
    let (rank, most) = measures.fullest().filter(|_| !measures.on_gpu.is_empty())?;
    let over = most.checked_sub(page.info.predicted?).filter(|over| *over > 0)?;
    let over = Bytes(over);
    Some(tr!(
        language,
        "rank {rank} used {over} more GPU memory than predicted: find out what uses it (zeropilot memory), and leave this much more headroom",
        "rank {rank} 比预测多用了 {over}：用 zeropilot memory 查看显存被什么占用，并多留出这些余量"
    ))
}
