//! LoRA as PEFT applies it: which parameters are added, under which names, and what stays trainable.
//!
//! [`Lora::apply`] gives the model that `peft.get_peft_model` returns. Three things surprise people, and
//! are done here as PEFT does them:
//!
//! * The name of a module to save matches every module whose name *ends* with it: `norm` also saves a
//!   copy of each `input_layernorm`.
//! * Experts are stacked tensors in transformers 5. For some families PEFT translates the names the
//!   experts' parts had before (`gate_proj`, `w1`) into these tensors, whose adapters have a rank per
//!   expert; a dense `gate_proj` elsewhere in such a model is then *not* adapted.
//! * A copy to save is tied to nothing outside itself, so saving a tied embedding and output trains two matrices.

mod targets;
mod wrap;

use crate::architecture::{Module, Rewriter, TooManyElements, rewrite};
use crate::config::facts;
use crate::family::Family;
use crate::model::Model;
use crate::part::PartKind;

use targets::Resolved;

/// Which modules get adapters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Targets {
    /// Those PEFT takes for the family if none is named.
    #[default]
    FamilyDefault,
    /// `all-linear`: every linear module except the output.
    AllLinear,
    /// Those whose name is one of these, or ends with a dot and one of these.
    Names(Vec<String>),
}

/// Which biases of the base model are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrainedBiases {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those of adapted modules.
    LoraOnly,
}

/// What the model is trained for, which PEFT adds modules to save for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Task {
    /// Not said.
    #[default]
    Unsaid,
    /// `CAUSAL_LM`.
    CausalLm,
    /// `SEQ_2_SEQ_LM`.
    Seq2SeqLm,
    /// `SEQ_CLS`: the classifier is saved too.
    SequenceClassification,
}

/// The arguments of `peft.LoraConfig` that decide about parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lora {
    /// `r`.
    pub rank: u64,
    /// `target_modules`.
    pub targets: Targets,
    /// `target_parameters`: stacked tensors, such as `experts.gate_up_proj`.
    pub target_parameters: Vec<String>,
    /// Parts of the model that get no adapters, as `exclude_modules` with their names.
    pub without: Vec<PartKind>,
    /// `modules_to_save`.
    pub modules_to_save: Vec<String>,
    /// `bias`.
    pub bias: TrainedBiases,
    /// `task_type`.
    pub task: Task,
    /// Whether `lora_dropout` is above zero.
    pub dropout: bool,
    /// `use_dora`.
    pub dora: bool,
}

/// Why PEFT would refuse, or why its result is not known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoraError {
    /// The rank is zero, or larger than any model is wide.
    #[error("a LoRA rank cannot be {0}")]
    Rank(u64),
    /// The model was read from files alone, so the kinds of its modules are not known.
    #[error("the classes of the model's modules are unknown")]
    NoFamily,
    /// PEFT has no default for this family.
    #[error("PEFT has no default targets for `{model_type}`")]
    NoDefaultTargets {
        /// The family.
        model_type: &'static str,
    },
    /// PEFT translates the targets of this mixture before it would look up a default, and finds none.
    #[error("PEFT needs explicit target modules for the MoE model `{model_type}`")]
    MixtureNeedsTargets {
        /// The family.
        model_type: &'static str,
    },
    /// No module has the name of a target.
    #[error("no module matches the targets")]
    NothingMatched,
    /// A target is a module that cannot have an adapter.
    #[error("`{name}` is a `{class}`, which cannot have an adapter")]
    NotAdaptable {
        /// Its name; `*` stands for the number of any layer.
        name: String,
        /// Its class.
        class: String,
    },
    /// PEFT refuses the modules whose weights the fused kernels of Mamba read themselves.
    #[error(
        "PEFT cannot adapt `{name}` in a `{model_type}` model; name target modules without `out_proj` and `conv1d`"
    )]
    OfStateSpace {
        /// Its name; `*` stands for the number of any layer.
        name: String,
        /// The family.
        model_type: &'static str,
    },
    /// Names of expert parts that are one tensor now, and not all of them are targets.
    #[error("`{parameter}` also contains {missing:?}, which must be targets as well")]
    PartOfFused {
        /// The tensor.
        parameter: String,
        /// The parts that are missing.
        missing: Vec<String>,
    },
    /// Adapters of tensors cannot have dropout, DoRA or the like.
    #[error("adapters on stacked experts support neither dropout nor DoRA")]
    OnParameters,
    /// A module to save is inside another one, and PEFT's copies of it share storage in ways that are not known here.
    #[error(
        "`{outer}` is saved with everything in it, so `modules_to_save` must not match a module inside it"
    )]
    SavedTwice {
        /// The outer one; `*` stands for the number of any layer.
        outer: String,
    },
    /// The adapters have more elements than can be counted.
    #[error("the adapted model has more elements than 64 bits can count")]
    TooLarge,
}

/// No matrix of a real model has so many rows.
const MOST_RANK: u64 = 1 << 20;

impl Lora {
    /// LoRA of this rank on the family's default targets.
    pub fn new(rank: u64) -> Self {
        Self {
            rank,
            targets: Targets::default(),
            target_parameters: Vec::new(),
            without: Vec::new(),
            modules_to_save: Vec::new(),
            bias: TrainedBiases::default(),
            task: Task::default(),
            dropout: false,
            dora: false,
        }
    }

    /// On every linear module except the output.
    #[must_use]
    pub fn on_all_linear(mut self) -> Self {
        self.targets = Targets::AllLinear;
        self
    }

