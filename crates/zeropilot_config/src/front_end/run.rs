//! A config on its way through a front end: the tree so far and what was noted about it.

use super::Filled;
use super::arguments::Arguments;
use super::config_tree::{Broken, find, find_mut, member, without_duplicates};
use super::model::ModelFacts;
use super::problem::{FilledKey, How, Pending, Problem, ProblemKind};
use crate::python::{is_auto, python_equal, python_type};
use crate::syntax::{Member, Node, Span, Value};

/// Everything that is known outside of the config.
pub(super) struct Surroundings<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) model: Option<&'a ModelFacts>,
    pub(super) world_size: Option<u64>,
}

/// The front end raised; the problem is already noted.
pub(super) struct Stopped;

/// The outcome of a step.
pub(super) type Step<T = ()> = Result<T, Stopped>;

/// What a front end has for a key.
#[derive(Clone)]
pub(super) struct Offer {
    /// `None` if it is not known here.
    pub(super) value: Option<Value>,
    pub(super) argument: &'static str,
}

impl Offer {
    pub(super) fn new(value: Option<Value>, argument: &'static str) -> Self {
        Self { value, argument }
    }

    pub(super) fn known(value: Value, argument: &'static str) -> Self {
        Self { value: Some(value), argument }
    }
}

/// A value read from the tree.
pub(super) enum Read<'a> {
    /// Not there, or in a section that is not there.
    Absent,
    /// An `"auto"` that will be replaced by something not known here.
    Pending,
    /// There, null included.
    There(&'a Node),
}

/// The tree and the notes.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) root: Node,
    pub(super) problems: Vec<Problem>,
    pending: Vec<Pending>,
    filled: Vec<FilledKey>,
}

impl Run {
    pub(super) fn new(root: &Node) -> Self {
        Self {
            root: without_duplicates(root),
            problems: Vec::new(),
            pending: Vec::new(),
            filled: Vec::new(),
        }
    }

    pub(super) fn into_filled(self) -> Filled {
        Filled {
            root: self.root,
            problems: self.problems,
            pending: self.pending,
            filled: self.filled,
        }
    }

    /// Notes a problem that does not stop the front end by itself.
    pub(super) fn note(&mut self, kind: ProblemKind, path: &str, span: Span) {
        self.problems.push(Problem { kind, path: path.to_owned(), span });
    }

    /// Notes the problem that stops the front end.
    pub(super) fn stop(&mut self, kind: ProblemKind, path: &str, span: Span) -> Stopped {
        self.note(kind, path, span);
        Stopped
    }

    /// Stops because of an argument or of something that is not in the config.
    pub(super) fn stop_at_root(&mut self, kind: ProblemKind) -> Stopped {
        let span = self.root.span;
        self.stop(kind, "", span)
    }

    /// Reads a dotted key.
    pub(super) fn read(&mut self, key: &str) -> Step<Read<'_>> {
        match find(&self.root, key) {
            Err(Broken { path, span, found }) => {
                self.problems.push(Problem {
                    kind: ProblemKind::NotAnObject { found },
                    path,
                    span,
                });
                Err(Stopped)
            }
            Ok(None) => Ok(Read::Absent),
            Ok(Some(node))
                if is_auto(&node.value)
                    && self.pending.iter().any(|pending| pending.path == key) =>
            {
                Ok(Read::Pending)
            }
            Ok(Some(node)) => Ok(Read::There(node)),
        }
    }

    /// Whether a dotted key holds an `"auto"` that still waits for somebody.
    pub(super) fn holds_auto(&mut self, key: &str) -> Step<bool> {
        Ok(matches!(self.read(key)?, Read::There(node) if is_auto(&node.value)))
    }

    /// Whether the root has the key, with whatever value.
    pub(super) fn has(&self, key: &str) -> bool {
        matches!(member(&self.root, key), Ok(Some(_)))
    }

    /// Reads `root.get(section, {}).get(key)`, which unlike [`Run::read`] raises on a null section.
    pub(super) fn read_strictly(&mut self, section: &str, key: &str) -> Step<Read<'_>> {
        if let Ok(Some(node)) = member(&self.root, section)
            && let Err(found) = member(node, key)
        {
            let span = node.span;
            return Err(self.stop(ProblemKind::NotAnObject { found }, section, span));
        }
        self.read(&format!("{section}.{key}"))
    }

    /// Replaces an `"auto"`, or notes that it will be replaced.
    pub(super) fn fill(&mut self, key: &str, offer: Offer) -> Step {
        self.fill_or_compare(key, offer, false)
    }

    /// Replaces an `"auto"`; any other value must equal the offer.
    pub(super) fn fill_or_match(&mut self, key: &str, offer: Offer) -> Step {
        self.fill_or_compare(key, offer, true)
    }

    pub(super) fn fill_or_compare(&mut self, key: &str, offer: Offer, compare: bool) -> Step {
        let Read::There(node) = self.read(key)? else { return Ok(()) };
        let span = node.span;
        if is_auto(&node.value) {
            self.replace_placeholder(key, offer, span);
        } else if compare
            && !matches!(node.value, Value::Null)
            && let Some(expected) = offer.value
            && !python_equal(&node.value, &expected)
        {
            let written = node.value.clone();
            self.note(
                ProblemKind::Mismatch { written, expected, argument: offer.argument },
                key,
                span,
            );
        }
        Ok(())
    }

    fn replace_placeholder(&mut self, key: &str, offer: Offer, span: Span) {
        let Offer { value, argument } = offer;
        let Some(value) = value else {
            self.pending.push(Pending { path: key.to_owned(), span, argument });
            return;
        };
        if let Some(place) = find_mut(&mut self.root, key) {
            place.value = value.clone();
        }
        self.filled.push(FilledKey {
            path: key.to_owned(),
            span,
            value,
            argument,
            how: How::Placeholder,
        });
    }

    /// `section[key] = value`, for the root if `section` is empty.
    ///
    /// Stops where Python does: an item cannot be assigned to anything but an object.
    pub(super) fn assign(
        &mut self,
        section: &str,
        key: &str,
        value: Value,
        argument: &'static str,
    ) -> Step {
        let path = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        let object = if section.is_empty() {
            Some(&mut self.root)
        } else {
            find_mut(&mut self.root, section)
        };
        let Some(object) = object else { return Ok(()) };
        let start = Span::new(object.span.start, object.span.start);
        let (how, span) = match &mut object.value {
            Value::Object(members) => match members.iter_mut().find(|member| member.key == key) {
                Some(member) => {
                    member.value.value = value.clone();
                    (How::Overwritten, member.value.span)
                }
                None => {
                    let value = Node { span: start, value: value.clone() };
                    members.push(Member { key: key.to_owned(), key_span: start, value });
                    (How::Inserted, start)
                }
            },
            other => {
                let found = python_type(other);
                let span = object.span;
                return Err(self.stop(ProblemKind::NotAnObject { found }, section, span));
            }
        };
        self.filled.push(FilledKey { path, span, value, argument, how });
        Ok(())
    }

    /// Drops the mismatches noted so far.
    pub(super) fn forget_mismatches(&mut self) {
        self.problems.retain(|problem| !matches!(problem.kind, ProblemKind::Mismatch { .. }));
    }

    /// Where to point for a key at the root that may be missing.
    pub(super) fn span_of(&self, key: &str) -> Span {
        match find(&self.root, key) {
            Ok(Some(node)) => node.span,
            _ => self.root.span,
        }
    }
}
