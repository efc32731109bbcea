//! Which top-level modules of a crate use which, read from its sources; tests aside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One module uses another at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) user: String,
    pub(crate) used: String,
    /// File and line.
    pub(crate) place: String,
}

/// A file of a crate.
struct Source {
    /// Where its module stands; the root has no names.
    module: Vec<String>,
    name: String,
    tokens: Vec<TokenTree>,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let module = path.trim_end_matches(".rs").split('/').map(str::to_owned);
        let module = module.filter(|name| !["lib", "main", "mod"].contains(&name.as_str()));
        Self { module: module.collect(), name: path.to_owned(), tokens: without_tests(tokens) }
    }
}

/// The edges between the top-level modules of a crate.
pub(crate) fn edges(source_directory: &Path) -> Vec<Edge> {
    let mut paths = Vec::new();
    super::list_sources(source_directory, &mut paths);
    let sources = paths.iter().map(|path| {
        let name = path.strip_prefix(source_directory).expect("a file below it");
        let text = fs::read_to_string(path).expect("a source");
        Source::new(&name.to_string_lossy().replace('\\', "/"), &text)
    });
    edges_of(&sources.collect::<Vec<_>>())
}

fn edges_of(sources: &[Source]) -> Vec<Edge> {
    let declared: BTreeSet<Vec<String>> = sources.iter().flat_map(declarations).collect();
    let is_compiled = |source: &&Source| {
        (1..=source.module.len()).all(|depth| declared.contains(&source.module[..depth]))
    };
    let root = sources.iter().find(|source| source.module.is_empty());
    let exports = root.map(exports).unwrap_or_default();
    let mut edges = BTreeSet::new();
    for source in sources.iter().filter(is_compiled).filter(|source| !source.module.is_empty()) {
        for (name, line) in used(&source.tokens, &source.module) {
            let is_module = declared.contains(std::slice::from_ref(&name));
            let module = if is_module { Some(name) } else { exports.get(&name).cloned() };
            let user = source.module[0].clone();
            if let Some(used) = module.filter(|used| *used != user) {
                edges.insert(Edge { user, used, place: format!("{}:{line}", source.name) });
            }
        }
    }
    edges.into_iter().collect()
}

/// Everything but what stands behind `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut rest = tokens.into_iter();
    while let Some(token) = rest.next() {
        if is_test(&token) {
            kept.pop();
            let _item = rest.by_ref().find(|token| is_punct(token, ';') || is_block(token));
        } else {
            kept.push(token);
        }
    }
    kept
}

/// `[cfg(test)]`, also with other conditions.
fn is_test(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else { return false };
    let words = words(std::slice::from_ref(attribute));
    let has = |word: &str| words.iter().any(|one| one == word);
    group.delimiter() == Delimiter::Bracket
        && words.first().is_some_and(|word| word == "cfg")
        && has("test")
        && !has("not")
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

/// Modules that a file declares.
fn declarations(source: &Source) -> Vec<Vec<String>> {
    let names = source.tokens.windows(3).filter(|three| {
        word(three.first()).as_deref() == Some("mod") && (is_punct(&three[2], ';'))
    });
    let names = names.filter_map(|three| word(three.get(1)));
    names.map(|name| source.module.iter().cloned().chain([name]).collect()).collect()
}

/// Names that the root exports, by the module each comes from.
fn exports(root: &Source) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in root.tokens.split(|token| is_punct(token, ';')) {
        let Some(at) =
            statement.iter().position(|token| word(Some(token)).as_deref() == Some("use"))
        else {
            continue;
        };
        if let Some(module) = word(statement.get(at + 1)) {
            let names = words(&statement[at + 2..]).into_iter();
            exports.extend(names.map(|name| (name, module.clone())));
        }
    }
    exports
}

fn words(tokens: &[TokenTree]) -> Vec<String> {
    let words = tokens.iter().flat_map(|token| match token {
        TokenTree::Group(group) => words(&group.stream().into_iter().collect::<Vec<_>>()),
        token => word(Some(token)).into_iter().collect(),
    });
    words.collect()
}

