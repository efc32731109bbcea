//! `fp16`, `bf16` and `torch_autocast`.
//!
//! From 0.17 on the first two are models; before, they were read key by key, and only where
//! `enabled` was true.

use num_bigint::BigInt;
use num_traits::{Pow, Signed, ToPrimitive};

use super::loader::Loader;
use crate::judge::{Place, get, member};
use crate::problem::{Conflict, Expected, ProblemKind};
use crate::pydantic::read_section;
use crate::python::{Number, PyValue, is_true};
use crate::syntax::{Member, Node, Value};

/// Two to more than this is a number with millions of digits, which nobody means.
const MAX_POWER: i64 = 1 << 20;

pub(super) fn load(loader: &mut Loader<'_, '_>, stage: Option<i64>) {
    if loader.judge.schema.section_model("fp16").is_some() {
        from_models(loader, stage);
    } else {
        by_hand(loader, stage);
    }
    autocast(loader);
}

fn from_models(loader: &mut Loader<'_, '_>, stage: Option<i64>) {
    let fp16 = model(loader, "fp16", loader.get("fp16"), "fp16");
    // `bf16: null` counts as absent, and only then is the old spelling looked at.
    let (key, node) = match loader.get("bf16").filter(|node| !matches!(node.value, Value::Null)) {
        Some(node) => ("bf16", Some(node)),
        None => ("bfloat16", loader.get("bfloat16")),
    };
    let bf16 = model(loader, "bf16", node, key);
    let on = |section: &PyValue, key: &str| section.get(key).is_some_and(PyValue::is_true);
    if on(&fp16, "enabled") && on(&bf16, "enabled") {
        both(loader);
    }
    let stages = &loader.judge.schema.behaviours;
    if on(&fp16, "fp16_master_weights_and_grads") {
        let stages = stages.fp16_master_weights_stages.clone();
        master_weights(loader, stage, &stages, &["fp16", "fp16_master_weights_and_grads"]);
    }
    if on(&bf16, "bf16_master_weights_and_grads") {
        let stages = loader.judge.schema.behaviours.bf16_master_weights_stages.clone();
        master_weights(loader, stage, &stages, &[key, "bf16_master_weights_and_grads"]);
    }
    if on(&bf16, "bf16_optimizer_states") {
        let stages = loader.judge.schema.behaviours.bf16_master_weights_stages.clone();
        master_weights(loader, stage, &stages, &[key, "bf16_optimizer_states"]);
        if !on(&bf16, "bf16_master_weights_and_grads") {
            let conflict = Conflict::OptimizerStatesNeedMasterWeights;
            report(loader, conflict, &[key, "bf16_optimizer_states"]);
        }
    }
    // What is not written stays at the resolved defaults.
    if loader.get("fp16").is_some() {
        loader.set("float16_config", fp16);
    }
    if node.is_some() {
        loader.set("bfloat16_config", bf16);
    }
}

fn model(loader: &mut Loader<'_, '_>, section: &str, node: Option<&Node>, key: &str) -> PyValue {
    let Some(model) = loader.judge.schema.section_model(section) else { return PyValue::None };
    match node {
        None => PyValue::None,
        Some(node) => {
            read_section(&mut loader.judge, model, node, &Place::top(key)).unwrap_or(PyValue::None)
        }
    }
}

/// Points at a key two levels down, or at the section if the key is not written.
fn report(loader: &mut Loader<'_, '_>, conflict: Conflict, path: &[&str; 2]) {
    let section = loader.get(path[0]);
    let written = section.and_then(|node| match &node.value {
        Value::Object(members) => get(members, path[1]),
        _ => None,
    });
    let span = written.or(section).map_or(loader.root_span, |node| node.span);
    let place = Place::top(path[0]);
    loader.judge.report(ProblemKind::Conflict(conflict), &place.child(path[1]), span);
}

fn both(loader: &mut Loader<'_, '_>) {
    let span = member(loader.members, "fp16").map_or(loader.root_span, |member| member.key_span);
    loader.judge.report(ProblemKind::BothPrecisions, &Place::top("fp16"), span);
}

fn master_weights(
    loader: &mut Loader<'_, '_>,
    stage: Option<i64>,
    stages: &[i64],
    path: &[&str; 2],
) {
    let Some(stage) = stage else { return };
    if !stages.contains(&stage) {
        let conflict = if stages == [2] {
            Conflict::MasterWeightsNeedStage2
        } else {
            Conflict::MasterWeightsNeedZero
        };
        report(loader, conflict, path);
    }
}

