//! What a rule looks at: one config that could be read, and everything known around it.

use zeropilot_config::front_end::{Arguments, FrontEnd};
use zeropilot_config::packages::Packages;
use zeropilot_config::schema::{EngineVersion, Schema};
use zeropilot_config::syntax::{Comment, Member, Node, Span, Value};

use crate::script::Script;
use crate::world::World;

/// A config and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The text.
    pub text: &'a str,
    /// The tree as written.
    pub root: &'a Node,
    /// Comments in it.
    pub comments: &'a [Comment],
    /// The engine.
    pub version: EngineVersion,
    /// Who reads it.
    pub front_end: FrontEnd,
    /// Whether nobody said so, and a program that is not known may read it instead.
    pub is_reader_guessed: bool,
    /// The number of ranks.
    pub world: World,
    /// What the training script says.
    pub arguments: &'a Arguments,
    /// What else the script decides.
    pub script: &'a Script,
    /// The versions that are installed, as far as they are known.
    pub packages: &'a Packages,
    /// Whether the text says `auto` anywhere.
    pub says_auto: bool,
}

impl<'a> Subject<'a> {
    /// What the engine reads.
    pub fn schema(&self) -> &'static Schema {
        self.version.schema()
    }

    /// Whether a placeholder could stand in it that nobody fills.
    pub fn may_leave_auto(&self) -> bool {
        self.says_auto && self.front_end == FrontEnd::DeepSpeed
    }

    /// A piece of the text; empty if the span does not lie in it.
    pub fn text_of(&self, span: Span) -> &'a str {
        span.of(self.text).unwrap_or("")
    }

    /// The members of the file's object.
    pub fn members(&self) -> &'a [Member] {
        match &self.root.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The value at a path, as written.
    pub fn node<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<&'a Node> {
        path.into_iter().try_fold(self.root, |node, key| node.get(key))
    }

    /// The object that holds the key at a path, and the member.
    pub fn member<S: AsRef<str>>(&self, path: &[S]) -> Option<(&'a Node, &'a Member)> {
        let (key, parents) = path.split_last()?;
        let object = self.node(parents.iter().map(AsRef::as_ref))?;
        Some((object, object.member(key.as_ref())?))
    }

    /// The value at a path as it stands in the file, shortened if it is long.
    pub fn written<S: AsRef<str>>(&self, path: &[S]) -> String {
        self.node(path.iter().map(AsRef::as_ref))
            .map_or_else(String::new, |node| shortened(self.text_of(node.span)))
    }
}

/// The first line of `text`, cut if it is long.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 48;
    let line = text.lines().next().unwrap_or("");
    let cut: String = line.chars().take(LONGEST).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}
