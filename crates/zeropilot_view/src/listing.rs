//! What is known, one line each: models of the catalogue, accelerators, rules.

use serde::Serialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;
use zeropilot_cluster::{Accelerator, Cluster, Gpus};
use zeropilot_lint::Rule;
use zeropilot_model::catalogue::Entry;
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use crate::escaped;
use crate::manual::{group_name, severity_name};

/// Something that is listed.
pub trait Listed {
    /// The heads of its columns.
    const HEADS: &'static [Text];

    /// Whether a word in lower case is part of it.
    fn contains(&self, word: &str) -> bool;

    /// Its columns.
    fn cells(&self, language: Language) -> Vec<String>;

    /// As programs read it.
    type Shape<'a>: Serialize
    where
        Self: 'a;

    /// As programs read it.
    fn shape(&self, language: Language) -> Self::Shape<'_>;
}

/// A model of the catalogue: parameters in all, those that a token meets, and the longest sequence.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CatalogueModel<'a> {
    id: &'a str,
    aliases: &'a [String],
    parameters: u64,
    active: Option<u64>,
    longest: Option<u64>,
}

/// A GPU of the catalogue.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CatalogueGpu<'a> {
    name: &'a str,
    slug: String,
    aliases: &'a [String],
    capacity: Option<u64>,
    gpus_per_node: u64,
    bf16: Option<bool>,
}

/// A rule in a line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleLine {
    code: &'static str,
    name: &'static str,
    group: &'static str,
    severity: &'static str,
    summary: &'static str,
}

/// A table for people.
pub fn table<T: Listed>(all: &[&T], language: Language) -> String {
    let heads = T::HEADS.iter().map(|head| head.get(language).to_owned()).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(heads).chain(all.iter().map(|one| one.cells(language))).collect();
    columns(&rows)
}

/// Rows whose cells stand below each other; all have as many.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let padded =
            cells.map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// One JSON array.
pub fn json<'a, T: Listed>(all: &[&'a T], language: Language) -> Vec<T::Shape<'a>> {
    all.iter().map(|one| one.shape(language)).collect()
}

/// That nothing matches a word.
pub fn nothing(word: &str, verb: &str, language: Language) -> String {
    let word = escaped(word);
    tr!(
        language,
        "nothing matches `{word}`; `zeropilot {verb}` lists everything",
        "没有与 `{word}` 匹配的内容；`zeropilot {verb}` 可列出全部"
    )
}

fn any(names: &[String], word: &str) -> bool {
    names.iter().any(|name| name.to_lowercase().contains(word))
}

impl Listed for Entry {
    const HEADS: &'static [Text] = &[
        Text::new("model", "模型"),
        Text::new("parameters", "参数量"),
        Text::new("active", "激活参数"),
        Text::new("positions", "最长序列"),
        Text::new("aliases", "别名"),
    ];

    fn contains(&self, word: &str) -> bool {
        self.id.to_lowercase().contains(word)
            || any(&self.aliases, word)
            || self.model_type.contains(word)
    }

    fn cells(&self, _: Language) -> Vec<String> {
        let positions = self.keys.get("max_position_embeddings").and_then(Value::as_u64);
        vec![
            self.id.clone(),
            rounded(self.params_exact),
            self.params_active_exact.map(rounded).unwrap_or_default(),
            positions.map(|positions| positions.to_string()).unwrap_or_default(),
            self.aliases.join(", "),
        ]
    }

    type Shape<'a> = CatalogueModel<'a>;

    fn shape(&self, _: Language) -> CatalogueModel<'_> {
        CatalogueModel {
            id: &self.id,
            aliases: &self.aliases,
            parameters: self.params_exact,
            active: self.params_active_exact,
            longest: self.keys.get("max_position_embeddings").and_then(Value::as_u64),
        }
    }
}

impl Listed for Accelerator {
    const HEADS: &'static [Text] = &[
        Text::new("--gpus", "--gpus"),
        Text::new("GPU", "GPU"),
        Text::new("memory", "显存"),
        Text::new("per node", "每节点"),
        Text::new("bf16", "bf16"),
    ];

    fn contains(&self, word: &str) -> bool {
        self.name.to_lowercase().contains(word)
            || self.slug().to_lowercase().contains(word)
            || any(&self.aliases, word)
    }

    fn cells(&self, language: Language) -> Vec<String> {
        let bf16 = match self.bf16_supported {
            Some(true) => Text::new("yes", "支持"),
            Some(false) => Text::new("no", "不支持"),
            None => Text::new("", ""),
        };
        vec![
            format!("1x{}", self.slug()),
            self.name.clone(),
            capacity(self).map(|bytes| bytes.to_string()).unwrap_or_default(),
            self.typical_gpus_per_node.to_string(),
            bf16.get(language).to_owned(),
        ]
    }

    type Shape<'a> = CatalogueGpu<'a>;

    fn shape(&self, _: Language) -> CatalogueGpu<'_> {
        CatalogueGpu {
            name: &self.name,
            slug: self.slug(),
            aliases: &self.aliases,
            capacity: capacity(self).map(|bytes| bytes.0),
            gpus_per_node: self.typical_gpus_per_node,
            bf16: self.bf16_supported,
        }
    }
}

impl Listed for Rule {
    const HEADS: &'static [Text] =
        &[Text::new("rule", "规则"), Text::new("severity", "级别"), Text::new("finding", "内容")];

    fn contains(&self, word: &str) -> bool {
        let texts =
            [Language::English, Language::Chinese].map(|language| self.summary.get(language));
        self.code.to_lowercase().starts_with(word)
            || self.name.contains(word)
            || texts.iter().any(|text| text.to_lowercase().contains(word))
    }

    fn cells(&self, language: Language) -> Vec<String> {
        vec![
            self.code.to_owned(),
            severity_name(self.severity).get(language).to_owned(),
            self.summary.get(language).to_owned(),
        ]
    }

    type Shape<'a> = RuleLine;

    fn shape(&self, language: Language) -> RuleLine {
        RuleLine {
            code: self.code,
            name: self.name,
            group: group_name(self.group).get(language),
            severity: self.severity.name(),
            summary: self.summary.get(language),
        }
    }
}

/// What a training on one of them may use.
fn capacity(card: &Accelerator) -> Option<Bytes> {
    let gpus: Gpus = format!("1x{}", card.slug()).parse().ok()?;
    Some(Cluster::new(gpus).capacity()?.bytes.expected())
}

/// `8.2B`, `124M`.
fn rounded(parameters: u64) -> String {
    match parameters {
        1_000_000_000.. => format!("{:.1}B", parameters as f64 / 1e9),
        _ => format!("{:.0}M", parameters as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_model::catalogue;

    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let qwen: Vec<&Entry> =
            catalogue::entries().iter().filter(|entry| entry.contains("qwen3-8b")).collect();
        let table = table(&qwen, Language::English);
        assert!(table.starts_with("model ") && table.contains("8.2B"), "{table}");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].find("parameters"), lines[1].find("8.2B"), "{table}");
    }
}
