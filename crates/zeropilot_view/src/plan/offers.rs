//! What a run costs by the number of GPUs it is given.

use zeropilot_ask::Bill;
use zeropilot_plan::{Fitting, Offer};
use zeropilot_text::{Language, Text, tr};

use super::{PlanReport, way_words};
use crate::cost;
use crate::simulate::human::{grouped, token_words};

/// Tokens that are told of where nobody said how many there are.
pub(super) const USUAL: Bill = Bill { tokens: 1e9, per_gpu_hour: None, currency: None };

/// Hours of GPUs that the tokens of a bill take; `None` if the speed of the GPUs is unknown.
pub(super) fn gpu_hours(fitting: &Fitting, bill: Bill, length: u64) -> Option<f64> {
    Some(fitting.seconds_per_sequence()? / length as f64 * bill.tokens / 3600.0)
}

/// What the choice costs, if somebody said how many tokens there are.
pub(super) fn of_choice(report: &PlanReport<'_>, choice: &Fitting, language: Language) -> String {
    let Some(bill) = report.bill.filter(|_| report.offers.is_none()) else { return String::new() };
    let Some(cost) = cost_words(report, choice, report.world, language) else {
        return String::new();
    };
    let tokens = token_words(bill.tokens, language);
    tr!(language, "  {tokens}: {cost}\n", "  {tokens}：{cost}\n")
}

/// Why an offer is chosen; how much is the same is [`zeropilot_plan::NEGLIGIBLE`].
pub(super) fn why(language: Language) -> &'static str {
    Text::new(
        "has the lowest predicted GPU time per sequence (within 5%, zeropilot prefers more GPUs)",
        "预测每条序列所用的 GPU 时间最少（相差 5% 以内视为相同，取卡数多的方案）",
    )
    .get(language)
}

/// What is being done meanwhile.
pub fn offers_take_long(language: Language) -> &'static str {
    Text::new("planning for increasing numbers of GPUs", "正在按不同卡数分别规划").get(language)
}

/// The head of the table.
pub(super) fn head(report: &PlanReport<'_>, language: Language) -> String {
    let tokens = token_words(report.bill.unwrap_or(USUAL).tokens, language);
    tr!(language, "Cost of {tokens}, by number of GPUs:", "{tokens} 在不同卡数下的开销：")
}

/// A line for each number of GPUs.
pub(super) fn lines(report: &PlanReport<'_>, language: Language) -> Vec<(String, String)> {
    let line = |offer: &Offer| {
        let world = offer.cluster.world_size();
        let (count, unit) = (grouped(world as f64), if world == 1 { "GPU" } else { "GPUs" });
        let gpus = tr!(language, "{count} {unit}", "{count} 张卡");
        let Some(best) = offer.plan.fitting.first() else {
            return (gpus, tr!(language, "no strategy fits", "没有放得下的方案"));
        };
        let mut text = cost_words(report, best, world, language).unwrap_or_default();
        text.push_str(Text::new("; ", "；").get(language));
        text.push_str(&way_words(best.way, language));
        if world == report.world {
            text.push_str(Text::new("  (chosen)", "（已选）").get(language));
        }
        (gpus, text)
    };
    report.offers.iter().flat_map(|offers| offers.each()).map(line).collect()
}

/// What a strategy costs on so many GPUs.
fn cost_words(
    report: &PlanReport<'_>,
    fitting: &Fitting,
    world: u64,
    language: Language,
) -> Option<String> {
    let bill = report.bill.unwrap_or(USUAL);
    let hours = gpu_hours(fitting, bill, report.length)?;
    let time = fitting.time?;
    let expected = time.expected.total;
    let hours = [time.best.total, expected, time.worst.total].map(|step| hours * step / expected);
    Some(cost::words(hours, world, &bill, language))
}

#[cfg(test)]
mod tests {
    use zeropilot_plan::NEGLIGIBLE;

    use super::*;

    #[test]
    fn what_counts_as_the_same_cost_is_said_as_it_is() {
        let percent = format!("{:.0}%", NEGLIGIBLE * 100.0);
        assert!(why(Language::English).contains(&percent));
        assert!(why(Language::Chinese).contains(&percent));
    }
}
