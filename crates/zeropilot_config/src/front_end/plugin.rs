//! accelerate's `DeepSpeedPlugin`, which both front ends go through.
//!
//! Its constructor fills eight keys, and the `Accelerator` has it settle the precision.

use num_bigint::BigInt;

use super::arguments::{MixedPrecision, Number, PluginArguments};
use super::problem::{Operation, ProblemKind};
use super::run::{Offer, Read, Run, Step};
use crate::python::{is_hashable, is_true, python_equal, python_type, reads_as_true};
use crate::syntax::{Member, Node, Span, Value};

const STAGE: &str = "zero_optimization.stage";
const OPTIMIZER_DEVICE: &str = "zero_optimization.offload_optimizer.device";
const PARAM_DEVICE: &str = "zero_optimization.offload_param.device";

/// What the launcher's own config may not set next to a DeepSpeed config.
const FIELDS_OF_THE_CONFIG: [&str; 9] = [
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "offload_optimizer_device",
    "offload_param_device",
    "offload_param_nvme_path",
    "offload_optimizer_nvme_path",
    "zero3_save_16bit_model",
    "mixed_precision",
];

/// Reads the stage and, for stages 2 and 3, the offload devices. Returns whether the stage is 3.
pub(super) fn read_stage_and_offload(run: &mut Run) -> Step<bool> {
    let stage = match run.read(STAGE)? {
        Read::There(node) => node.value.clone(),
        Read::Absent | Read::Pending => Value::Null,
    };
    let is = |number: i32| python_equal(&stage, &Value::Int(BigInt::from(number)));
    if is(2) || is(3) {
        refuse_unhashable_devices(run)?;
    }
    Ok(is(3))
}

/// Both devices are read before either is looked up in a set.
fn refuse_unhashable_devices(run: &mut Run) -> Step {
    run.read(OPTIMIZER_DEVICE)?;
    run.read(PARAM_DEVICE)?;
    for key in [OPTIMIZER_DEVICE, PARAM_DEVICE] {
        if let Read::There(node) = run.read(key)?
            && !is_hashable(&node.value)
        {
            let (found, span) = (python_type(&node.value), node.span);
            let kind = ProblemKind::Unusable { found, operation: Operation::LookUpInASet };
            return Err(run.stop(kind, key, span));
        }
    }
    Ok(())
}

/// What the rest of the way needs to know about the plugin.
pub(super) struct Plugin {
    /// The stage of the open config object, which must be written in the file or filled.
    pub(super) config_is_stage_3: bool,
    /// The plugin's own `zero_stage`, which has a default.
    pub(super) plugin_is_stage_3: bool,
}

/// The constructor.
pub(super) fn construct(run: &mut Run, arguments: &PluginArguments) -> Step<Plugin> {
    if !run.has("gradient_accumulation_steps") {
        run.assign(
            "",
            "gradient_accumulation_steps",
            Value::Int(BigInt::from(1)),
            "accelerate's default",
        )?;
    }
    if !run.has("zero_optimization") {
        return Err(run.stop_at_root(ProblemKind::NoZeroSection));
    }
    let fields: Vec<String> = arguments
        .accelerate_config_fields
        .iter()
        .filter(|field| FIELDS_OF_THE_CONFIG.contains(&field.as_str()))
        .cloned()
        .collect();
    if !fields.is_empty() {
        return Err(run.stop_at_root(ProblemKind::FieldsInAccelerateConfig { fields }));
    }
    for (key, offer) in offers(arguments) {
        run.fill(key, offer)?;
    }
    let config_is_stage_3 = read_stage_and_offload(run)?;
    let plugin_is_stage_3 = match run.read(STAGE)? {
        Read::There(node) if !matches!(node.value, Value::Null) => config_is_stage_3,
        _ => arguments.zero_stage == Some(3),
    };
    run.assign("", "steps_per_print", Value::Float(f64::INFINITY), "accelerate's own logging")?;
    Ok(Plugin { config_is_stage_3, plugin_is_stage_3 })
}