/// Names below the root that a module says, as `crate::name` or by as many `super`, with their lines.
fn used(tokens: &[TokenTree], module: &[String]) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    let mut at = 0_usize;
    while at < tokens.len() {
        let token = &tokens[at];
        at += 1;
        if let TokenTree::Group(group) = token {
            let inside = without_tests(group.stream());
            let inner = at.checked_sub(3).map(|at| [&tokens[at], &tokens[at + 1]]);
            let name = inner.filter(|two| word(Some(two[0])).as_deref() == Some("mod"));
            let module = module.iter().cloned().chain(name.and_then(|two| word(Some(two[1]))));
            names.extend(used(&inside, &module.collect::<Vec<_>>()));
            continue;
        }
        let mut depth = match word(Some(token)).as_deref() {
            Some("crate") => 0,
            Some("super") => module.len().saturating_sub(1),
            _ => continue,
        };
        while tokens.get(at).is_some_and(|token| is_punct(token, ':')) {
            at += 2;
            if word(tokens.get(at)).as_deref() != Some("super") {
                break;
            }
            depth = depth.saturating_sub(1);
            at += 1;
        }
        let is_path = at >= 2 && is_punct(&tokens[at - 1], ':');
        if depth == 0 && is_path {
            names.extend(firsts(tokens.get(at)));
        }
    }
    names
}

/// The first name of each path in a group, or the one name.
fn firsts(token: Option<&TokenTree>) -> Vec<(String, usize)> {
    match token {
        Some(TokenTree::Group(group)) => {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            let paths = inside.split(|token| is_punct(token, ','));
            paths.flat_map(|path| firsts(path.first())).collect()
        }
        Some(token) => word(Some(token)).map(|name| (name, line(token))).into_iter().collect(),
        None => Vec::new(),
    }
}

/// A shortest circle, if there is one.
pub(crate) fn circle(edges: &[Edge]) -> Option<Vec<&Edge>> {
    let starts: BTreeSet<&str> = edges.iter().map(|edge| edge.user.as_str()).collect();
    starts.into_iter().filter_map(|start| way(edges, start)).min_by_key(Vec::len)
}

/// A shortest way from a module back to itself.
fn way<'e>(edges: &'e [Edge], start: &str) -> Option<Vec<&'e Edge>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([Vec::new()]);
    while let Some(way) = ways.pop_front() {
        let end = way.last().map_or(start, |edge: &&Edge| edge.used.as_str());
        if !way.is_empty() && end == start {
            return Some(way);
        }
        for edge in edges.iter().filter(|edge| edge.user == end) {
            if seen.insert(edge.used.as_str()) {
                ways.push_back(way.iter().copied().chain([edge]).collect());
            }
        }
    }
    None
}

fn read(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let edges = edges_of(&sources);
    edges.iter().map(|edge| format!("{} {} {}", edge.user, edge.used, edge.place)).collect()
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    let root = ("lib.rs", "mod a; mod b; mod c; mod d; pub use d::{Thing, Other as Its, b};");
    let name = |path, text| read(&[root, (path, text)]);
    assert_eq!(
        name("a.rs", "use crate::b::X;\nuse crate::{c::{Y, Z}, d};"),
        ["a b a.rs:1", "a c a.rs:2", "a d a.rs:2"]
    );
    assert_eq!(
        name("a.rs", "fn f() { vec![crate::b::new()]; super::c::g() }"),
        ["a b a.rs:1", "a c a.rs:1"]
    );
    assert_eq!(name("a.rs", "use crate::Thing; use super::Its;"), ["a d a.rs:1"]);
    assert_eq!(name("a.rs", "mod inner { use super::super::b; use super::c; }"), ["a b a.rs:1"]);
    let nested = ("a/mod.rs", "mod x; mod y;");
    let deep = ("a/x.rs", "use super::y; use super::super::b; pub(crate) use crate::a::y::Y;");
    assert_eq!(read(&[root, nested, deep]), ["a b a/x.rs:1"]);
}

#[test]
fn comments_texts_and_tests_name_nothing() {
    let root = ("lib.rs", "mod a; mod b; #[cfg(test)] mod laws;");
    let laws = ("laws.rs", "use crate::a;");
    let quiet =
        "// crate::b\nconst A: &str = \"crate::b\"; #[cfg(test)] mod tests { use crate::b; }";
    assert_eq!(read(&[root, laws, ("a.rs", quiet)]), [""; 0]);
}

#[test]
fn a_circle_is_found_and_a_line_is_not() {
    let edge = |user: &str, used: &str| Edge {
        user: user.to_owned(),
        used: used.to_owned(),
        place: String::new(),
    };
    let line = [edge("a", "b"), edge("b", "c"), edge("a", "c")];
    assert_eq!(circle(&line), None);
    let [first, second, third] = line;
    let round = [first, second, third, edge("c", "b")];
    assert_eq!(circle(&round), Some(vec![&round[1], &round[3]]));
}
