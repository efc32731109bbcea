//! The same job on more and more GPUs, as a table with bars.

use zeropilot_step::time::ScalingPoint;
use zeropilot_text::{Language, tr};

use super::SimulateReport;
use super::human::{grouped, seconds};
use super::words::cause;
use crate::Layout;
use crate::memory::bars::bar;

/// Columns of the bars.
const BAR: usize = 20;

/// The table.
pub fn scale(report: &SimulateReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let Some(first) = report.scaling.first() else { return String::new() };
    let mut text = tr!(
        language,
        "     GPUs  accum       step   tokens/s/GPU  MFU   throughput per GPU vs. first row\n",
        "     卡数   累积       每步   每卡 token/s  MFU   每卡吞吐相对第一行\n"
    );
    for point in report.scaling {
        text.push_str(&row(report, first, point, language));
    }
    text
}

fn row(
    report: &SimulateReport<'_>,
    first: &ScalingPoint,
    point: &ScalingPoint,
    language: Language,
) -> String {
    let tokens = point.sequences_per_s * report.question.recipe.sequence as f64;
    let efficiency = point.efficiency(first);
    let longest = point.time.causes().first().map_or(String::new(), |(reason, wait)| {
        let share = wait / point.time.total * 100.0;
        if share < 10.0 {
            return String::new();
        }
        tr!(language, "  {share:.0}% {}", "  {share:.0}% 等待：{}", cause(*reason).get(language))
    });
    let line = format!(
        "  {:>7}  {:>5}  {:>9}  {:>13}  {:>3.0}%  {} {:>4.0}%{longest}",
        point.gpus,
        point.accumulation,
        seconds(point.time.total),
        grouped(tokens / point.gpus as f64),
        point.time.mfu * 100.0,
        bar(thousandths(efficiency), 1000, BAR),
        efficiency * 100.0
    );
    format!("{}\n", line.trim_end())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
fn thousandths(share: f64) -> u64 {
    (share * 1000.0) as u64
}
