//! The config of a memory question: a written one with what the flags say beside it, or one made from flags.

use serde_json::{Map, Value, json};
use zeropilot_config::front_end::{Arguments, ModelFacts, TrainerArguments};
use zeropilot_config::python::{PyValue, is_auto};
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{self, Node, decode, parse_hjson};
use zeropilot_job::Origin;
use zeropilot_lint::{Report, Settings, Verdict, check};

use super::{Conflict, MemoryProblem};
use crate::name::{NumberFormat, Offload};
use crate::training::Training;

const GLOBAL: &str = "train_batch_size";
const MICRO: &str = "train_micro_batch_size_per_gpu";
const ACCUMULATION: &str = "gradient_accumulation_steps";
const SEQUENCE_PARALLEL: &str = "sequence_parallel_size";

/// A config made from flags.
pub(super) fn made(
    stage: u8,
    offload: Offload,
    precision: NumberFormat,
    training: &Training,
) -> Value {
    let mut zero = Map::new();
    zero.insert("stage".to_owned(), json!(stage));
    let on_host = json!({"device": "cpu", "pin_memory": true});
    if offload != Offload::None && stage > 0 {
        zero.insert("offload_optimizer".to_owned(), on_host.clone());
    }
    if offload == Offload::All && stage == 3 {
        zero.insert("offload_param".to_owned(), on_host);
    }
    let mut config = Map::new();
    config.insert(MICRO.to_owned(), json!(training.micro_batch.unwrap_or(1)));
    config.insert(ACCUMULATION.to_owned(), json!(training.grad_accum.unwrap_or(1)));
    match precision {
        NumberFormat::Bf16 => config.insert("bf16".to_owned(), json!({"enabled": true})),
        NumberFormat::Fp16 => config.insert("fp16".to_owned(), json!({"enabled": true})),
        NumberFormat::Fp32 => None,
    };
    config.insert("zero_optimization".to_owned(), Value::Object(zero));
    Value::Object(config)
}

/// A config without the sizes that it leaves to the front end; `None` if it leaves none.
pub(super) fn without_auto_sizes(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut config: Value = serde_json::from_slice(bytes).ok()?;
    let zero = config.get_mut("zero_optimization")?.as_object_mut()?;
    let before = zero.len();
    zero.retain(|_, value| value != "auto");
    (zero.len() < before).then(|| config.to_string().into_bytes())
}

/// Whether a config has an optimizer section.
pub(super) fn has_optimizer(bytes: &[u8]) -> bool {
    let config: Option<Value> = serde_json::from_slice(bytes).ok();
    config.is_some_and(|config| config.get("optimizer").is_some_and(Value::is_object))
}

/// What the flags say beside a config, for whoever fills its `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) micro_batch: Option<u64>,
    pub(super) grad_accum: Option<u64>,
    pub(super) precision: Option<NumberFormat>,
    /// The format if the file leaves it open and nothing else says which.
    pub(super) usual: NumberFormat,
    /// The engine that reads the file.
    pub(super) engine: EngineVersion,
    /// Whether the script says that ranks share sequences.
    pub(super) shares_sequence: bool,
}

/// A config as the engine resolves it.
pub(super) struct Solved {
    pub(super) resolved: ResolvedConfig,
    pub(super) micro_batch: u64,
    /// The format that was taken because the file leaves it to the script.
    pub(super) assumed: Option<NumberFormat>,
}

