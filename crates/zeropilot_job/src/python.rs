//! Training scripts in Python, as far as they are plain: calls with their literal arguments, options
//! of `argparse`, and names that are bound once.
//!
//! Nothing is executed. A value that is not written out, directly or by a name that is bound once to
//! something written out, is [`Value::Unknown`].

use std::collections::HashMap;

use zeropilot_config::syntax::Span;

/// What an expression is, as far as it is written out.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, a text or a boolean, as a command line would give it.
    Literal(String),
    /// `None`.
    None,
    /// `args.name`.
    Argument(String),
    /// A dictionary; its place.
    Dict(Span),
    /// A list or a tuple.
    List(Vec<Value>),
    /// What a call gives, by the name of what is called.
    Call(String),
    /// Anything else.
    Unknown,
}

impl Value {
    /// Whether it is written out and not `None`.
    pub fn is_something(&self) -> bool {
        matches!(self, Self::Literal(_) | Self::Dict(_))
    }
}

/// A condition that decides whether a place in its function is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The condition, as written.
    pub condition: String,
    /// Whether the place is reached where it holds, or where it does not.
    pub holds: bool,
}

impl Guard {
    /// What is asked without a `not`, and the answer that lets pass.
    fn plain(&self) -> (&str, bool) {
        let text = self.condition.trim();
        let is_joined = text.contains(" and ") || text.contains(" or ");
        match text.strip_prefix("not ").filter(|_| !is_joined) {
            Some(question) => (question.trim(), !self.holds),
            None => (text, self.holds),
        }
    }
}

/// A call.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is called, such as `deepspeed.initialize`.
    pub callee: String,
    /// Arguments by name.
    pub keywords: Vec<(String, Value, Span)>,
    /// Arguments without a name.
    pub positional: Vec<(Value, Span)>,
    /// Arguments that are plain names, by where they stand.
    pub(super) names: Vec<(Span, String)>,
    /// Whether `**` brings arguments that are not written here.
    pub has_more: bool,
    /// The condition of the innermost `if` around it in its function.
    pub condition: Option<String>,
    /// What every `if` around it in its function asks, whichever way it goes.
    pub questions: Vec<String>,
    /// What must hold, or must not, for it to be reached in its function, the innermost first: the `if` around it, and
    /// those before it that leave.
    pub guards: Vec<Guard>,
    /// The first name that its result is bound to.
    pub bound_to: Option<String>,
    /// All names that its result is bound to.
    pub bound_names: Vec<String>,
    /// The function around it, by where it begins; 0 for the module.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

impl Call {
    /// The last part of what is called.
    pub fn name(&self) -> &str {
        self.callee.rsplit('.').next().unwrap_or(&self.callee)
    }

    /// The first argument, where it is a name.
    pub fn argument_name(&self) -> Option<&str> {
        self.name_of(self.positional.first()?.1)
    }

    /// The name that is handed over as an argument, by its place or by the argument's own name.
    pub fn handed(&self, index: usize, argument: &str) -> Option<&str> {
        self.name_of(self.argument(index, argument)?.1)
    }

    fn name_of(&self, argument: Span) -> Option<&str> {
        let found = self.names.iter().find(|(span, _)| *span == argument);
        found.map(|(_, name)| name.as_str())
    }

    /// What a method is called on: `model` in `model.train()`.
    pub fn object(&self) -> &str {
        self.callee.rsplit_once('.').map_or("", |(object, _)| object)
    }

    /// An argument by its place or by its name.
    pub fn argument(&self, index: usize, name: &str) -> Option<(&Value, Span)> {
        let by_place = self.positional.get(index).map(|(value, span)| (value, *span));
        by_place.or_else(|| self.keyword(name))
    }

    /// Whether it comes after another one, in the same function.
    pub fn follows(&self, other: &Self) -> bool {
        self.scope == other.scope && other.span.end <= self.span.start
    }

    /// An argument by name.
    pub fn keyword(&self, name: &str) -> Option<(&Value, Span)> {
        let found = self.keywords.iter().find(|(known, ..)| known == name);
        found.map(|(_, value, span)| (value, *span))
    }
}

