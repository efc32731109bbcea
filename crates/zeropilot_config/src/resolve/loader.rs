//! The walk over a config's top-level keys.

use super::{
    Circumstances, Special, batch, compression, data_efficiency, elasticity, optimizer, precision,
    raw_sections, world,
};
use crate::judge::{Judge, Place, get};
use crate::problem::{Conflict, Expected, ProblemKind};
use crate::pydantic::{read_model, read_section};
use crate::python::{PyValue, is_auto};
use crate::syntax::{Member, Node, Span, Value};

/// State of one load.
pub(super) struct Loader<'s, 'n> {
    pub(super) judge: Judge<'s>,
    pub(super) members: &'n [Member],
    pub(super) root_span: Span,
    pub(super) circumstances: Circumstances,
    pub(super) special: Special,
}

/// What checks outside the section want to know about `zero_optimization`.
#[derive(Clone, Copy)]
struct ZeroFacts {
    /// The stage; `None` if the section is refused.
    stage: Option<i64>,
    zenflow: bool,
}

/// Sections read by a model whose attribute is simply the model.
const PLAIN_MODEL_SECTIONS: [(&str, &str); 4] = [
    ("compile", "compile_config"),
    ("hybrid_engine", "hybrid_engine"),
    ("tensor_parallel", "tensor_parallel_config"),
    ("weight_quantization", "weight_quantization_config"),
];

const MONITORS: [&str; 4] = ["tensorboard", "wandb", "csv_monitor", "comet"];

impl<'s, 'n> Loader<'s, 'n> {
    pub(super) fn new(
        judge: Judge<'s>,
        members: &'n [Member],
        root_span: Span,
        circumstances: Circumstances,
    ) -> Self {
        Self { judge, members, root_span, circumstances, special: Vec::new() }
    }

