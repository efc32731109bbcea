//! Stages and offloads side by side.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;
use zeropilot_lint::{Language, Text};
use zeropilot_step::memory::Answer;
use zeropilot_units::Estimate;

use super::bars::bar;
use super::verdict::fit;
use crate::Layout;

/// One way to train.
#[derive(Debug)]
pub struct Column {
    /// The stage.
    pub stage: u8,
    /// Whether the optimizer is on the host.
    pub offload_optimizer: bool,
    /// Whether the parameters are on the host.
    pub offload_param: bool,
    /// What it needs.
    pub answer: Answer,
}

impl Column {
    fn words(&self, language: Language) -> String {
        let offload = match (self.offload_optimizer, self.offload_param) {
            (true, true) => Text::new(" + optimizer, weights on host", " + 优化器、权重卸载"),
            (true, false) => Text::new(" + optimizer on host", " + 优化器卸载"),
            _ => Text::new("", ""),
        };
        format!("ZeRO-{}{}", self.stage, offload.get(language))
    }
}

/// Columns of the bars.
const BAR: usize = 22;

/// The table for people.
pub fn compare(columns: &[Column], capacity: Option<Estimate>, layout: &Layout) -> String {
    let language = layout.language;
    let names: Vec<String> = columns.iter().map(|column| column.words(language)).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let most = columns.iter().map(|column| column.answer.device().expected().0);
    let whole = most.chain(capacity.map(|capacity| capacity.expected().0)).max().unwrap_or(1);
    let head = Text::new("GPU", "显存").get(language);
    let host = Text::new("host per node", "每节点内存").get(language);
    let mut text = format!("{}{head}\n", " ".repeat(widest + 4));
    for (column, name) in columns.iter().zip(names) {
        let need = column.answer.device();
        let padding = " ".repeat(widest - name.width());
        let verdict = capacity.map_or(String::new(), |capacity| {
            let fit = fit(need, capacity);
            let word = fit.words(language);
            if layout.color { format!("{}{word}\u{1b}[0m", fit.style()) } else { word.to_owned() }
        });
        let amount = need.to_string();
        let node = column.answer.node().expected().to_string();
        let line = format!(
            "  {name}{padding}  {} {amount:<22} {host} {node:>9}  {verdict}",
            bar(need.expected().0, whole, BAR)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if let Some(capacity) = capacity {
        text.push_str(&match language {
            Language::English => format!("Each GPU has {capacity}.\n"),
            Language::Chinese => format!("每张卡可用 {capacity}。\n"),
        });
    }
    text
}

/// The same for machines.
pub fn compare_json(columns: &[Column], capacity: Option<Estimate>) -> Value {
    let rows: Vec<Value> = columns
        .iter()
        .map(|column| {
            let (device, node) = (column.answer.device(), column.answer.node());
            json!({
                "stage": column.stage,
                "offload_optimizer": column.offload_optimizer,
                "offload_param": column.offload_param,
                "device": {
                    "low": device.low().0, "expected": device.expected().0, "high": device.high().0,
                    "verdict": capacity.map(|capacity| fit(device, capacity).name()),
                },
                "host": {
                    "low": node.low().0, "expected": node.expected().0, "high": node.high().0,
                },
            })
        })
        .collect();
    json!({"capacity": capacity.map(|capacity| capacity.expected().0), "ways": rows})
}
