//! Why a strategy is recommended before the others that fit.

use zeropilot_ask::Note;
use zeropilot_plan::{Fitting, Plan};
use zeropilot_text::{Language, Text};

use super::{PlanReport, offers};

/// The reason, as the end of a sentence.
pub(super) fn why(report: &PlanReport<'_>, language: Language) -> &'static str {
    let plan = report.plan;
    if report.offers.is_some() {
        return offers::why(language);
    }
    let is_alone = plan.fitting.len() < 2;
    let is_timed = plan.fitting.first().is_some_and(|choice| choice.time.is_some());
    let reason = match (is_alone, is_timed) {
        (true, _) if !plan.held.is_nothing() => Text::new(
            "no other strategy with the options that you set fits",
            "在指定的选项下，别的方案都放不下",
        ),
        (true, _) => Text::new("no other strategy fits", "别的方案都放不下"),
        (false, true) if is_fastest(plan) => {
            Text::new("has the lowest predicted time per sequence", "预测每条序列耗时最短")
        }
        (false, true) => Text::new(
            "needs at most 5% more time than the fastest strategy, with less offload, more headroom or a lower stage",
            "比最快的方案最多慢 5%，但卸载更少、余量更大或 stage 更低",
        ),
        (false, false) if lacks_bf16(report) => Text::new(
            "is first in the cost order. This order prefers less waiting for the host, fewer gathers, no recomputation and a larger micro-batch size. These GPUs do not support bf16: set --precision fp16 to compare step times",
            "按代价排序排在第一（等待主机更少、聚合权重更少、不做激活重计算、micro batch 更大）。这些卡不支持 bf16：改用 --precision fp16 才能按每步用时比较",
        ),
        (false, false) => Text::new(
            "is first in the cost order. This order prefers less waiting for the host, fewer gathers, no recomputation and a larger micro-batch size. To compare step times, name the GPU model, as in 8xH100",
            "按代价排序排在第一（等待主机更少、聚合权重更少、不做激活重计算、micro batch 更大）。要按每步用时比较，请写明型号，如 8xH100",
        ),
    };
    reason.get(language)
}

fn lacks_bf16(report: &PlanReport<'_>) -> bool {
    report.provenance.notes.iter().any(|note| matches!(note, Note::NoBf16 { .. }))
}

fn is_fastest(plan: &Plan) -> bool {
    let seconds = |fitting: &Fitting| fitting.seconds_per_sequence().unwrap_or(f64::INFINITY);
    let least = plan.fitting.iter().map(seconds).fold(f64::INFINITY, f64::min);
    plan.fitting.first().is_some_and(|choice| seconds(choice) <= least)
}
