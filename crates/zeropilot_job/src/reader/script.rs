//! What a training script says outside of plain arguments: dictionaries among them, adapters, calls on the model.

use serde_json::Map;
use zeropilot_config::syntax::Span;

use super::{Reader, targets};
use crate::dictionary::{Member, members};
use crate::origin::Sourced;
use crate::python::{Guard, PythonScript};
use crate::recipe::{ARGUMENTS, NotModelled as Known};
use crate::training_job::{self, Direction, TrainingJob};
use crate::{Call, MethodName, Place, Value};

/// How the checkpoints of a job are made.
const CHECKPOINTING: &str = "gradient_checkpointing_kwargs";

/// Its members that change no memory, or that have a name of their own among the arguments.
const CHECKPOINTING_MEMBERS: [&str; 7] = [
    "use_reentrant",
    "preserve_rng_state",
    "determinism_check",
    "early_stop",
    "debug",
    "every_n_layers",
    "offload",
];

/// Parts of names of models other than the trained one.
const OTHER_MODELS: [&str; 6] = ["ref", "reference", "teacher", "reward", "critic", "ema"];

/// Adapters of PEFT other than LoRA, by the classes of their arguments.
const OTHER_ADAPTERS: [&str; 16] = [
    "AdaLoraConfig",
    "BOFTConfig",
    "BoneConfig",
    "FourierFTConfig",
    "HRAConfig",
    "IA3Config",
    "LoHaConfig",
    "LoKrConfig",
    "MissConfig",
    "OFTConfig",
    "PrefixTuningConfig",
    "PromptEncoderConfig",
    "PromptTuningConfig",
    "RandLoraConfig",
    "VeraConfig",
    "XLoraConfig",
];

/// A text of a script in an answer is no longer than this.
const LONGEST: usize = 60;

