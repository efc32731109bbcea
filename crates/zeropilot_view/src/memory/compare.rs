//! Stages and offloads side by side.

use serde::Serialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use zeropilot_ask::{Column, Compared};
use zeropilot_record::Offload;
use zeropilot_text::{Language, Text, tr};

use super::bars::bar;
use super::json::{Parts, RowWords, at_peak, verdict_words};
use super::verdict::{Fit, fit, fit_of};
use crate::Layout;
use crate::estimate::Estimate as Bounds;
use crate::html::Html;
use crate::json::value;
use crate::strategy::offload;

fn words(column: &Column, language: Language) -> String {
    let to = |is_offloaded: bool| if is_offloaded { Offload::Cpu } else { Offload::None };
    let offload = offload(to(column.offload_optimizer), to(column.offload_param), language);
    format!("ZeRO-{}{offload}", column.stage)
}

/// Columns of the bars.
const BAR: usize = 22;

/// The table for people.
pub fn compare(compared: &Compared, layout: &Layout) -> String {
    let language = layout.language;
    let (columns, capacity) = (&compared.columns, compared.capacity());
    let names: Vec<String> = columns.iter().map(|column| words(column, language)).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let most = columns.iter().map(|column| column.answer.device().expected().0);
    let whole = most.chain(capacity.map(|capacity| capacity.expected().0)).max().unwrap_or(1);
    let head = Text::new("GPU", "显存").get(language);
    let host = Text::new("host per node", "每节点主机内存").get(language);
    let mut rows = Vec::new();
    for (column, name) in columns.iter().zip(names) {
        let need = column.answer.device();
        let fit = fit_of(&column.answer, &compared.cluster);
        let word = verdict_words(&column.answer, &compared.cluster, language).unwrap_or_default();
        let verdict = match fit {
            Some(fit) if layout.color => format!("{}{word}\u{1b}[0m", fit.style()),
            _ => word.clone(),
        };
        let (amount, node) = (need.to_string(), column.answer.node().expected().to_string());
        let drawn = bar(need.expected().0, whole, BAR);
        let numbers = format!("{drawn} {amount:<22} {host} {node:>9}");
        let columns = widest + numbers.width() + word.width() + 6;
        rows.push((name, numbers, verdict, columns));
    }
    let is_narrow = |width| rows.iter().any(|(.., columns)| *columns > width);
    let mut text = String::new();
    if layout.width.is_some_and(is_narrow) {
        for (name, numbers, verdict, _) in &rows {
            text.push_str(format!("  {name}  {verdict}").trim_end());
            text.push_str(&format!("\n    {numbers}\n"));
        }
    } else {
        text.push_str(&format!("{}{head}\n", " ".repeat(widest + 4)));
        for (name, numbers, verdict, _) in &rows {
            let padding = " ".repeat(widest - name.width());
            text.push_str(format!("  {name}{padding}  {numbers}  {verdict}").trim_end());
            text.push('\n');
        }
    }
    if let Some(capacity) = capacity {
        text.push_str(&tr!(
            language,
            "Each GPU has {capacity} of memory.\n",
            "每张卡可用显存 {capacity}。\n"
        ));
    }
    text
}

/// All stages and offloads side by side.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Comparison {
    capacity: Option<u64>,
    strategies: Vec<ComparedStrategy>,
}

/// A stage with its offload and the memory that it needs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ComparedStrategy {
    stage: u8,
    offload_optimizer: bool,
    offload_param: bool,
    device: ComparedDevice,
    host: Bounds,
    /// The worse of GPU and host, as far as it is known what they have.
    verdict: Option<Fit>,
}

/// Memory that a strategy needs on a GPU, and its parts at the peak.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ComparedDevice {
    at_peak: Parts,
    low: u64,
    expected: u64,
    high: u64,
    verdict: Option<Fit>,
}

/// The same for machines.
pub fn compare_json(compared: &Compared) -> Value {
    let capacity = compared.capacity();
    let row = |column: &Column| {
        let need = column.answer.device();
        ComparedStrategy {
            stage: column.stage,
            offload_optimizer: column.offload_optimizer,
            offload_param: column.offload_param,
            device: ComparedDevice {
                at_peak: at_peak(&column.answer),
                low: need.low().0,
                expected: need.expected().0,
                high: need.high().0,
                verdict: capacity.map(|capacity| fit(need, capacity)),
            },
            host: column.answer.node().into(),
            verdict: fit_of(&column.answer, &compared.cluster),
        }
    };
    value(&Comparison {
        capacity: capacity.map(|capacity| capacity.expected().0),
        strategies: compared.columns.iter().map(row).collect(),
    })
}

/// The words beside [`compare_json`], row by row, for pages that lay them out themselves.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonWords {
    capacity: Option<String>,
    strategies: Vec<StrategyWords>,
}

/// A strategy of a comparison in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StrategyWords {
    strategy: String,
    /// The DeepSpeed config that the row is for.
    config: String,
    #[serde(flatten)]
    row: RowWords,
}

/// The words of a comparison.
pub fn compare_words(compared: &Compared, language: Language) -> ComparisonWords {
    let row = |column: &Column| StrategyWords {
        strategy: words(column, language),
        // Text keys only, so that it cannot fail.
        config: serde_json::to_string_pretty(&column.config).unwrap_or_default() + "\n",
        row: RowWords::new(&column.answer, &compared.cluster, language),
    };
    ComparisonWords {
        capacity: compared.capacity().map(|capacity| capacity.to_string()),
        strategies: compared.columns.iter().map(row).collect(),
    }
}

/// The table for notebooks and pages.
pub fn compare_html(compared: &Compared, language: Language) -> String {
    let row = |column: &Column| {
        vec![
            words(column, language),
            column.answer.device().to_string(),
            verdict_words(&column.answer, &compared.cluster, language).unwrap_or_default(),
            column.answer.node().to_string(),
        ]
    };
    let head = Text::new(
        "Strategy, GPU memory, verdict, host memory per node:",
        "方案、显存、结论、每节点主机内存：",
    )
    .get(language);
    Html::new().table(head, &compared.columns.iter().map(row).collect::<Vec<_>>()).finish()
}
