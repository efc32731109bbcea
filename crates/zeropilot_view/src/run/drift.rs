//! Training that goes on, but not as it did: jumps, slower steps, a rank that the others wait for.

use zeropilot_record::{Jumped, RanksAt};
use zeropilot_text::{Language, Text, tr};

use super::hang;

pub(super) fn spike(
    what: Jumped,
    step: u64,
    [value, usual]: [f64; 2],
    language: Language,
) -> String {
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

pub(super) fn slower(now: f64, usual: f64, language: Language) -> String {
    tr!(
        language,
        "steps became slower: {now:.3} s each, {:.1} times the usual {usual:.3} s\n  help: --find-stragglers names a rank that the others wait for",
        "训练变慢：每步 {now:.3} 秒，是平时 {usual:.3} 秒的 {:.1} 倍\n  建议：--find-stragglers 会指出其他 rank 在等谁",
        now / usual
    )
}

/// Steps that take this many times as long as predicted are worth a word.
const SLOW: f64 = 1.5;

pub(super) fn compared(now: f64, predicted: f64, language: Language) -> Option<String> {
    (now > SLOW * predicted).then(|| {
        tr!(
            language,
            "steps take {now:.3} s, {:.1} times the predicted {predicted:.3} s",
            "每步 {now:.3} 秒，是预测 {predicted:.3} 秒的 {:.1} 倍",
            now / predicted
        )
    })
}

pub(super) fn straggler(
    rank: u32,
    (waited, looks): (usize, usize),
    at: &RanksAt,
    language: Language,
) -> String {
    let position = hang::position(at, language);
    tr!(
        language,
        "the other ranks wait for rank {rank}: in {waited} of {looks} looks it alone was in no collective\n  - {position}",
        "其他 rank 在等 rank {rank}：{looks} 次查看中有 {waited} 次只有它不在集合通信中\n  - {position}"
    )
}
