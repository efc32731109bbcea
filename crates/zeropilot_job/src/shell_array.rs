//! Arrays of a shell script, as far as their words are written out.

use std::collections::HashMap;

use zeropilot_config::syntax::Span;

use crate::shell::UNKNOWN;

/// Arrays by name: their words, with [`UNKNOWN`] for what cannot be known of them, and where each stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrays(HashMap<String, Vec<(String, Span)>>);

impl Arrays {
    pub(crate) fn get(&self, name: &str) -> Option<&Vec<(String, Span)>> {
        self.0.get(name)
    }

    /// Sets an array, or adds to it. In a branch, words may be added; one that is set there or a second time has words
    /// that depend on the way to it.
    pub(crate) fn assign(
        &mut self,
        name: &str,
        words: Vec<(String, Span)>,
        (adds, conditional): (bool, bool),
        place: Span,
    ) {
        let open = (UNKNOWN.to_owned(), place);
        // An index or a key before the value.
        let is_plain = !words.iter().any(|(word, _)| word.starts_with('['));
        match self.0.get_mut(name) {
            Some(before) if adds && (conditional || !is_plain) => before.push(open),
            Some(before) if adds => before.extend(words),
            None if !conditional && is_plain => {
                self.0.insert(name.to_owned(), words);
            }
            _ => {
                self.0.insert(name.to_owned(), vec![open]);
            }
        }
    }

    /// Its words are not known any more.
    pub(crate) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}

/// The name of the array whose words an expansion is: `"${A[@]}"`, or `${A[@]+"${A[@]}"}` for one that may be empty.
pub(crate) fn expanded_array(text: &str) -> Option<&str> {
    let text = text.trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let inside = bare.unwrap_or(text).strip_prefix("${")?.strip_suffix('}')?;
    let inside = match inside.split_once('+') {
        Some((array, again)) => {
            let array = array.strip_suffix(':').unwrap_or(array);
            (again.trim_matches('"') == format!("${{{array}}}")).then_some(array)?
        }
        None => inside,
    };
    // Between quotes `*` makes one word of all.
    let all = if bare.is_some() { inside.strip_suffix("[@]") } else { None };
    let name = all.or_else(|| {
        let is_open = bare.is_none();
        ["[@]", "[*]"].into_iter().filter(|_| is_open).find_map(|end| inside.strip_suffix(end))
    })?;
    name.chars().all(|letter| letter.is_alphanumeric() || letter == '_').then_some(name)
}