/// A division, `left / right` or `left /= right`.
#[derive(Debug, Clone)]
pub struct Division {
    /// What is divided, or what the quotient is bound to.
    pub target: String,
    /// What is divided, as written.
    pub dividend: String,
    /// What it is divided by, as written.
    pub divisor: String,
    /// The function around it, by where it begins; 0 for the module.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

/// A member that is set by its name, `batch["pixel_values"] = …`.
#[derive(Debug, Clone)]
pub struct SetMember {
    /// The name between the brackets.
    pub name: String,
    /// What every `if` around it in its function asks, whichever way it goes.
    pub questions: Vec<String>,
    /// The function around it, by where it begins; 0 for the module.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Names of its parameters, in order.
    pub parameters: Vec<String>,
    /// The class around it, by its name, and what that derives from.
    pub class: Option<(String, String)>,
    /// What calls in it have as their scope.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

/// A loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The names that are bound in each pass; none for `while`.
    pub targets: Vec<String>,
    /// What it goes over, or the condition of a `while`, as written.
    pub over: String,
    /// The function around it, by where it begins; 0 for the module.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

/// What stands in a `with` statement.
#[derive(Debug, Clone)]
pub struct Block {
    /// What it enters, as written.
    pub enters: String,
    /// Where it stands, with what is inside.
    pub span: Span,
}

/// How a statement leaves the rest of a loop or of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// `continue`.
    Continue,
    /// `break`.
    Break,
    /// `return`.
    Return,
}

/// A statement that leaves the rest of a loop or of a function.
#[derive(Debug, Clone)]
pub struct Exit {
    /// How.
    pub how: Leaving,
    /// What must hold, or must not, for it to be reached, the innermost first.
    pub guards: Vec<Guard>,
    /// The function around it, by where it begins; 0 for the module.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

/// An assignment to a name or an attribute.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// What is assigned to, as written.
    pub target: String,
    /// The right side, as written.
    pub value: String,
    /// Whether the right side is added, `target += value`.
    pub adds: bool,
    /// The function around it, by where it begins; 0 for the module.
    pub scope: usize,
    /// Where it stands.
    pub span: Span,
}

/// A script.
#[derive(Debug, Default)]
pub struct PythonScript {
    /// Its calls, in order.
    pub calls: Vec<Call>,
    /// Its divisions.
    pub divisions: Vec<Division>,
    /// Members that it sets by their names.
    pub members: Vec<SetMember>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its loops.
    pub loops: Vec<Loop>,
    /// Its `with` statements.
    pub blocks: Vec<Block>,
    /// Statements that leave a loop or a function.
    pub exits: Vec<Exit>,
    /// What it assigns to names and attributes.
    pub assignments: Vec<Assigned>,
    /// Names bound once to something that is written out; what is bound twice, is a parameter or is
    /// changed in place is unknown.
    pub(super) bindings: HashMap<String, Value>,
    /// Attributes that are set after the fact: the object and the attribute.
    pub(super) set: Vec<(String, String)>,
}

impl PythonScript {
    /// What a name stands for, if it is bound once to something that is written out.
    pub fn bound(&self, name: &str) -> Option<&Value> {
        self.bindings.get(name)
    }

    /// The function that is defined once by this name outside of classes.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let mut named = self.functions.iter().filter(|it| it.name == name && it.class.is_none());
        named.next().filter(|_| named.next().is_none())
    }

    /// The innermost loop around a place.
    pub fn loop_around(&self, span: Span) -> Option<&Loop> {
        let around =
            self.loops.iter().filter(|it| it.span.start < span.start && span.end <= it.span.end);
        around.max_by_key(|it| it.span.start)
    }

    /// Whether a place is inside of a `with` that enters something with this in its name.
    pub fn is_within(&self, span: Span, entered: &str) -> bool {
        let holds = |block: &&Block| block.span.start < span.start && span.end <= block.span.end;
        self.blocks.iter().filter(holds).any(|block| block.enters.contains(entered))
    }

    /// Whether one run never makes both of two calls: what is asked on the way to one is asked on the way to the other
    /// with the opposite answer, and nothing in the loop around them changes it.
    pub fn are_exclusive(&self, one: &Call, other: &Call) -> bool {
        let is_opposite = |guard: &Guard| {
            let (question, holds) = guard.plain();
            other.guards.iter().map(Guard::plain).any(|it| it == (question, !holds))
        };
        let mut opposite = one.guards.iter().filter(|guard| is_opposite(guard));
        one.scope == other.scope
            && opposite.any(|guard| {
                self.is_same_in_loops(&guard.condition, one.span)
                    && self.is_same_in_loops(&guard.condition, other.span)
            })
    }

    /// Whether a condition has one answer in all passes of the loops around a place, as far as it is written.
    fn is_same_in_loops(&self, condition: &str, place: Span) -> bool {
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
        let names: Vec<&str> = condition.split(|letter| !is_name(letter)).collect();
        let asks = |name: &str| {
            let is_part = |asked: &str| {
                asked
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            names.iter().any(|asked| is_part(asked))
        };
        let around = |span: Span| span.start < place.start && place.end <= span.end;
        self.loops.iter().filter(|it| around(it.span)).all(|it| {
            let inside = |assigned: &&Assigned| {
                it.span.start <= assigned.span.start && assigned.span.end <= it.span.end
            };
            !it.targets.iter().any(|target| asks(target))
                && !self.assignments.iter().filter(inside).any(|assigned| asks(&assigned.target))
        })
    }

    /// Whether an attribute by this name is assigned on any object.
    pub(crate) fn sets_anywhere(&self, attribute: &str) -> bool {
        self.set.iter().any(|(_, name)| name == attribute)
    }

    /// Whether an attribute of an object is set somewhere.
    pub fn sets(&self, object: &str, attribute: &str) -> bool {
        self.set_on(object).any(|name| name == attribute)
    }

    /// Attributes of an object that are assigned anywhere.
    pub(crate) fn set_on(&self, object: &str) -> impl Iterator<Item = &str> {
        let set = self.set.iter().filter(move |(known, _)| known == object);
        set.map(|(_, name)| name.as_str())
    }
}
