//! An open file: its text as the editor has it, and whether it concerns us.

use gen_lsp_types::{TextDocumentContentChangeEvent, Uri};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::top_level_keys;
use zeropilot_lint::recognition::has_name_of_config;

use crate::positions::Positions;

/// An open file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    pub(crate) text: String,
    pub(crate) positions: Positions,
}

impl Document {
    pub(crate) fn new(uri: Uri, version: i32, text: String) -> Self {
        let positions = Positions::new(&text);
        Self { uri, version, text, positions }
    }

    /// Takes an edit: of a part, or the whole text anew.
    pub(crate) fn change(&mut self, change: TextDocumentContentChangeEvent) {
        match change {
            TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                let start = self.positions.offset(&self.text, part.range.start);
                let end = self.positions.offset(&self.text, part.range.end).max(start);
                self.text.replace_range(start..end, &part.text);
            }
            TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                self.text = whole.text;
            }
        }
        self.positions = Positions::new(&self.text);
    }

    /// Whether the file is a DeepSpeed config: by a key that nothing else has, or by its name if no key speaks against
    /// it.
    pub(crate) fn is_config(&self) -> bool {
        let keys = top_level_keys(&self.text);
        if keys.iter().any(|key| OWN_KEYS.contains(&key.as_str())) {
            return true;
        }
        let schema = EngineVersion::NEWEST.schema();
        let may_be = keys.is_empty() || keys.iter().any(|key| schema.reads_top_level(key));
        may_be && has_name_of_config(&self.uri.0)
    }
}

/// Keys that only DeepSpeed reads.
const OWN_KEYS: [&str; 4] = [
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
];

#[cfg(test)]
mod tests {
    use gen_lsp_types::{Position, Range, TextDocumentContentChangePartial};

    use super::*;

    fn is_config(name: &str, text: &str) -> bool {
        Document::new(Uri(format!("file:///x/{name}")), 1, text.to_owned()).is_config()
    }

    #[test]
    fn configs_are_known_by_their_keys_or_their_names() {
        assert!(is_config("train.json", "{\"zero_optimization\": {\"sta"));
        assert!(is_config("ds_config.json", ""));
        assert!(is_config("my-deepspeed-z3.json", "{\"fp16\": {}}"));
        assert!(is_config("zero3.json", "{\"train_batch_size\": 8"));
        assert!(!is_config("package.json", "{\"name\": \"deepspeed\", \"version\": \"1\"}"));
        assert!(!is_config("zerotier.json", "{\"port\": 9993}"));
        assert!(!is_config("ds_config.yaml", ""));
        assert!(!is_config("model.json", "{\"config\": {\"zero_optimization\": {}}}"));
    }

    #[test]
    fn edits_are_placed_by_utf_16_columns() {
        let mut document =
            Document::new(Uri("file:///x".to_owned()), 1, "{\"😀\": 1}\n".to_owned());
        let range = Range {
            start: Position { line: 0, character: 7 },
            end: Position { line: 0, character: 8 },
        };
        let part =
            TextDocumentContentChangePartial { range, text: "22".to_owned(), ..Default::default() };
        document.change(TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part));
        assert_eq!(document.text, "{\"😀\": 22}\n");
    }
}