/// Resolves a config for so many ranks with a batch of their own; what its author wrote counts before what is assumed.
pub(super) fn solve(
    name: &str,
    bytes: &[u8],
    world: u64,
    hidden: u64,
    flags: Flags,
) -> Result<Solved, MemoryProblem> {
    let document = decode(bytes).ok().and_then(|text| parse_hjson(text).ok());
    let written = document.as_ref().map(|document| Written::of(document.root()));
    let written = written.unwrap_or_default();
    let (arguments, assumed) = written
        .arguments(flags)
        .map_err(|conflict| MemoryProblem::Conflict { name: name.to_owned(), conflict })?;
    // Ranks that share a sequence are told to the engine by the script; then it does not divide by the key.
    let written = document.as_ref().map(|document| count(document.root(), SEQUENCE_PARALLEL));
    let divided = written.and_then(Said::this).and_then(|size| u64::try_from(size).ok());
    let divided = divided.unwrap_or(1).max(1);
    let world = if flags.shares_sequence { world.saturating_mul(divided) } else { world };
    let settings = Settings {
        version: flags.engine,
        world_size: usize::try_from(world).ok(),
        arguments,
        model: Some(ModelFacts::with_hidden_size(hidden)),
        ..Settings::default()
    };
    let report = check(bytes, &settings);
    let refused = |report: Report| MemoryProblem::Refused {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
        report: Box::new(report),
    };
    let values = match &report.resolved {
        Some(values) if report.verdict == Verdict::Accept => values,
        _ => return Err(refused(report)),
    };
    let resolved = values.keys.config().clone();
    match resolved.batch() {
        Some(batch) => Ok(Solved { micro_batch: batch.micro, resolved, assumed }),
        None => Err(refused(report)),
    }
}

/// What a file says about something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Said<T> {
    /// Nothing.
    #[default]
    Nothing,
    /// That the script decides.
    Auto,
    /// This.
    This(T),
}

impl<T> Said<T> {
    fn this(self) -> Option<T> {
        match self {
            Self::This(value) => Some(value),
            Self::Nothing | Self::Auto => None,
        }
    }
}

/// What a file says about what flags say too.
#[derive(Debug, Default)]
struct Written {
    micro_batch: Said<i64>,
    accumulation: Said<i64>,
    precision: Said<NumberFormat>,
    /// Whether the script decides about fp16 and about bf16.
    open: (bool, bool),
}

impl Written {
    fn of(root: &Node) -> Self {
        let switch = |section: &str| at(root, section).and_then(|section| at(section, "enabled"));
        let bf16 = switch("bf16").or_else(|| switch("bfloat16"));
        let fp16 = switch("fp16");
        let is_on = |node: Option<&Node>| node.is_some_and(|node| PyValue::from(node).is_true());
        let is_open = |node: Option<&Node>| node.is_some_and(|node| is_auto(&node.value));
        let precision = if is_on(bf16) && !is_open(bf16) {
            Said::This(NumberFormat::Bf16)
        } else if is_on(fp16) && !is_open(fp16) {
            Said::This(NumberFormat::Fp16)
        } else if is_open(bf16) || is_open(fp16) {
            Said::Auto
        } else {
            Said::This(NumberFormat::Fp32)
        };
        Self {
            micro_batch: count(root, MICRO),
            accumulation: count(root, ACCUMULATION),
            precision,
            open: (is_open(fp16), is_open(bf16)),
        }
    }

    /// What the script is taken to say, and which number format was assumed.
    fn arguments(&self, flags: Flags) -> Result<(Arguments, Option<NumberFormat>), Box<Conflict>> {
        let micro = agreed(MICRO, "micro_batch", self.micro_batch, signed(flags.micro_batch))?;
        let steps =
            agreed(ACCUMULATION, "grad_accum", self.accumulation, signed(flags.grad_accum))?;
        let (precision, assumed) = match (self.precision, flags.precision) {
            (Said::This(written), Some(given)) if written != given => {
                let key = "bf16.enabled / fp16.enabled";
                return Err(Conflict::new(key, written.name(), "precision", given.name()));
            }
            (Said::This(written), _) => (written, None),
            (_, Some(given)) => (given, None),
            _ => {
                let likely = match self.open {
                    (true, true) => flags.usual,
                    (_, true) => NumberFormat::Bf16,
                    _ => NumberFormat::Fp16,
                };
                (likely, Some(likely))
            }
        };
        let trainer = TrainerArguments {
            per_device_train_batch_size: Some(micro.unwrap_or(1)),
            gradient_accumulation_steps: Some(steps.unwrap_or(1)),
            fp16: Some(precision == NumberFormat::Fp16),
            bf16: Some(precision == NumberFormat::Bf16),
            fp16_full_eval: Some(false),
            bf16_full_eval: Some(false),
            ..TrainerArguments::default()
        };
        Ok((Arguments { trainer, ..Arguments::default() }, assumed))
    }
}

impl Conflict {
    fn new(
        key: &'static str,
        written: impl ToString,
        option: &'static str,
        given: impl ToString,
    ) -> Box<Self> {
        let (written, given) = (written.to_string(), given.to_string());
        let (origin, config) = (Origin::Option, Origin::Option);
        Box::new(Self { key, written, option, given, origin, config, framework: None })
    }
}