/// What the plugin has for its keys. A batch count or clipping it was not given stays `"auto"`.
fn offers(arguments: &PluginArguments) -> Vec<(&'static str, Offer)> {
    let text =
        |given: &Option<String>| Value::Str(given.clone().unwrap_or_else(|| "none".to_owned()));
    let mut offers = Vec::new();
    if let Some(steps) = arguments.gradient_accumulation_steps {
        let offer = Offer::known(
            Number::Int(steps).to_value(),
            "gradient_accumulation_steps of the plugin",
        );
        offers.push(("gradient_accumulation_steps", offer));
    }
    if let Some(clipping) = arguments.gradient_clipping {
        offers.push((
            "gradient_clipping",
            Offer::known(clipping.to_value(), "gradient_clipping of the plugin"),
        ));
    }
    let stage = Number::Int(arguments.zero_stage.unwrap_or(2)).to_value();
    let save = Value::Bool(arguments.zero3_save_16bit_model.unwrap_or(false));
    offers.extend([
        (STAGE, Offer::known(stage, "zero_stage of the plugin")),
        (
            OPTIMIZER_DEVICE,
            Offer::known(
                text(&arguments.offload_optimizer_device),
                "offload_optimizer_device of the plugin",
            ),
        ),
        (
            PARAM_DEVICE,
            Offer::known(
                text(&arguments.offload_param_device),
                "offload_param_device of the plugin",
            ),
        ),
        (
            "zero_optimization.offload_param.nvme_path",
            Offer::known(
                text(&arguments.offload_param_nvme_path),
                "offload_param_nvme_path of the plugin",
            ),
        ),
        (
            "zero_optimization.offload_optimizer.nvme_path",
            Offer::known(
                text(&arguments.offload_optimizer_nvme_path),
                "offload_optimizer_nvme_path of the plugin",
            ),
        ),
        (
            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
            Offer::known(save, "zero3_save_16bit_model of the plugin"),
        ),
    ]);
    offers
}

/// Settles the precision when the `Accelerator` is made.
pub(super) fn set_mixed_precision(
    run: &mut Run,
    precision: Option<MixedPrecision>,
    rocm: bool,
) -> Step {
    match precision {
        Some(MixedPrecision::Fp16) if !run.has("fp16") => {
            insert_section(
                run,
                "fp16",
                &[("enabled", Value::Bool(true)), ("auto_cast", Value::Bool(true))],
            )?;
        }
        Some(precision) if precision.is_bf16_based() && !run.has("bf16") => {
            insert_section(run, "bf16", &[("enabled", Value::Bool(true))])?;
        }
        _ => {}
    }
    if let Some(requested) = precision.filter(|precision| *precision != MixedPrecision::No) {
        refuse_other_precision(run, requested)?;
    }
    for section in ["fp16", "bf16"] {
        if !run.has(section) {
            let enabled = if precision.is_some() {
                Value::Bool(false)
            } else {
                Value::Str("auto".to_owned())
            };
            insert_section(run, section, &[("enabled", enabled)])?;
        }
    }
    let fp16 = precision.map(|precision| Value::Bool(precision == MixedPrecision::Fp16));
    let bf16 = precision.map(|precision| Value::Bool(precision.is_bf16_based()));
    run.fill("fp16.enabled", Offer::new(fp16, "mixed_precision"))?;
    run.fill("bf16.enabled", Offer::new(bf16, "mixed_precision"))?;
    if rocm
        && precision.is_some_and(MixedPrecision::is_bf16_based)
        && !run.has("communication_data_type")
    {
        run.assign("", "communication_data_type", Value::Str("fp32".to_owned()), "ROCm with bf16")?;
    }
    match precision {
        Some(MixedPrecision::Fp8) => Ok(()),
        Some(_) => read_precision_back(run),
        // Every precision reads `fp16`, but fp8 is content with a null `bf16`.
        None => run.read_strictly("fp16", "enabled").map(|_| ()),
    }
}

fn insert_section(run: &mut Run, section: &str, members: &[(&str, Value)]) -> Step {
    let place = Span::new(run.root.span.start, run.root.span.start);
    let members = members
        .iter()
        .map(|(key, value)| Member {
            key: (*key).to_owned(),
            key_span: place,
            value: Node { span: place, value: value.clone() },
        })
        .collect();
    run.assign("", section, Value::Object(members), "mixed_precision")
}

fn refuse_other_precision(run: &mut Run, requested: MixedPrecision) -> Step {
    let other = if requested == MixedPrecision::Fp16 { "bf16" } else { "fp16" };
    if let Read::There(node) = run.read_strictly(other, "enabled")?
        && reads_as_true(&node.value)
    {
        let span = node.span;
        return Err(run.stop(
            ProblemKind::BothPrecisions { requested },
            &format!("{other}.enabled"),
            span,
        ));
    }
    Ok(())
}

/// The `Accelerator` asks the config which precision is on; a null section raises there.
fn read_precision_back(run: &mut Run) -> Step {
    match run.read_strictly("fp16", "enabled")? {
        Read::Pending => return Ok(()),
        Read::There(node) if is_true(&node.value) => return Ok(()),
        _ => {}
    }
    run.read_strictly("bf16", "enabled").map(|_| ())
}
