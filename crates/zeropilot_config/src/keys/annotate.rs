//! The keys of a file in its order, each with what the engine makes of it.

use crate::schema::{EngineVersion, Located, Schema};
use crate::syntax::{Member, Node, Value};

use super::lookup::canonical;
use super::mesh::{SEQUENCE, builds_mesh};

/// What becomes of a written key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The engine reads it. The path is that of its text, if it has one.
    Read(Option<String>),
    /// It is handed on with what holds it; the path is that of the holder's text.
    HandedOn(Option<String>),
    /// Its presence ends the run.
    Refused,
    /// Nobody reads it.
    Unread,
}

/// One key of a file.
#[derive(Debug, Clone)]
pub struct Annotation<'n> {
    /// Dotted path, as written.
    pub path: String,
    /// How many sections it stands in.
    pub depth: usize,
    /// The key and its value.
    pub member: &'n Member,
    /// What becomes of it.
    pub status: Status,
}

impl Annotation<'_> {
    /// Whether keys inside it are annotated on their own.
    pub fn is_section(&self) -> bool {
        matches!(self.member.value.value, Value::Object(_)) && self.status != Status::Unread
    }
}

/// Every key of a config, in the order of the file, sections before their members. What stands
/// below a key that nobody reads is not looked at.
pub fn annotate(root: &Node, version: EngineVersion) -> Vec<Annotation<'_>> {
    let mut found = Vec::new();
    if let Value::Object(members) = &root.value {
        walk(members, "", 0, version.schema(), &mut found);
    }
    for annotation in &mut found {
        if annotation.status == Status::Unread && builds_mesh(root, &annotation.path, version) {
            let text = Some(SEQUENCE.to_owned());
            annotation.status = match annotation.path.as_str() {
                SEQUENCE => Status::Read(text),
                _ => Status::HandedOn(text),
            };
        }
    }
    found
}

fn walk<'n>(
    members: &'n [Member],
    section: &str,
    depth: usize,
    schema: &Schema,
    found: &mut Vec<Annotation<'n>>,
) {
    for member in members {
        let path = if section.is_empty() {
            member.key.clone()
        } else {
            format!("{section}.{}", member.key)
        };
        let status = status(schema, &path);
        let goes_on = matches!(status, Status::Read(_) | Status::HandedOn(_));
        found.push(Annotation { path: path.clone(), depth, member, status });
        if let Value::Object(members) = &member.value.value
            && goes_on
        {
            walk(members, &path, depth + 1, schema, found);
        }
    }
}

fn status(schema: &Schema, path: &str) -> Status {
    if schema.removed(path).is_some() {
        return Status::Refused;
    }
    match schema.locate(path) {
        Some(Located::HandedOn) => match canonical(path) {
            Some(own) => Status::Read(Some(own)),
            None => Status::HandedOn(holder(path)),
        },
        Some(_) => Status::Read(canonical(path)),
        // A section can be known by its members alone.
        None if schema.raw_members(path).next().is_some() => Status::Read(canonical(path)),
        None => Status::Unread,
    }
}

fn holder(path: &str) -> Option<String> {
    let (parent, _) = path.rsplit_once('.')?;
    canonical(parent).or_else(|| holder(parent))
}

#[cfg(test)]
mod tests {
    use crate::syntax::parse_hjson;

    use super::*;

    #[test]
    fn keys_come_in_file_order_with_what_becomes_of_them() {
        let text = r#"{
          "memory_efficient_linear": {"inner": 1},
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "momentum": 0.9}},
          "zero_optimization": {"offload_param": {"device": "cpu"}, "stage": 3},
          "amp": {"enabled": false},
          "bfloat16": {"enabled": true}
        }"#;
        let document = parse_hjson(text).expect("a config");
        let newest = annotate(document.root(), EngineVersion::NEWEST);
        let found: Vec<(&str, usize, &Status)> = newest
            .iter()
            .map(|annotation| (annotation.path.as_str(), annotation.depth, &annotation.status))
            .collect();
        let read = |path: &str| Status::Read(Some(path.to_owned()));
        let expected = [
            ("memory_efficient_linear", 0, Status::Unread),
            ("optimizer", 0, read("optimizer")),
            ("optimizer.type", 1, read("optimizer.type")),
            ("optimizer.params", 1, read("optimizer.params")),
            ("optimizer.params.lr", 2, read("optimizer.params.lr")),
            ("optimizer.params.momentum", 2, Status::HandedOn(Some("optimizer.params".to_owned()))),
            ("zero_optimization", 0, read("zero_optimization")),
            ("zero_optimization.offload_param", 1, read("zero_optimization.offload_param")),
            (
                "zero_optimization.offload_param.device",
                2,
                read("zero_optimization.offload_param.device"),
            ),
            ("zero_optimization.stage", 1, read("zero_optimization.stage")),
            ("amp", 0, Status::Refused),
            ("bfloat16", 0, read("bfloat16")),
            ("bfloat16.enabled", 1, read("bf16.enabled")),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(path, depth, status)| (*path, *depth, status)).collect();
        assert_eq!(found, expected);
        let old = annotate(document.root(), EngineVersion::nearest("0.14.5").expect("known"));
        let amp = old.iter().find(|annotation| annotation.path == "amp").expect("there");
        assert_eq!(amp.status, Status::Read(None));
    }

    #[test]
    fn the_size_of_the_mesh_counts_only_next_to_its_other_size() {
        let of = |text: &str, version: &str| {
            let document = parse_hjson(text).expect("a config");
            let version = EngineVersion::nearest(version).expect("known");
            annotate(document.root(), version).remove(0).status
        };
        let both = r#"{"data_parallel_size": 2, "sequence_parallel_size": 2}"#;
        let handed_on = Status::HandedOn(Some("sequence_parallel_size".to_owned()));
        assert_eq!(of(both, "0.19.8"), handed_on);
        assert_eq!(of(both, "0.14.5"), Status::Unread);
        assert_eq!(of(r#"{"data_parallel_size": 2}"#, "0.19.8"), Status::Unread);
    }
}
