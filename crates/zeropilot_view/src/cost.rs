//! What it takes to finish a run: GPU hours, time and money, each with its bounds.

use zeropilot_ask::Bill;
use zeropilot_text::{Language, tr};

use crate::simulate::human::{duration, grouped};

/// "39 GPU hours (30–52), 4.9 h, $97 ($75–130) at $2.5 per GPU hour"; hours from the fastest step to the slowest.
pub(crate) fn words(hours: [f64; 3], ranks: u64, bill: &Bill, language: Language) -> String {
    let took = duration(hours[1] * 3600.0 / ranks.max(1) as f64, language);
    let [low, expected, high] = hours.map(short);
    let mut text = tr!(
        language,
        "{expected} GPU hours ({low}–{high}), {took}",
        "{expected} GPU 小时（{low}–{high}），历时 {took}"
    );
    if let Some(price) = bill.per_gpu_hour {
        let sign = bill.currency.map_or(String::new(), String::from);
        let [low, expected, high] = hours.map(|hours| money(hours * price));
        text.push_str(&tr!(
            language,
            ", {sign}{expected} ({sign}{low}–{high}) at {sign}{price} per GPU hour",
            "，费用 {sign}{expected}（{sign}{low}–{high}，每 GPU 小时 {sign}{price}）"
        ));
    }
    text
}

/// One decimal where it says something.
pub(crate) fn short(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value) }
}

/// Cents where there are few.
pub(crate) fn money(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { grouped(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_keeps_its_bounds_and_its_currency() {
        let bill = Bill { tokens: 1e9, per_gpu_hour: Some(2.5), currency: Some('$') };
        // 39 h at 2.5 are 97.5; over 8 GPUs they take 4.875 h.
        assert_eq!(
            words([30.0, 39.0, 52.0], 8, &bill, Language::English),
            "39.0 GPU hours (30.0–52.0), 4.9 h, $98 ($75–130) at $2.5 per GPU hour"
        );
        let bill = Bill { currency: None, ..bill };
        assert_eq!(
            words([0.3, 0.4, 0.5], 1, &bill, Language::Chinese),
            "0.4 GPU 小时（0.3–0.5），历时 24.0 分钟，费用 1.00（0.75–1.25，每 GPU 小时 2.5）"
        );
    }
}
