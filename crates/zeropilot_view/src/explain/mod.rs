//! Explanations: keys, concepts, whole files, and what differs between two, for people and as JSON.

mod concept;
mod cost;
mod difference;
mod file;
pub(crate) mod json;
mod key;
mod markdown;
mod page;
mod words;

pub use concept::Concept;
pub use key::in_version;
pub use markdown::{deprecation, markdown, summary};
pub use words::value as value_words;

use std::path::Path;

use zeropilot_ask::{Footprint, Provenance};
use zeropilot_config::keys::{self, Found};
use zeropilot_lint::{Difference, Explanation};
use zeropilot_text::{Language, Text, tr};

use crate::{Format, Layout, provenance};
pub(crate) use page::Page;

/// Something explained, ready to be shown.
#[derive(Debug)]
pub enum Topic<'a> {
    /// Keys and concepts that `explain` describes.
    Index,
    /// A key, or what a name turned out to be instead.
    Key(&'a Found),
    /// A concept.
    Concept(&'a Concept),
    /// A config file.
    File {
        /// Its path as the user named it.
        name: &'a str,
        /// Its content.
        bytes: &'a [u8],
        /// What is known about it.
        explained: &'a Explanation,
        /// The job that uses it, where that was asked about.
        job: Option<&'a Provenance>,
    },
    /// Two config files.
    Differences {
        /// Their paths as the user named them.
        names: [&'a str; 2],
        /// What differs.
        found: &'a [Difference],
    },
    /// What config files cost with a model.
    Costs {
        /// The model as the user named it.
        model: &'a str,
        /// The paths of the configs as the user named them.
        names: &'a [&'a str],
        /// Their costs, in the same order.
        costs: &'a [Footprint],
    },
}

impl Layout {
    /// A topic in the layout's format: text for people, or one JSON object.
    pub fn topic(&self, topic: &Topic<'_>) -> String {
        match self.format {
            Format::Json => json::topic(topic, self.language),
            _ => self.page(topic),
        }
    }

    fn page(&self, topic: &Topic<'_>) -> String {
        let mut page = Page::new(self);
        match topic {
            Topic::Index => index(&mut page, self.language),
            Topic::Key(found) => key::other(&mut page, self, found),
            Topic::Concept(concept) => {
                page.markdown(concept.text(self.language));
                page.blank();
                let label = Text::new("keys", "相关的键").get(self.language);
                page.rows(2, &[(label, concept.keys.join("\n"))]);
            }
            Topic::File { name, bytes, explained, job } => {
                let job = job.map_or_else(String::new, |job| {
                    format!("{}\n", provenance::human(job, self.language))
                });
                return job + &file::file(self, name, bytes, explained);
            }
            Topic::Differences { names, found } => {
                return difference::differences(self, *names, found);
            }
            Topic::Costs { model, names, costs } => return cost::costs(self, model, names, costs),
        }
        page.into_text()
    }
}

/// Concepts with their titles, then the names of all keys that stand at the top level or directly
/// in `zero_optimization`.
fn index(page: &mut Page, language: Language) {
    page.title(Text::new("Concepts", "概念").get(language));
    let rows: Vec<(&str, String)> = Concept::all()
        .iter()
        .map(|concept| (concept.name.as_str(), concept.title(language).to_owned()))
        .collect();
    page.rows(2, &rows);
    page.blank();
    page.title(Text::new("Keys", "键").get(language));
    let depth = |path: &str| path.matches('.').count();
    let top: Vec<&str> =
        keys::all().map(|(path, _)| path).filter(|path| depth(path) == 0).collect();
    page.paragraph(2, &top.join(", "));
    page.blank();
    let count = keys::all().count();
    page.paragraph(
        0,
        &tr!(language, "zeropilot explains {count} keys; the page of a section lists its keys. Name a key by its path or its last part, a concept by its name, or a config or training job by its path. Compare two files with `diff`.", "共收录 {count} 个键；配置段的页面会列出其中的键。键可以写完整路径，也可以只写末尾的键名；概念写名称；配置文件或训练任务写路径；比较两个文件用 `diff`。"),
    );
}

/// What a person asks about, files aside.
#[derive(Debug)]
pub enum Asked {
    /// A concept.
    Concept(&'static Concept),
    /// A key, or what a name turned out to be instead.
    Key(Found),
    /// Nothing that is known.
    Unknown,
}

impl Asked {
    /// What a name means: a key by its whole path first, then a concept, then a key by any part.
    pub fn find(name: &str) -> Self {
        if keys::canonical(name).is_none()
            && let Some(concept) = Concept::find(name)
        {
            return Self::Concept(concept);
        }
        match keys::find(name) {
            Found::Unknown(_) => Self::Unknown,
            found => Self::Key(found),
        }
    }
}

/// Whether a name can only be a file: no key or concept looks like this.
pub fn looks_like_a_path(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    name == "-"
        || name.contains(['/', '\\'])
        || extension.is_some_and(|extension| {
            ["json", "hjson", "yaml", "yml", "sh", "bash", "slurm", "sbatch", "py"]
                .iter()
                .any(|known| extension.eq_ignore_ascii_case(known))
        })
}

/// That a model says nothing about keys and concepts.
pub fn no_file_to_cost(language: Language) -> &'static str {
    Text::new("error: --model computes a cost and needs a config file, or a key in `zero_optimization` that sets a size\n  help: run `zeropilot explain ds_config.json --model qwen3-8b --gpus 8xH100`", "错误：--model 用来计算开销，要同时给出配置文件，或 `zero_optimization` 里设置大小的键\n  建议：运行 `zeropilot explain ds_config.json --model qwen3-8b --gpus 8xH100`").get(language)
}

/// That a comparison needs two files.
pub fn two_files_needed(language: Language) -> &'static str {
    Text::new(
        "error: `explain diff` needs two files: zeropilot explain diff a.json b.json",
        "错误：`explain diff` 需要两个文件：zeropilot explain diff a.json b.json",
    )
    .get(language)
}

