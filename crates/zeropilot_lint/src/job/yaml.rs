//! YAML as front ends read it: scalars by their dotted keys.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};

/// Every scalar in the file, by its dotted path; empty if the text is no YAML mapping.
pub(crate) fn scalars(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Ok(documents) = Yaml::load_from_str(text)
        && let Some(document) = documents.first()
    {
        collect(document, "", &mut found);
    }
    found
}

fn collect(node: &Yaml<'_>, path: &str, found: &mut BTreeMap<String, String>) {
    match node {
        Yaml::Mapping(members) => {
            for (key, value) in members {
                if let Some(key) = key.as_str() {
                    let path =
                        if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                    collect(value, &path, found);
                }
            }
        }
        Yaml::Value(scalar) => {
            let text = match scalar {
                Scalar::Null => return,
                Scalar::Boolean(value) => value.to_string(),
                Scalar::Integer(value) => value.to_string(),
                Scalar::FloatingPoint(value) => value.to_string(),
                Scalar::String(value) => value.to_string(),
            };
            found.insert(path.to_owned(), text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_keys_are_joined_by_dots() {
        let found = scalars("num_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n  x: null\n");
        assert_eq!(found["num_processes"], "8");
        assert_eq!(found["deepspeed_config.zero_stage"], "3");
        assert_eq!(found.len(), 2);
    }
}
