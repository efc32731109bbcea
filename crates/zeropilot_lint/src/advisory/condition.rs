//! What must hold for a job to meet a defect, and whether it does.

use num_traits::ToPrimitive;
use serde::Deserialize;
use serde_json::Value as Json;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::python::PyValue;
use zeropilot_config::syntax::Value;

use super::Words;
use crate::key_values::KeyTable;
use crate::report::ResolvedValues;
use crate::subject::Subject;

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It cannot be seen here.
    Unknown,
}

impl Answer {
    /// Whether both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unknown,
        }
    }
}

impl Answer {
    /// Whether one of them holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Answer {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl From<Option<bool>> for Answer {
    fn from(holds: Option<bool>) -> Self {
        holds.map_or(Self::Unknown, Self::from)
    }
}

/// Something that must hold.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The ZeRO stage is one of these.
    Stage(Vec<u8>),
    /// A key of the config.
    Key {
        /// Its dotted path.
        path: String,
        /// What it must be.
        #[serde(flatten)]
        test: Test,
    },
    /// One of these reads the config.
    FrontEnd(Vec<String>),
    /// An argument of the training script.
    Argument {
        /// Its name.
        name: String,
        /// What it must be.
        #[serde(flatten)]
        test: Test,
    },
    /// The training script calls one of these.
    Calls(Vec<String>),
    /// Only adapters of PEFT are trained, or not.
    Adapters(bool),
    /// One of these holds.
    Any(Vec<Condition>),
    /// What nothing that zeropilot reads can show.
    Other(Words),
}

/// What a value must be.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// One of these.
    Is(Vec<Json>),
    /// None of these.
    IsNot(Vec<Json>),
    /// A larger number.
    Above(f64),
    /// Written, or not written.
    Written(bool),
    /// Written as `"auto"`.
    Auto(bool),
}

/// What conditions are held against.
pub(crate) struct Facts<'a> {
    subject: &'a Subject<'a>,
    resolved: &'a ResolvedValues,
    table: KeyTable<'a>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(subject: &'a Subject<'a>, resolved: &'a ResolvedValues) -> Self {
        Self { subject, resolved, table: resolved.keys.table() }
    }

    /// Whether a condition holds.
    pub(crate) fn answer(&self, condition: &Condition) -> Answer {
        let script = self.subject.script;
        match condition {
            Condition::Stage(stages) => stages.contains(&self.resolved.stage).into(),
            Condition::Key { path, test } => self.key(path, test),
            Condition::FrontEnd(names) => {
                let is_named = names.iter().any(|name| name == self.subject.front_end.name());
                match self.subject.front_end {
                    FrontEnd::DeepSpeed if self.subject.is_reader_guessed => Answer::Unknown,
                    _ => is_named.into(),
                }
            }
            Condition::Argument { name, test } => match &script.job {
                Some(job) if job.open.contains(name) => Answer::Unknown,
                Some(job) => {
                    let said = job.arguments.iter().rev().find(|(known, _)| known == name);
                    test.holds(said.map(|(_, value)| spoken(value)).as_ref()).into()
                }
                None => Answer::Unknown,
            },
            Condition::Calls(names) => match script.job.as_ref().and_then(|job| job.calls.as_ref())
            {
                Some(calls) => names.iter().any(|name| calls.contains(name)).into(),
                None => Answer::Unknown,
            },
            Condition::Adapters(wanted) => match (script.trains_adapters, &script.job) {
                (true, _) => (*wanted).into(),
                (false, Some(_)) => (!wanted).into(),
                (false, None) => Answer::Unknown,
            },
            Condition::Any(all) => {
                all.iter().map(|one| self.answer(one)).fold(Answer::No, Answer::or)
            }
            Condition::Other(_) => Answer::Unknown,
        }
    }

    fn key(&self, path: &str, test: &Test) -> Answer {
        let written = self.subject.node(path.split('.'));
        let is_auto = written.is_some_and(|node| node.value == Value::Str("auto".to_owned()));
        match test {
            Test::Written(wanted) => return (written.is_some() == *wanted).into(),
            Test::Auto(wanted) => return (is_auto == *wanted).into(),
            _ => {}
        }
        let is_steps = path == "gradient_accumulation_steps";
        if self.table.is_open(path)
            || (is_steps && self.resolved.gradient_accumulation_steps.is_none())
        {
            return Answer::Unknown;
        }
        let own = written.map(PyValue::from);
        match self.table.get(path).cloned().or(own) {
            Some(PyValue::Str(text)) if text == "auto" => Answer::Unknown,
            value => test.holds(value.as_ref()).into(),
        }
    }
}

impl Test {
    fn holds(&self, value: Option<&PyValue>) -> bool {
        let is_one = |all: &[Json]| value.is_some_and(|value| all.iter().any(|one| is(value, one)));
        match self {
            Self::Is(all) => is_one(all),
            Self::IsNot(all) => !is_one(all),
            Self::Above(limit) => value.and_then(number).is_some_and(|value| value > *limit),
            Self::Written(wanted) => value.is_some() == *wanted,
            Self::Auto(wanted) => {
                value.is_some_and(|value| *value == PyValue::str("auto")) == *wanted
            }
        }
    }
}

/// What an argument on a command line or in a script stands for.
fn spoken(text: &str) -> PyValue {
    match text.to_lowercase().as_str() {
        "" | "true" => PyValue::Bool(true),
        "false" => PyValue::Bool(false),
        _ => match text.parse() {
            Ok(number) => PyValue::Float(number),
            Err(_) => PyValue::str(text),
        },
    }
}

fn number(value: &PyValue) -> Option<f64> {
    match value {
        PyValue::Int(value) => value.to_f64(),
        PyValue::Float(value) => Some(*value),
        _ => None,
    }
}

fn is(value: &PyValue, wanted: &Json) -> bool {
    match (value, wanted) {
        (PyValue::None, Json::Null) => true,
        (PyValue::Bool(value), Json::Bool(wanted)) => value == wanted,
        (PyValue::Str(value), Json::String(wanted)) => value.eq_ignore_ascii_case(wanted),
        (value, Json::Number(wanted)) => number(value) == wanted.as_f64(),
        _ => false,
    }
}