    /// The value of a top-level key that this version reads.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        get(self.members, key)
    }

    /// Whether this version reads the key at all.
    pub(super) fn knows(&self, path: &str) -> bool {
        self.judge.schema.raw_key(path).is_some() || self.judge.schema.sections.contains_key(path)
    }

    /// The value of a top-level key, if the version reads it and the file has it.
    pub(super) fn known(&self, key: &str) -> Option<&'n Node> {
        self.get(key).filter(|_| self.knows(key))
    }

    pub(super) fn set(&mut self, attribute: &'static str, value: PyValue) {
        self.special.push((attribute, value));
    }

    /// The default the engine names for a hand-read key.
    pub(super) fn raw_default(&self, path: &str) -> PyValue {
        let key = self.judge.schema.raw_key(path);
        key.and_then(|key| key.default.as_ref()).map_or(PyValue::None, PyValue::from)
    }

    pub(super) fn load(&mut self) {
        self.refuse_removed();
        let world = world::world_size(self);
        elasticity::load(self, world.as_ref());
        self.data_types_of_communication();
        let zero = self.zero();
        self.models();
        precision::load(self, zero.stage);
        optimizer::load(self);
        raw_sections::load(self);
        compression::load(self);
        data_efficiency::load(self);
        self.sums(zero);
        if let Some(world) = world {
            self.set("world_size", world.clone().into());
            batch::load(self, &world);
        }
    }

    fn refuse_removed(&mut self) {
        for removed in &self.judge.schema.rejected_when_present {
            let (section, key) = removed.path.split_once('.').unwrap_or(("", &removed.path));
            let members = match section {
                "" => Some(self.members),
                _ => match self.get(section).map(|node| &node.value) {
                    Some(Value::Object(members)) => Some(members.as_slice()),
                    _ => None,
                },
            };
            let Some(member) = members.and_then(|members| crate::judge::member(members, key))
            else {
                continue;
            };
            let kind = ProblemKind::Removed { message: removed.message.clone() };
            if section.is_empty() {
                self.judge.report(kind, &Place::top(key), member.key_span);
            } else {
                self.judge.report(kind, &Place::top(section).child(key), member.key_span);
            }
        }
    }

    fn data_types_of_communication(&mut self) {
        let keys = [
            ("communication_data_type", "communication_data_type"),
            ("seq_parallel_communication_data_type", "seq_parallel_communication_data_type"),
            ("seq_parallel_comm_data_type", "seq_parallel_communication_data_type"),
        ];
        for (key, attribute) in keys {
            let Some(node) = self.known(key) else { continue };
            if matches!(node.value, Value::Null) {
                self.set(attribute, PyValue::None);
            } else if let Some(becomes) =
                self.choice(key, node, &Place::top(key), |text| text.to_lowercase())
            {
                self.set(attribute, becomes);
            }
        }
    }

    /// One of the words a hand-read key takes, after folding its case; notes a problem otherwise.
    pub(super) fn choice(
        &mut self,
        path: &str,
        node: &Node,
        place: &Place<'_>,
        fold: impl Fn(&str) -> String,
    ) -> Option<PyValue> {
        let choices = self.judge.schema.raw_key(path).and_then(|key| key.choices.as_ref());
        let Some(choices) = choices else { return Some(node.into()) };
        if let Value::Str(text) = &node.value {
            let folded = fold(text);
            if let Some(becomes) = choices.get(&folded) {
                let default = || self.torch_name_of_default(path, &folded);
                return Some(becomes.as_ref().map_or_else(default, |text| PyValue::str(text)));
            }
        }
        let allowed = choices.keys().cloned().collect();
        self.judge.wrong(Expected::OneOf(allowed), node, place);
        None
    }

    /// A word that changes nothing is the default; what it stands for is in the resolved defaults.
    fn torch_name_of_default(&self, path: &str, word: &str) -> PyValue {
        if path.starts_with("seq_parallel_comm") {
            let attribute = "seq_parallel_communication_data_type";
            return self
                .judge
                .schema
                .resolved_defaults
                .get(attribute)
                .map_or(PyValue::None, PyValue::from);
        }
        PyValue::str(word)
    }

    fn zero(&mut self) -> ZeroFacts {
        let refused = ZeroFacts { stage: None, zenflow: false };
        let Some(model) = self.judge.schema.section_model("zero_optimization") else {
            return refused;
        };
        let place = Place::top("zero_optimization");
        let zero = match self.get("zero_optimization") {
            // What is not written stays at the resolved defaults: stage 0.
            None => return ZeroFacts { stage: Some(0), zenflow: false },
            Some(Node { value: Value::Bool(on), .. }) => self.zero_from_bool(*on),
            Some(node) => read_section(&mut self.judge, model, node, &place),
        };
        let Some(zero) = zero else { return refused };
        let stage = zero.get("stage").cloned().unwrap_or(PyValue::None);
        for (attribute, field) in [
            ("mics_shard_size", "mics_shard_size"),
            ("mics_hierarchial_params_gather", "mics_hierarchical_params_gather"),
        ] {
            if let Some(value) = zero.get(field) {
                self.set(attribute, value.clone());
            }
        }
        let zenflow = zero.get("zenflow").is_some_and(|zenflow| *zenflow != PyValue::None);
        self.set("zero_config", zero);
        self.set("zero_enabled", PyValue::Bool(stage.is_true()));
        let number = match &stage {
            PyValue::Int(stage) => i64::try_from(stage).ok(),
            _ => None,
        };
        self.set("zero_optimization_stage", stage);
        ZeroFacts { stage: number, zenflow }
    }

    /// The oldest format: `"zero_optimization": true` for stage 1.
    fn zero_from_bool(&mut self, on: bool) -> Option<PyValue> {
        let model = self.judge.schema.section_model("zero_optimization")?;
        let key_span = self.root_span;
        let mut members = vec![Member {
            key: "stage".to_owned(),
            key_span,
            value: Node { span: key_span, value: Value::Int(i64::from(on).into()) },
        }];
        if on && let Some(node) = self.get("allgather_size") {
            members.push(Member {
                key: "allgather_bucket_size".to_owned(),
                key_span,
                value: node.clone(),
            });
        }
        let node = Node { span: key_span, value: Value::Object(members) };
        read_section(&mut self.judge, model, &node, &Place::top("zero_optimization"))
    }

    fn models(&mut self) {
        for (section, attribute) in PLAIN_MODEL_SECTIONS {
            let Some(model) = self.judge.schema.section_model(section) else { continue };
            let Some(node) = self.get(section) else { continue };
            if let Some(value) = read_section(&mut self.judge, model, node, &Place::top(section)) {
                self.set(attribute, value);
            }
        }
        self.comms_logger();
        self.monitors();
        self.timers();
    }

    fn comms_logger(&mut self) {
        let Some(model) = self.judge.schema.section_model("comms_logger") else { return };
        let Some(node) = self.get("comms_logger") else { return };
        if let Some(value) = read_section(&mut self.judge, model, node, &Place::top("comms_logger"))
        {
            self.set("comms_config.comms_logger_enabled", PyValue::Bool(true));
            self.set("comms_config.comms_logger", value);
        }
    }

    fn monitors(&mut self) {
        let mut enabled = false;
        for section in MONITORS {
            let Some(model) = self.judge.schema.section_model(section) else { continue };
            let Some(node) = self.get(section) else { continue };
            if is_auto(&node.value) {
                continue;
            }
            let Some(value) = read_model(&mut self.judge, model, node, &Place::top(section)) else {
                continue;
            };
            enabled |= value.get("enabled").is_some_and(PyValue::is_true);
            match section {
                "tensorboard" => self.set("monitor_config.tensorboard", value),
                "wandb" => self.set("monitor_config.wandb", value),
                "comet" => self.set("monitor_config.comet", value),
                _ => self.set("monitor_config.csv_monitor", value),
            }
        }
        self.set("monitor_config.enabled", PyValue::Bool(enabled));
    }

    fn timers(&mut self) {
        let Some(node) = self.known("timers") else { return };
        let place = Place::top("timers");
        match &node.value {
            Value::Object(members) => {
                let Some(throughput) = get(members, "throughput") else { return };
                let Some(model) = self.judge.schema.section_model("timers.throughput") else {
                    return;
                };
                if let Some(value) =
                    read_section(&mut self.judge, model, throughput, &place.child("throughput"))
                {
                    self.set("timers_config", value);
                }
            }
            // `"throughput" in …` also works on text and lists; what it finds there cannot be used.
            Value::Str(text) if !text.contains("throughput") => {}
            Value::Array(items)
                if !items.iter().any(
                    |item| matches!(&item.value, Value::Str(text) if text == "throughput"),
                ) => {}
            _ => self.judge.wrong(Expected::Section, node, &place),
        }
    }

    /// Summed gradients exclude some features.
    fn sums(&mut self, zero: ZeroFacts) {
        let Some(node) = self.known("gradient_allreduce_op") else { return };
        let place = Place::top("gradient_allreduce_op");
        let Some(value) = self.choice("gradient_allreduce_op", node, &place, str::to_lowercase)
        else {
            return;
        };
        let is_sum = value == PyValue::str("sum");
        self.set("gradient_allreduce_op", value);
        if !is_sum {
            return;
        }
        let deepcompile = self
            .special
            .iter()
            .find(|(name, _)| *name == "compile_config")
            .and_then(|(_, value)| value.get("deepcompile"));
        let conflicts = [
            (zero.stage == Some(3), Conflict::SumNeedsNoStage3),
            (zero.zenflow, Conflict::SumNeedsNoZenFlow),
            (deepcompile.is_some_and(PyValue::is_true), Conflict::SumNeedsNoDeepCompile),
        ];
        for (_, conflict) in conflicts.into_iter().filter(|(applies, _)| *applies) {
            self.judge.report(ProblemKind::Conflict(conflict), &place, node.span);
        }
    }
}
