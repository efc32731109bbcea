//! How people spell accelerators: `A100-80G`, `a100 80gb`, `NVIDIA A100-SXM4-80GB` are one name.

/// Words that tell nothing: makers and product lines.
const EMPTY_WORDS: [&str; 12] = [
    "nvidia", "tesla", "geforce", "quadro", "rtx", "amd", "instinct", "huawei", "ascend", "intel",
    "habana", "gpu",
];

/// A word of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// A size of memory in gigabytes.
    Memory(u64),
    /// Anything else, in lower case.
    Other(String),
}

/// A name in its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(Vec<Word>);

impl Name {
    pub(crate) fn new(text: &str) -> Self {
        let lower = text.to_lowercase();
        let parts = lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        let mut words: Vec<Word> = Vec::new();
        for part in parts {
            let part = without_line(part);
            if EMPTY_WORDS.contains(&part) {
                continue;
            }
            match (is_gigabyte(part), words.last_mut()) {
                // `80 GB`
                (true, Some(last)) => match last {
                    Word::Other(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                        *last = number.parse().map_or(Word::Other(number.clone()), Word::Memory);
                    }
                    _ => words.push(Word::Other(part.to_owned())),
                },
                _ => words.push(word(part)),
            }
        }
        Self(words)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The words written together: `a10080g`.
    pub(crate) fn key(&self) -> String {
        let mut key = String::new();
        for word in &self.0 {
            match word {
                Word::Memory(gigabytes) => key.push_str(&format!("{gigabytes}g")),
                Word::Other(text) => key.push_str(text),
            }
        }
        key
    }

    /// How many words of `label` this name leaves out, if it says nothing that `label` or `memory` denies.
    pub(crate) fn left_out_of(&self, label: &Self, memory: Option<u64>) -> Option<usize> {
        let mut matched = 0;
        for word in &self.0 {
            match word {
                Word::Memory(gigabytes) if memory == Some(*gigabytes) => {}
                Word::Memory(_) => return None,
                Word::Other(text) if label.has(text) => matched += 1,
                Word::Other(_) => return None,
            }
        }
        let others = label.0.iter().filter(|word| matches!(word, Word::Other(_))).count();
        (matched > 0).then(|| others.saturating_sub(matched))
    }

    fn has(&self, text: &str) -> bool {
        self.0.iter().any(|word| match word {
            Word::Other(own) => own == text || (text == "sxm" && own.starts_with("sxm")),
            Word::Memory(_) => false,
        })
    }
}

/// `rtx4090` is `4090`, `rtxpro6000` is `pro6000`, `ascend910b` is `910b`.
fn without_line(part: &str) -> &str {
    let bare = part.strip_prefix("rtx").or_else(|| part.strip_prefix("ascend"));
    let is_name = |bare: &&str| {
        bare.strip_prefix("pro").unwrap_or(bare).starts_with(|c: char| c.is_ascii_digit())
    };
    bare.filter(is_name).unwrap_or(part)
}

fn is_gigabyte(part: &str) -> bool {
    matches!(part, "g" | "gb" | "gib")
}

fn word(part: &str) -> Word {
    let digits = part.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = part.split_at(digits);
    match number.parse() {
        Ok(gigabytes) if is_gigabyte(unit) => Word::Memory(gigabytes),
        _ => Word::Other(part.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_have_one_key() {
        for text in ["A100-80G", "a100 80gb", "NVIDIA A100 80 GB", "Tesla_A100_80GiB"] {
            assert_eq!(Name::new(text).key(), "a10080g", "{text}");
        }
        for text in ["4090", "RTX4090", "GeForce RTX 4090", "rtx-4090"] {
            assert_eq!(Name::new(text).key(), "4090", "{text}");
        }
        assert_eq!(Name::new("RTXPRO6000").key(), Name::new("RTX PRO 6000").key());
        assert!(Name::new("NVIDIA GPU").is_empty());
    }

    #[test]
    fn a_name_that_says_less_fits_and_one_that_says_otherwise_does_not() {
        let label = Name::new("A100 SXM4 80GB");
        let fits = |text| Name::new(text).left_out_of(&label, Some(80));
        assert_eq!(fits("a100"), Some(1));
        assert_eq!(fits("a100 sxm 80g"), Some(0));
        assert_eq!(fits("a100 40g"), None);
        assert_eq!(fits("a100 pcie"), None);
        assert_eq!(fits("80GB"), None);
    }
}