fn by_hand(loader: &mut Loader<'_, '_>, stage: Option<i64>) {
    let empty: &[Member] = &[];
    let fp16_node = loader.get("fp16");
    let fp16 = match fp16_node {
        Some(node) => loader.judge.section(node, &Place::top("fp16")).unwrap_or(empty),
        None => empty,
    };
    let bf16_key = if loader.get("bf16").is_some() { "bf16" } else { "bfloat16" };
    let bf16 = match loader.get(bf16_key) {
        Some(node) => loader.judge.section(node, &Place::top(bf16_key)).unwrap_or(empty),
        None => empty,
    };
    let read = |members: &[Member], key: &str, default: PyValue| {
        get(members, key).map_or(default, PyValue::from)
    };
    let fp16_on = get(fp16, "enabled").is_some_and(|node| is_true(&node.value));
    let bf16_on = get(bf16, "enabled").is_some_and(|node| is_true(&node.value));
    if fp16_on && bf16_on {
        both(loader);
    }
    let off = PyValue::Bool(false);
    loader.set("fp16_enabled", read(fp16, "enabled", off.clone()));
    loader.set("bfloat16_enabled", read(bf16, "enabled", off.clone()));
    // The default differs between versions, but only where the section is written at all.
    let immediate = match loader.get(bf16_key) {
        Some(_) => loader.raw_default("bf16.immediate_grad_update"),
        None => off.clone(),
    };
    loader.set("bfloat16_immediate_grad_update", read(bf16, "immediate_grad_update", immediate));
    let auto_cast = if fp16_on { read(fp16, "auto_cast", off.clone()) } else { PyValue::None };
    loader.set("fp16_auto_cast", auto_cast);
    let master =
        if fp16_on { read(fp16, "fp16_master_weights_and_grads", off.clone()) } else { off };
    if master.is_true() {
        let stages = loader.judge.schema.behaviours.fp16_master_weights_stages.clone();
        master_weights(loader, stage, &stages, &["fp16", "fp16_master_weights_and_grads"]);
    }
    loader.set("fp16_master_weights_and_gradients", master);
    let loss_scale = match (fp16_on, bf16_on) {
        (true, _) => read(fp16, "loss_scale", 0.into()),
        (false, true) => PyValue::Float(1.0),
        (false, false) => 0.into(),
    };
    loader.set("loss_scale", loss_scale);
    dynamic_scale(loader, fp16, fp16_on, bf16_on);
}

fn dynamic_scale(loader: &mut Loader<'_, '_>, fp16: &[Member], fp16_on: bool, bf16_on: bool) {
    let written = get(fp16, "initial_scale_power").filter(|_| fp16_on);
    let scale = match written {
        Some(node) => two_to_the(node),
        None if fp16_on || !bf16_on => Some(65536.into()),
        None => Some(1.into()),
    };
    let Some(scale) = scale else {
        if let Some(node) = written {
            let place = Place::top("fp16");
            loader.judge.wrong(Expected::Int, node, &place.child("initial_scale_power"));
        }
        return;
    };
    loader.set("initial_dynamic_scale", scale.clone());
    let keys = [
        "initial_scale_power",
        "loss_scale_window",
        "min_loss_scale",
        "hysteresis",
        "consecutive_hysteresis",
    ];
    if fp16_on && keys.iter().any(|key| get(fp16, key).is_some()) {
        let read = |key: &str, default: PyValue| get(fp16, key).map_or(default, PyValue::from);
        let arguments = [
            ("init_scale", scale),
            ("scale_window", read("loss_scale_window", 1000.into())),
            ("delayed_shift", read("hysteresis", 2.into())),
            ("consecutive_hysteresis", read("consecutive_hysteresis", PyValue::Bool(false))),
            ("min_scale", read("min_loss_scale", 1.into())),
        ];
        let dict = arguments.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        loader.set("dynamic_loss_scale_args", PyValue::Dict(dict));
    }
}

/// `2**value`.
fn two_to_the(node: &Node) -> Option<PyValue> {
    match PyValue::from(node).number()? {
        Number::Int(power) if power.is_negative() => {
            Some(PyValue::Float(2.0_f64.powi(power.to_i32().unwrap_or(i32::MIN))))
        }
        Number::Int(power) => {
            let power = power.to_i64().filter(|power| *power <= MAX_POWER)?;
            Some(PyValue::Int(BigInt::from(2).pow(power.to_u64()?)))
        }
        Number::Float(power) => {
            let scale = 2.0_f64.powf(power);
            // Python raises OverflowError where C would return infinity.
            (scale.is_finite() || !power.is_finite()).then_some(PyValue::Float(scale))
        }
    }
}

fn autocast(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.known("torch_autocast") else { return };
    let place = Place::top("torch_autocast");
    let Some(members) = loader.judge.section(node, &place) else { return };
    if let Some(node) = get(members, "dtype")
        && let Some(dtype) =
            loader.choice("torch_autocast.dtype", node, &place.child("dtype"), str::to_owned)
    {
        loader.set("torch_autocast_dtype", dtype);
    }
    let key = "lower_precision_safe_modules";
    let Some(node) = get(members, key) else { return };
    let names = match &node.value {
        Value::Array(items) => items.iter().all(|item| matches!(item.value, Value::Str(_))),
        Value::Str(_) | Value::Object(_) => true,
        _ => false,
    };
    if names {
        loader.set("torch_autocast_lower_precision_safe_modules", node.into());
    } else {
        loader.judge.wrong(Expected::ListOfText, node, &place.child(key));
    }
}
