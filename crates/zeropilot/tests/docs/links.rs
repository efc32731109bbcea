//! Links between documents: the file is there, the heading is there, and a chapter links only to what the book holds.
//! Addresses of the internet are not followed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::pages::{Page, root};

/// What is wrong with the links of a page.
pub(crate) fn broken(page: &Page) -> Vec<String> {
    let targets =
        Parser::new_ext(&page.text, Options::ENABLE_TABLES).filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some(dest_url)
            }
            _ => None,
        });
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    local
        .filter_map(|target| Some(format!("{}: {target}: {}", page.path, fault(page, &target)?)))
        .collect()
}

fn fault(page: &Page, target: &str) -> Option<&'static str> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let directory = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let path = match file {
        "" => PathBuf::from(&page.path),
        _ => without_parents(&directory.join(file)),
    };
    let file = root().join(&path);
    if !file.exists() {
        return Some("there is no such file");
    }
    if page.path.starts_with("docs/") && !path.starts_with("docs") {
        return Some("the book does not hold it");
    }
    if anchor.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    (!anchors(&text).iter().any(|known| known == anchor)).then_some("there is no such heading")
}

fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The names under which headings can be linked to, by the rule that mdBook and code hosts share; the second heading
/// of a name gets `-1`.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(name.clone()).or_default();
                anchors.push(if *count == 0 { name } else { format!("{name}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}