impl Reader<'_> {
    /// Whether only the run knows a value.
    pub(super) fn is_unknown(&self, field: &str) -> bool {
        let unknown = &self.launch.given.unknown;
        ARGUMENTS.names(field).any(|name| unknown.iter().any(|it| it == name))
    }

    /// What stands in the training script, on one line.
    fn text_at(&self, span: Span) -> Option<Sourced<String>> {
        let program = self.launch.program.as_deref()?;
        let text = (self.files)(program)?;
        let value = span.of(&text)?.split_whitespace().collect::<Vec<_>>().join(" ");
        let value = match value.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &value[..end]),
            None => value,
        };
        Some(Sourced { value, origin: self.origin(&Place::in_file(program, span)) })
    }

    /// The value of an argument of a call, as the script writes it.
    fn text_of(&self, span: Span) -> Option<Sourced<String>> {
        let said = self.text_at(span)?;
        Some(said.map(|text| match text.split_once('=') {
            Some((_, value)) => value.trim().to_owned(),
            None => text,
        }))
    }

    /// The dictionary that a field of the training arguments is given: its text and its members.
    fn dictionary(&self, field: &str) -> Option<(Sourced<String>, Vec<Sourced<Member>>)> {
        let program = self.launch.program.as_deref()?;
        let script = self.script().filter(|script| !script.sets_anywhere(field))?;
        let enabled = script.calls.iter().filter(|it| it.name() == "gradient_checkpointing_enable");
        let mut calls = script.training_arguments().chain(enabled).filter_map(|call| {
            let (value, span) = call.keyword(field)?;
            Some((call, value, span))
        });
        let (call, value, span) = calls.next().filter(|_| calls.next().is_none())?;
        let found = match value {
            Value::Dict(place) => members(&(self.files)(program)?, *place)?,
            Value::Call(callee) if callee == "dict" => {
                let name = call.handed(usize::MAX, field);
                let is_it = |it: &&Call| {
                    let is_inside = span.start <= it.span.start && it.span.end <= span.end;
                    it.callee == "dict"
                        && (is_inside || (name.is_some() && it.bound_to.as_deref() == name))
                };
                self.members_of(script.calls.iter().find(is_it)?)
            }
            _ => return None,
        };
        let placed = |member: Member| {
            let origin = self.origin(&Place::in_file(program, member.span));
            Sourced { value: member, origin }
        };
        Some((self.text_of(span)?, found.into_iter().map(placed).collect()))
    }

    /// The members of what `dict` makes.
    fn members_of(&self, call: &Call) -> Vec<Member> {
        let written = call.keywords.iter().filter(|(_, value, _)| *value != Value::None);
        let mut found: Vec<Member> = written
            .map(|(name, value, span)| {
                let (value, is_written_out) = match value {
                    Value::Literal(text) => (text.clone(), true),
                    _ => (self.text_of(*span).map_or_else(String::new, |said| said.value), false),
                };
                Member { name: name.clone(), value, is_written_out, span: *span }
            })
            .collect();
        if call.has_more || !call.positional.is_empty() {
            let (name, value) = ("**".to_owned(), String::new());
            found.push(Member { name, value, is_written_out: false, span: call.span });
        }
        found
    }

    /// A member of a dictionary, by the dotted name that it would have in YAML, and whether it is written out.
    pub(super) fn member(&self, name: &str) -> Option<Sourced<(String, bool)>> {
        let (field, key) = name.split_once('.')?;
        let in_line = || {
            let said = self.argument(field)?;
            let object: serde_json::Value = serde_json::from_str(&said.value).ok()?;
            let value = match object.get(key)? {
                serde_json::Value::Null => return None,
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some(said.map(|_| (value, true)))
        };
        let in_script = || {
            let (_, members) = self.dictionary(field)?;
            let member = members.into_iter().find(|member| member.value.name == key)?;
            Some(member.map(|member| (member.value, member.is_written_out)))
        };
        in_line().or_else(in_script)
    }

    /// Whether a dictionary has a value that only the run knows.
    pub(super) fn has_open_member(&self, field: &str) -> bool {
        ARGUMENTS.names(field).any(|name| self.member(name).is_some_and(|one| !one.value.1))
    }

    /// What a job says under the name of something that no prediction follows.
    pub(super) fn setting(&self, name: &str, known: &Known) -> Option<Sourced<String>> {
        let is_read =
            |member: &str| name == CHECKPOINTING && CHECKPOINTING_MEMBERS.contains(&member);
        if let Some((written, members)) = self.dictionary(name) {
            return members.iter().any(|one| !is_read(&one.value.name)).then_some(written);
        }
        let is_open = |said: &Sourced<String>| {
            let object = serde_json::from_str::<Map<String, serde_json::Value>>(&said.value);
            object.map_or(true, |members| members.keys().any(|key| !is_read(key)))
        };
        let said = self.argument(name).filter(is_open);
        let open = || Some(self.member(name)?.map(|(text, _)| text));
        said.or_else(open).or_else(|| self.of_adapter(name, known))
    }

    /// An argument of the adapters in the script.
    fn of_adapter(&self, name: &str, known: &Known) -> Option<Sourced<String>> {
        let (value, span) = self.called("LoraConfig")?.keyword(name)?;
        if let Value::Argument(option) = value
            && known.names.contains(option)
        {
            // Named as that option.
            return self.written((value, span)).filter(|_| self.argument(option).is_none());
        }
        let text = || self.text_of(span);
        match value {
            Value::Literal(_) | Value::Argument(_) => self.written((value, span)),
            Value::None => None,
            // Some other object's field, which may be `None`.
            Value::Unknown => text().filter(|said| {
                let is_name = |letter: char| letter.is_alphanumeric() || "._".contains(letter);
                !(said.value.contains('.') && said.value.chars().all(is_name))
            }),
            _ => text().filter(|said| !matches!(said.value.as_str(), "[]" | "{}" | "()")),
        }
    }

    /// The modules that adapters of the script are for.
    pub(super) fn adapted_modules(&self, call: &Call, job: &mut TrainingJob) {
        let Some((value, span)) = call.keyword("target_modules") else { return };
        let listed = |items: &[Value]| {
            let name = |item: &Value| match item {
                Value::Literal(text) => Some(text.clone()),
                _ => None,
            };
            let names = items.iter().map(name).collect::<Option<Vec<String>>>()?;
            let program = self.launch.program.as_deref()?;
            let origin = self.origin(&Place::in_file(program, span));
            Some(Sourced { value: names.join(","), origin })
        };
        let said = match value {
            Value::None => return,
            Value::List(items) => listed(items),
            _ => self.written((value, span)),
        };
        job.lora_targets = said.map(|said| said.map(|text| targets(&text)));
        if job.lora_targets.is_none() && !job.unknown.contains(&"lora_targets") {
            job.unknown.push("lora_targets");
        }
    }

    /// Adapters of another kind in the script.
    pub(super) fn other_adapter(&self, job: &mut TrainingJob) -> Option<Sourced<MethodName>> {
        let call = OTHER_ADAPTERS.iter().find_map(|class| self.called(class))?;
        let origin = self.placed(call)?.origin;
        job.not_modelled.push(training_job::NotModelled {
            en: "this kind of adapter, counted as LoRA".to_owned(),
            zh: "这种适配器，按 LoRA 计算".to_owned(),
            written: call.name().to_owned(),
            direction: Direction::Either,
            origin: origin.clone(),
        });
        Some(Sourced { value: MethodName::Lora, origin })
    }

    /// Where axolotl keeps checkpoints, if its switch for them says so instead of `true`.
    pub(super) fn checkpoints_elsewhere(&self) -> Option<Sourced<String>> {
        let said = self.text("grad_checkpointing");
        said.filter(|said| matches!(said.value.as_str(), "offload" | "offload_disk" | "unsloth"))
    }

    pub(super) fn offloaded_checkpoints(&self, job: &mut TrainingJob) {
        if let Some(said) = self.checkpoints_elsewhere()
            && let Some(known) = listed_as("activation_offloading")
        {
            let words = (known.en.as_str(), known.zh.as_str());
            self.leave_out(job, words, &said, "gradient_checkpointing", known.direction);
        }
    }

    /// What the script does to the model itself.
    pub(super) fn calls_not_modelled(&self, job: &mut TrainingJob) {
        let Some(script) = self.script() else { return };
        let is_reached =
            |call: &&Call| call.guards.iter().all(|guard| self.holds(guard).unwrap_or(true));
        let compiles = |call: &&Call| {
            let object = call.object().rsplit('.').next().unwrap_or("");
            let is_engine = || script.engine().is_some_and(|(_, name)| name == object);
            let is_model = || object.contains("model") || object.contains("engine");
            call.callee == "torch.compile"
                || (call.name() == "compile" && (is_engine() || is_model()))
        };
        let compiled = script.calls.iter().filter(is_reached).find(compiles);
        self.leave_out_place("torch_compile", compiled.map(|call| call.span), job);
        if job.method.as_ref().is_none_or(|method| method.value == MethodName::Full) {
            let freezes = |call: &&Call| {
                let first = call.argument(0, "requires_grad").map(|(value, _)| value);
                call.name() == "requires_grad_"
                    && matches!(first, Some(Value::Literal(text)) if text == "False")
                    && !is_other_model(script, call.object(), call.span)
            };
            let call = script.calls.iter().filter(is_reached).find(freezes).map(|call| call.span);
            let assigned = || {
                let freezes = script.assignments.iter().find(|it| {
                    let object = it.target.strip_suffix(".requires_grad");
                    it.value == "False"
                        && object.is_some_and(|object| !is_other_model(script, object, it.span))
                })?;
                Some(freezes.span)
            };
            self.leave_out_place("freeze_parameters", call.or_else(assigned), job);
        }
    }

    /// Names what stands at a place of the script in the words for an argument.
    fn leave_out_place(&self, name: &str, place: Option<Span>, job: &mut TrainingJob) {
        let said = place.and_then(|place| self.text_at(place));
        let (Some(known), Some(said)) = (listed_as(name), said) else { return };
        if !job.not_modelled.iter().any(|one| one.en == known.en) {
            job.not_modelled.push(training_job::NotModelled {
                en: known.en.clone(),
                zh: known.zh.clone(),
                written: said.value,
                direction: known.direction,
                origin: said.origin,
            });
        }
    }

    /// Whether a condition holds that asks for an option; `None` if it asks for something else, or only the run knows.
    fn holds(&self, guard: &Guard) -> Option<bool> {
        let asked = guard.condition.trim();
        let plain = asked.strip_prefix("not ").map(str::trim);
        let option = plain.unwrap_or(asked).split_once('.')?.1;
        let said = match self.argument(option) {
            Some(said) => match said.value.to_ascii_lowercase().as_str() {
                "" | "true" | "yes" | "1" => true,
                "false" | "no" | "0" => false,
                _ => return None,
            },
            None => {
                let (value, _) = self.option_keyword(option, "action")?;
                let is_switch = *value == Value::Literal("store_true".to_owned());
                (is_switch && self.launch.is_written_out()).then_some(false)?
            }
        };
        Some((said != plain.is_some()) == guard.holds)
    }

    fn option_keyword(&self, option: &str, keyword: &str) -> Option<(&Value, Span)> {
        let is_it = |call: &&Call| {
            let is_flag = |value: &Value| match value {
                Value::Literal(flag) => flag.trim_start_matches('-').replace('-', "_") == option,
                _ => false,
            };
            call.name() == "add_argument" && call.positional.iter().any(|(value, _)| is_flag(value))
        };
        self.script()?.calls.iter().find(is_it)?.keyword(keyword)
    }
}

/// What is known of an argument that no prediction follows.
fn listed_as(name: &str) -> Option<&'static Known> {
    ARGUMENTS.not_modelled.iter().find(|known| known.names.iter().any(|it| it == name))
}

/// Whether something belongs to another model than the trained one, by its name or that in the loop around it.
fn is_other_model(script: &PythonScript, object: &str, place: Span) -> bool {
    let over = script.loop_around(place).map_or("", |around| around.over.as_str());
    let parts = object.split(|letter: char| !letter.is_alphanumeric());
    let mut parts = parts.chain(over.split(|letter: char| !letter.is_alphanumeric()));
    parts.any(|part| OTHER_MODELS.contains(&part))
}