/// The number a file and a flag agree on.
fn agreed(
    key: &'static str,
    option: &'static str,
    written: Said<i64>,
    given: Option<i64>,
) -> Result<Option<i64>, Box<Conflict>> {
    match (written, given) {
        (Said::This(written), Some(given)) if written != given => {
            Err(Conflict::new(key, written, option, given))
        }
        (Said::This(written), _) => Ok(Some(written)),
        (Said::Nothing | Said::Auto, given) => Ok(given),
    }
}

fn signed(number: Option<u64>) -> Option<i64> {
    number.and_then(|number| i64::try_from(number).ok())
}

fn at<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let syntax::Value::Object(members) = &node.value else { return None };
    members.iter().rev().find(|member| member.key == key).map(|member| &member.value)
}

/// What a config itself settles, so that nothing beside it needs to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stated {
    pub(crate) global_batch: Option<u64>,
    pub(crate) micro_batch: Option<u64>,
    pub(crate) grad_accum: Option<u64>,
    pub(crate) precision: Option<NumberFormat>,
}

impl Stated {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let document = decode(bytes).ok().and_then(|text| parse_hjson(text).ok());
        let Some(document) = document else { return Self::default() };
        let written = Written::of(document.root());
        let number = |said: Said<i64>| said.this().and_then(|number| u64::try_from(number).ok());
        Self {
            global_batch: number(count(document.root(), GLOBAL)),
            micro_batch: number(written.micro_batch),
            grad_accum: number(written.accumulation),
            precision: written.precision.this(),
        }
    }
}

/// A whole number at the top level.
fn count(root: &Node, key: &str) -> Said<i64> {
    match at(root, key).map(|node| &node.value) {
        Some(value) if is_auto(value) => Said::Auto,
        Some(syntax::Value::Int(number)) => i64::try_from(number).map_or(Said::Nothing, Said::This),
        _ => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Flags = Flags {
        micro_batch: None,
        grad_accum: None,
        precision: None,
        usual: NumberFormat::Bf16,
        engine: EngineVersion::NEWEST,
        shares_sequence: false,
    };

    fn said(text: &str, flags: Flags) -> Result<(Arguments, Option<NumberFormat>), Box<Conflict>> {
        let document = parse_hjson(text).expect("a config");
        Written::of(document.root()).arguments(flags)
    }

    #[test]
    fn what_the_file_says_counts_before_what_is_assumed() {
        let text = r#"{"gradient_accumulation_steps": 8, "fp16": {"enabled": true}, "bf16": {"enabled": "auto"}}"#;
        let (arguments, assumed) = said(text, NOTHING).expect("no conflict");
        assert_eq!(arguments.trainer.gradient_accumulation_steps, Some(8));
        assert_eq!((arguments.trainer.fp16, arguments.trainer.bf16), (Some(true), Some(false)));
        assert_eq!(assumed, None);
    }

    #[test]
    fn an_open_precision_is_said_to_be_assumed_unless_a_flag_settles_it() {
        let both = r#"{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}"#;
        let assumed = |text, flags| said(text, flags).expect("no conflict").1;
        assert_eq!(assumed(both, NOTHING), Some(NumberFormat::Bf16));
        let fp16 = Flags { precision: Some(NumberFormat::Fp16), ..NOTHING };
        assert_eq!(assumed(both, fp16), None);
        let old_card = Flags { usual: NumberFormat::Fp16, ..NOTHING };
        assert_eq!(assumed(both, old_card), Some(NumberFormat::Fp16));
        assert_eq!(assumed(r#"{"fp16": {"enabled": "auto"}}"#, NOTHING), Some(NumberFormat::Fp16));
        assert_eq!(assumed("{}", NOTHING), None);
    }

    #[test]
    fn a_contradiction_names_both_sides() {
        let flags = Flags { grad_accum: Some(4), ..NOTHING };
        let conflict =
            said(r#"{"gradient_accumulation_steps": 8}"#, flags).expect_err("a conflict");
        assert_eq!((conflict.written.as_str(), conflict.given.as_str()), ("8", "4"));
    }
}