    /// On the modules of these names.
    #[must_use]
    pub fn on(mut self, names: &[&str]) -> Self {
        self.targets = Targets::Names(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// The model that `peft.get_peft_model` returns.
    ///
    /// # Errors
    ///
    /// If PEFT would refuse, or its result is not known here.
    pub fn apply(&self, model: &Model) -> Result<Model, LoraError> {
        if !(1..=MOST_RANK).contains(&self.rank) {
            return Err(LoraError::Rank(self.rank));
        }
        let family = model.family().ok_or(LoraError::NoFamily)?;
        let facts = facts();
        let family_facts = facts.families.get(family.model_type()).ok_or(LoraError::NoFamily)?;
        let style = family_facts.lora_expert_names.as_ref();
        let names = style.and_then(|style| facts.lora_expert_names.get(style));
        let targets = Resolved::new(self, model, family, family_facts, names)?;
        let saved = self.saved();
        let mut adapt =
            Adapt { lora: self, targets: &targets, saved: &saved, family, adapted: 0, error: None };
        let root = rewrite("", model.root(), &mut adapt);
        if let Some(error) = adapt.error {
            return Err(error);
        }
        if adapt.adapted == 0 {
            return Err(LoraError::NothingMatched);
        }
        let mut save = Save { names: &saved, nested: None };
        let root = rewrite("", &root, &mut save);
        if let Some(outer) = save.nested {
            return Err(LoraError::SavedTwice { outer });
        }
        let root = Module::new(self.class())
            .with("base_model", Module::new("LoraModel").with("model", root));
        let count = root.count().map_err(|TooManyElements| LoraError::TooLarge)?;
        let below = |name: &String| format!("base_model.model.{name}");
        Ok(Model {
            root,
            count,
            output: model.output.as_ref().map(below),
            last: model.last.as_ref().map(below),
            parts: model.parts.iter().map(|(kind, path)| (*kind, below(path))).collect(),
            ..model.clone()
        })
    }

    fn class(&self) -> &'static str {
        match self.task {
            Task::Unsaid => "PeftModel",
            Task::CausalLm => "PeftModelForCausalLM",
            Task::Seq2SeqLm => "PeftModelForSeq2SeqLM",
            Task::SequenceClassification => "PeftModelForSequenceClassification",
        }
    }

    fn saved(&self) -> Vec<String> {
        let mut saved = self.modules_to_save.clone();
        if self.task == Task::SequenceClassification {
            saved.extend(["classifier", "score"].map(str::to_owned));
        }
        saved
    }
}

/// Freezes the base model and puts adapters in it.
struct Adapt<'a> {
    lora: &'a Lora,
    targets: &'a Resolved,
    saved: &'a [String],
    family: Family,
    adapted: usize,
    error: Option<LoraError>,
}

impl Rewriter for Adapt<'_> {
    fn minds_numbers(&self) -> bool {
        self.targets.mind_numbers() || has_number(self.saved)
    }

    fn rewrite(&mut self, name: &str, mut module: Module) -> Module {
        for parameter in &mut module.parameters {
            parameter.trainable = self.lora.bias == TrainedBiases::All && parameter.name == "bias";
        }
        if name.is_empty() {
            return module;
        }
        let adapted = if self.is_kept_out(name) {
            None
        } else if self.targets.include_module(name, &module) {
            Some(self.check_kernels(name).and_then(|()| wrap::module(name, &module, self.lora)))
        } else {
            None
        };
        let adapted = adapted.or_else(|| {
            let ranks = self.targets.parameter_ranks(name, &module, self.lora.rank);
            (!ranks.is_empty()).then(|| wrap::parameters(name, &module, &ranks, self.lora))
        });
        match adapted {
            None => module,
            Some(Ok(adapted)) => {
                self.adapted += 1;
                adapted
            }
            Some(Err(error)) => {
                self.error.get_or_insert(error);
                module
            }
        }
    }
}

impl Adapt<'_> {
    fn check_kernels(&self, name: &str) -> Result<(), LoraError> {
        let is_mamba = matches!(self.family, Family::FalconH1 | Family::Mamba2);
        let last = name.rsplit('.').next().unwrap_or_default();
        if is_mamba && matches!(last, "out_proj" | "conv1d") {
            let model_type = self.family.model_type();
            return Err(LoraError::OfStateSpace { name: name.to_owned(), model_type });
        }
        Ok(())
    }

    /// A module that is saved, or part of one, gets no adapter.
    fn is_kept_out(&self, name: &str) -> bool {
        let dotted = format!(".{name}.");
        self.saved.iter().any(|saved| dotted.contains(&format!(".{saved}.")))
    }
}

/// Puts a trained copy beside every module to save.
struct Save<'a> {
    names: &'a [String],
    /// A module to save with another one in it.
    nested: Option<String>,
}

impl Rewriter for Save<'_> {
    fn minds_numbers(&self) -> bool {
        has_number(self.names)
    }

    fn rewrite(&mut self, name: &str, module: Module) -> Module {
        let is_saved =
            !name.is_empty() && self.names.iter().any(|saved| name.ends_with(saved.as_str()));
        if !is_saved {
            return module;
        }
        if module.modules().any(|inner| wrap::is_saved(inner.module)) {
            self.nested.get_or_insert_with(|| name.to_owned());
        }
        wrap::saved(&module)
    }
}

/// Whether a name may tell one layer from another.
fn has_number(names: &[String]) -> bool {
    names.iter().any(|name| name.contains(|c: char| c.is_ascii_digit() || c == '*'))
}
