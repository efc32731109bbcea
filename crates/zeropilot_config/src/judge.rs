//! The notebook of one resolution: the schema in force, where we are, and the problems found so far.

use crate::problem::{Expected, KeyPath, Problem, ProblemKind};
use crate::python::kind_of;
use crate::schema::Schema;
use crate::syntax::{Member, Node, Span, Value};

/// More problems than this help nobody; a hostile file must not fill memory with them.
const MAX_PROBLEMS: usize = 1000;

/// A path from the root, built as the tree is walked down and turned into text only when needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    key: &'a str,
}

impl<'a> Place<'a> {
    /// A top-level key.
    pub(crate) fn top(key: &'a str) -> Self {
        Self { parent: None, key }
    }

    /// A key below this place.
    pub(crate) fn child(&'a self, key: &'a str) -> Place<'a> {
        Place { parent: Some(self), key }
    }

    /// The whole path.
    pub(crate) fn path(&self) -> KeyPath {
        let mut parts = self.parent.map(|parent| parent.path().0).unwrap_or_default();
        parts.push(self.key.to_owned());
        KeyPath(parts)
    }
}

/// Collects what is wrong.
#[derive(Debug)]
pub(crate) struct Judge<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) problems: Vec<Problem>,
}

impl<'s> Judge<'s> {
    pub(crate) fn new(schema: &'s Schema) -> Self {
        Self { schema, problems: Vec::new() }
    }

    /// Notes a problem.
    pub(crate) fn report(&mut self, kind: ProblemKind, place: &Place<'_>, span: Span) {
        self.report_at(kind, || place.path(), span);
    }

    /// Notes a problem about the file as a whole.
    pub(crate) fn report_root(&mut self, kind: ProblemKind, span: Span) {
        self.report_at(kind, KeyPath::default, span);
    }

    fn report_at(&mut self, kind: ProblemKind, path: impl FnOnce() -> KeyPath, span: Span) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { kind, path: path(), span });
        }
    }

    /// Notes that `node` is not what is needed.
    pub(crate) fn wrong(&mut self, expected: Expected, node: &Node, place: &Place<'_>) {
        let found = kind_of(&node.value);
        self.report(ProblemKind::WrongValue { expected, found }, place, node.span);
    }

    /// The members of a node that must be an object; notes a problem if it is not.
    pub(crate) fn section<'n>(
        &mut self,
        node: &'n Node,
        place: &Place<'_>,
    ) -> Option<&'n [Member]> {
        match &node.value {
            Value::Object(members) => Some(members),
            _ => {
                self.wrong(Expected::Section, node, place);
                None
            }
        }
    }
}

/// The member with this key.
pub(crate) fn member<'n>(members: &'n [Member], key: &str) -> Option<&'n Member> {
    members.iter().find(|member| member.key == key)
}

/// The value of this key.
pub(crate) fn get<'n>(members: &'n [Member], key: &str) -> Option<&'n Node> {
    member(members, key).map(|member| &member.value)
}
