//! Training that goes on, but not as it did: jumps, slower steps, a rank that the others wait for.

use zeropilot_record::{Jumped, RanksAt, RunEvent};
use zeropilot_text::{Language, Text, tr};

use super::hang;

/// What is said of it; nothing of anything else.
pub(super) fn happened(happening: &RunEvent, language: Language) -> Option<String> {
    match happening {
        RunEvent::Continued { attempts } => Some(tr!(
            language,
            "continuing the run in this record (attempts so far: {attempts})",
            "继续该记录中的运行，此前已启动 {attempts} 次"
        )),
        RunEvent::Spike { what, step, value, usual } => {
            Some(spike(*what, *step, [*value, *usual], language))
        }
        RunEvent::Slower { seconds_per_step, usual } => {
            Some(slower(*seconds_per_step, *usual, language))
        }
        RunEvent::PaceCompared { seconds_per_step, predicted } => {
            compared(*seconds_per_step, *predicted, language)
        }
        RunEvent::Straggler { rank, waited, looks, stood } => {
            Some(straggler(*rank, (*waited, *looks), stood, language))
        }
        _ => None,
    }
}

fn spike(what: Jumped, step: u64, [value, usual]: [f64; 2], language: Language) -> String {
    let what = match what {
        Jumped::Loss => Text::new("the loss", "loss "),
        Jumped::GradientNorm => Text::new("the gradient norm", "梯度范数"),
    };
    let what = what.get(language);
    tr!(
        language,
        "{what} jumped to {value:.4} at step {step} (usually {usual:.4})",
        "{what}在第 {step} 步升高到 {value:.4}（通常为 {usual:.4}）"
    )
}

fn slower(now: f64, usual: f64, language: Language) -> String {
    tr!(
        language,
        "steps have slowed down: {now:.3} s each, {:.1} times the usual {usual:.3} s\n  help: use --find-stragglers to find a rank that the others wait for",
        "训练变慢：每步 {now:.3} 秒，是平时 {usual:.3} 秒的 {:.1} 倍\n  建议：用 --find-stragglers 找出其他 rank 在等哪个 rank",
        now / usual
    )
}

/// Steps that take this many times as long as predicted are worth a word.
const SLOW: f64 = 1.5;

fn compared(now: f64, predicted: f64, language: Language) -> Option<String> {
    (now > SLOW * predicted).then(|| {
        tr!(
            language,
            "steps take {now:.3} s, {:.1} times the predicted {predicted:.3} s",
            "每步 {now:.3} 秒，是预测 {predicted:.3} 秒的 {:.1} 倍",
            now / predicted
        )
    })
}

fn straggler(
    rank: u32,
    (waited, looks): (usize, usize),
    at: &RanksAt,
    language: Language,
) -> String {
    let position = hang::position(at, language);
    tr!(
        language,
        "the other ranks wait for rank {rank}: in {waited} of {looks} samples, only this rank was not in a collective\n  - {position}",
        "其他 rank 在等 rank {rank}：{looks} 次采样中有 {waited} 次只有它不在集合通信中\n  - {position}"
    )
}
