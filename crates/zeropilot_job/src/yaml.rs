//! YAML as frameworks read it: scalars and lists of scalars by their dotted keys.

use saphyr::{LoadableYamlNode as _, MarkedYaml, Marker, Scalar, YamlData};
use zeropilot_config::syntax::Span;

/// A value with its dotted key and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) span: Span,
}

/// Every scalar in the file; none if the text is no YAML mapping.
pub(crate) fn scalars(text: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    if let Ok(documents) = MarkedYaml::load_from_str(text)
        && let Some(document) = documents.first()
    {
        let offsets = Offsets::of(text);
        collect(&offsets, document, "", &mut found);
    }
    found
}

fn collect(offsets: &Offsets, node: &MarkedYaml<'_>, path: &str, found: &mut Vec<Entry>) {
    match &node.data {
        YamlData::Mapping(members) => {
            for (key, value) in members {
                if let YamlData::Value(Scalar::String(key)) = &key.data {
                    let path =
                        if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
                    collect(offsets, value, &path, found);
                }
            }
        }
        YamlData::Value(scalar) => {
            let Some(value) = written(scalar) else { return };
            let span = Span::new(offsets.at(&node.span.start), offsets.at(&node.span.end));
            found.push(Entry { key: path.to_owned(), value, span });
        }
        YamlData::Sequence(items) if !path.is_empty() => {
            let scalars = items.iter().map(|item| match &item.data {
                YamlData::Value(scalar) => written(scalar),
                _ => None,
            });
            if let Some(values) = scalars.collect::<Option<Vec<String>>>() {
                let span = Span::new(offsets.at(&node.span.start), offsets.at(&node.span.end));
                found.push(Entry { key: path.to_owned(), value: values.join(","), span });
            }
        }
        _ => {}
    }
}

fn written(scalar: &Scalar<'_>) -> Option<String> {
    match scalar {
        Scalar::Null => None,
        Scalar::Boolean(value) => Some(value.to_string()),
        Scalar::Integer(value) => Some(value.to_string()),
        Scalar::FloatingPoint(value) => Some(value.to_string()),
        Scalar::String(value) => Some(value.to_string()),
    }
}

/// Markers count characters; places are counted in bytes.
struct Offsets {
    /// Where each character begins; none if every one is a byte.
    starts: Option<Vec<usize>>,
    end: usize,
}

impl Offsets {
    fn of(text: &str) -> Self {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { starts, end: text.len() }
    }

    fn at(&self, marker: &Marker) -> usize {
        match &self.starts {
            None => marker.index().min(self.end),
            Some(starts) => starts.get(marker.index()).copied().unwrap_or(self.end),
        }
    }
}

/// What the Trainer calls an argument that axolotl has a name of its own for.
pub(crate) fn axolotl_argument(key: &str) -> &str {
    match key {
        "micro_batch_size" => "per_device_train_batch_size",
        "optimizer" => "optim",
        "lr_scheduler" => "lr_scheduler_type",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_keys_are_joined_by_dots_and_have_their_place() {
        let text = "名: é\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n  x: null\n\
                    targets: [q, v]\nsets:\n  - path: p\n";
        let found = scalars(text);
        let keys: Vec<_> = found.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["名", "num_processes", "deepspeed_config.zero_stage", "targets"]);
        assert_eq!(found[2].value, "3");
        assert_eq!(found[2].span.of(text), Some("3"));
        assert_eq!(found[3].value, "q,v");
        assert_eq!(scalars("- 1\n- 2\n"), []);
        assert_eq!(scalars("{a: "), []);
    }
}
