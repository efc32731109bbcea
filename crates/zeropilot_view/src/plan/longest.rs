//! How long sequences get, in words.

use zeropilot_plan::{Bound, Reach};
use zeropilot_text::{Language, Text, tr};

use super::{PlanReport, script};
use crate::simulate::human::grouped;

/// "Longest sequence that fits: 131,072 tokens"; nothing where that was not asked.
pub(super) fn head(report: &PlanReport<'_>, language: Language) -> String {
    let Some((longest, reach)) = report.longest.and_then(|it| Some((it, it.reaches.last()?)))
    else {
        return String::new();
    };
    let (sure, expected) = (grouped(reach.sequence as f64), grouped(longest.expected as f64));
    let limit = limit(reach.bound, language);
    tr!(
        language,
        "Longest sequence that fits even at the upper bound of the prediction: {sure} tokens; up to {expected} are expected to fit{limit}\n",
        "按上界也放得下的最长序列：{sure} 个 token；按预期值可到 {expected} 个{limit}\n"
    )
}

fn limit(bound: Bound, language: Language) -> &'static str {
    match bound {
        Bound::Memory => Text::new("", ""),
        Bound::Kernels => Text::new(
            ". Longer sequences exceed the 32-bit offsets of fused kernels (2^31 elements on a GPU), not the GPU memory",
            "。再长时超出的是融合 kernel 的 32 位偏移（每卡 2^31 个元素），不是显存",
        ),
        Bound::Asked => Text::new(
            ". zeropilot does not search beyond this length",
            "。更长的序列 zeropilot 不再计算",
        ),
    }
    .get(language)
}

/// What the script has to do, and how long sequences get with it.
pub(super) fn lines(report: &PlanReport<'_>, language: Language) -> Vec<(String, String)> {
    let reaches = report.longest.map_or(&[][..], |longest| &longest.reaches);
    let line = |reach: &Reach| {
        let tokens = grouped(reach.sequence as f64);
        (changes(reach, language), tr!(language, "{tokens} tokens", "{tokens} 个 token"))
    };
    reaches.iter().map(line).collect()
}

fn changes(reach: &Reach, language: Language) -> String {
    let long = script::long_context(reach.long_context, language);
    let fused = Text::new("fused loss", "融合 loss").get(language);
    let separators: &[char] = &[',', '，', ' '];
    match (reach.fused_loss, long.trim_start_matches(separators)) {
        (false, "") => {
            let nothing = Text::new(
                "ZeRO, offload and gradient checkpointing alone",
                "只用 ZeRO、卸载和梯度检查点",
            );
            nothing.get(language).to_owned()
        }
        (false, long) => long.to_owned(),
        (true, _) => format!("{fused}{long}"),
    }
}
