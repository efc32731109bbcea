//! A place in a module where another module stands.

use std::borrow::Cow;
use std::sync::Arc;

use super::Module;

/// The name, or the run of numbers, of a child.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChildName {
    /// One child.
    Named(Cow<'static, str>),
    /// Equal children with consecutive numbers.
    Numbered {
        /// The first number.
        first: u64,
        /// How many.
        count: u64,
    },
}

impl ChildName {
    /// How many modules it stands for.
    pub fn count(&self) -> u64 {
        match self {
            Self::Named(_) => 1,
            Self::Numbered { count, .. } => *count,
        }
    }

    /// Whether one of its modules has this name.
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::Named(own) => own == name,
            Self::Numbered { first, count } => {
                let number: Option<u64> = name.parse().ok();
                number.is_some_and(|number| number >= *first && number - first < *count)
            }
        }
    }

    /// The name of one of its modules.
    pub(crate) fn part(&self, repeat: u64) -> Cow<'_, str> {
        match self {
            Self::Named(name) => Cow::Borrowed(name),
            Self::Numbered { first, .. } => Cow::Owned(first.saturating_add(repeat).to_string()),
        }
    }
}

/// A child, or a run of equal children.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Child {
    /// Its name.
    pub name: ChildName,
    /// What stands there.
    pub module: Arc<Module>,
}