/// That a name is nothing we know, and what may have been meant.
pub fn unknown(name: &str, language: Language) -> String {
    let meant = Concept::suggestion(name).or_else(|| match keys::find(name) {
        Found::Unknown(near) => near,
        _ => None,
    });
    let name = crate::escaped(name);
    match meant {
        Some(meant) => tr!(
            language,
            "error: `{name}` is not a key of any known DeepSpeed version, a concept or a file; did you mean `{meant}`?",
            "错误：`{name}` 不是任何已知 DeepSpeed 版本的键，也不是概念或文件；是不是 `{meant}`？"
        ),
        None => tr!(
            language,
            "error: `{name}` is not a DeepSpeed key, a concept or a file; `zeropilot explain` lists keys and concepts",
            "错误：`{name}` 不是任何已知 DeepSpeed 版本的键，也不是概念或文件；用 `zeropilot explain` 列出所有键和概念"
        ),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    /// Words cannot be broken, so a line may be as long as its margin and its longest word.
    #[test]
    fn pages_keep_to_the_width_of_the_terminal() {
        for language in [Language::English, Language::Chinese] {
            let layout = Layout { language, width: Some(60), ..Layout::default() };
            for (path, _) in keys::all() {
                let page = layout.topic(&Topic::Key(&Found::Key(path.to_owned())));
                for line in page.lines().filter(|line| line.width() > 60) {
                    let words = line.trim_start().split(' ').filter(|word| !word.is_empty());
                    assert!(words.count() <= 2, "{path}: {line}");
                }
            }
        }
    }

    #[test]
    fn colours_only_add_escapes() {
        let found = Found::Key("aio.queue_depth".to_owned());
        let plain = Layout::default().topic(&Topic::Key(&found));
        let coloured = Layout { color: true, ..Layout::default() }.topic(&Topic::Key(&found));
        assert_ne!(plain, coloured);
        let stripped = coloured.replace("\u{1b}[1m", "").replace("\u{1b}[2m", "");
        assert_eq!(stripped.replace("\u{1b}[0m", ""), plain);
    }
}
