//! Questions rules ask about a config as it is written.
//!
//! Every answer is `None` or "unknown" where the text does not settle it: a placeholder that a front
//! end fills, or a value that the engine refuses anyway. A rule that needs the answer then says
//! nothing.

use num_traits::ToPrimitive;
use zeropilot_config::problem::KeyPath;
use zeropilot_config::python::is_true;
use zeropilot_config::syntax::{Member, Node, Value};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::remove_member;
use crate::rule::{Rule, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) const ZERO: &str = "zero_optimization";

/// Where a section of `zero_optimization` sends what it offloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    /// Nowhere: the section is missing, or says `none`.
    None,
    /// To host memory.
    Cpu,
    /// To a disk.
    Nvme,
}

impl<'a> Subject<'a> {
    /// Whether the engine has a key of this name in a section.
    pub(crate) fn reads(&self, section: &str, key: &str) -> bool {
        let schema = self.schema();
        let in_model = schema.section_model(section).and_then(|model| model.field_for_key(key));
        in_model.is_some() || schema.raw_members(section).any(|known| known == key)
    }

    /// Whether the engine reads keys of a section one by one.
    pub(crate) fn reads_section(&self, section: &str) -> bool {
        self.schema().raw_members(section).next().is_some()
    }

    /// The section that switches 16-bit training on.
    pub(crate) fn sixteen_bit(&self) -> Option<&'static str> {
        match (self.enabled("fp16"), self.bf16()) {
            (Some(true), _) => Some("fp16"),
            (_, Some(true)) => Some("bf16"),
            _ => None,
        }
    }

    /// The ZeRO stage.
    pub(crate) fn stage(&self) -> Option<u8> {
        let Some(section) = self.root.get(ZERO) else { return Some(0) };
        match &section.value {
            Value::Object(_) => match section.get("stage").map(|node| &node.value) {
                None => Some(0),
                Some(Value::Int(stage)) => stage.to_u8().filter(|stage| *stage <= 3),
                Some(_) => None,
            },
            Value::Bool(on) => Some(u8::from(*on)),
            _ => None,
        }
    }

    /// The object of `zero_optimization`.
    pub(crate) fn zero(&self) -> Option<&'a Node> {
        self.root.get(ZERO).filter(|node| matches!(node.value, Value::Object(_)))
    }

    /// A member of `zero_optimization`, by the engine's name for its field, however it is spelt.
    pub(crate) fn zero_member(&self, field: &str) -> Option<&'a Member> {
        let section = self.zero()?;
        let model = self.schema().section_model(ZERO)?;
        let Value::Object(members) = &section.value else { return None };
        members.iter().find(|member| {
            model.field_for_key(&member.key).is_some_and(|known| known.name == field)
        })
    }

    /// Where `offload_param` or `offload_optimizer` goes.
    pub(crate) fn device(&self, section: &str) -> Option<Device> {
        let Some(node) = self.node([ZERO, section]) else {
            let deprecated = match section {
                "offload_param" => "cpu_offload_param",
                _ => "cpu_offload",
            };
            return match self.node([ZERO, deprecated]).map(|node| &node.value) {
                None | Some(Value::Bool(false)) => Some(Device::None),
                Some(Value::Bool(true)) => Some(Device::Cpu),
                Some(_) => None,
            };
        };
        match &node.value {
            Value::Null => Some(Device::None),
            Value::Object(_) => match node.get("device").map(|node| &node.value) {
                None => Some(Device::None),
                Some(Value::Str(device)) => match device.as_str() {
                    "none" => Some(Device::None),
                    "cpu" => Some(Device::Cpu),
                    "nvme" => Some(Device::Nvme),
                    _ => None,
                },
                Some(_) => None,
            },
            _ => None,
        }
    }

    /// The member that sends optimizer states elsewhere, and its key: `offload_optimizer`, or the deprecated `cpu_offload`.
    pub(crate) fn offload_of_optimizer(&self) -> Option<(&'static str, &'a Member)> {
        let keys = ["offload_optimizer", "cpu_offload"].into_iter();
        keys.filter_map(|key| Some((key, self.member(&[ZERO, key])?.1))).next()
    }

    /// Whether `fp16`, `bf16` or `torch_autocast` is enabled.
    pub(crate) fn enabled(&self, section: &str) -> Option<bool> {
        match self.node([section, "enabled"]).map(|node| &node.value) {
            None => Some(false),
            Some(Value::Bool(on)) => Some(*on),
            Some(_) => None,
        }
    }

    /// Whether `bf16` is enabled, under either of its names.
    pub(crate) fn bf16(&self) -> Option<bool> {
        let new = self.enabled("bf16")?;
        Some(new || self.enabled("bfloat16")?)
    }

    /// A switch of `zero_optimization` that is written as a boolean.
    pub(crate) fn zero_switch(&self, field: &str) -> Option<bool> {
        match self.zero_member(field)?.value.value {
            Value::Bool(on) => Some(on),
            _ => None,
        }
    }

    /// A text at a path.
    pub(crate) fn text_at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<&'a str> {
        match &self.node(path)?.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Whether something at a path counts as true in Python; a placeholder does not count.
    pub(crate) fn is_on<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> bool {
        self.node(path).is_some_and(|node| match &node.value {
            Value::Str(text) => !text.is_empty() && text != "auto",
            value => is_true(value),
        })
    }

    /// The name and place of the optimizer in the config.
    pub(crate) fn optimizer_type(&self) -> Option<(&'a str, &'a Node)> {
        let node = self.node(["optimizer", "type"])?;
        match &node.value {
            Value::Str(name) => Some((name, node)),
            _ => None,
        }
    }

    /// Whether the file is for the autotuner, which writes batch sizes and the ZeRO section of every
    /// experiment itself.
    pub(crate) fn is_for_autotuner(&self) -> bool {
        self.is_on(["autotuning", "enabled"])
    }

    /// The members of an object at a path.
    pub(crate) fn members_at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> &'a [Member] {
        match self.node(path).map(|node| &node.value) {
            Some(Value::Object(members)) => members,
            _ => &[],
        }
    }
}

/// A number of a config, as far as a double holds it.
pub(crate) fn number(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Int(number) => number.to_f64(),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// A finding at a member, named by its path.
pub(crate) fn at_member(
    rule: &'static Rule,
    wording: &'static Wording,
    path: &[&str],
    member: &Member,
) -> Diagnostic {
    let path = KeyPath(path.iter().map(|part| (*part).to_owned()).collect());
    Diagnostic::new(rule, wording, path, member.key_span)
}

/// A finding at a value, named by its path.
pub(crate) fn at_value(
    rule: &'static Rule,
    wording: &'static Wording,
    path: &[&str],
    node: &Node,
) -> Diagnostic {
    let path = KeyPath(path.iter().map(|part| (*part).to_owned()).collect());
    Diagnostic::new(rule, wording, path, node.span)
}

/// Takes a member out that does nothing: the run stays as it is.
pub(crate) fn remove_idle(subject: &Subject<'_>, object: &Node, member: &Member) -> Option<Fix> {
    remove_member(subject, object, member.key_span)
        .map(|edit| Fix::safe(Text::new("remove `{key}`", "删掉 `{key}`"), vec![edit]))
}
