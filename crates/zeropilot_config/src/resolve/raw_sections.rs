//! Sections that the engine reads with plain dictionary code, apart from the large ones that have
//! a module of their own.

use num_traits::Zero;

use super::Accelerator;
use super::loader::Loader;
use crate::judge::{Place, get};
use crate::problem::{Conflict, Expected, ProblemKind};
use crate::python::{PyValue, is_true, kind_of};
use crate::syntax::{Member, Node, Value};

/// Sections of which nothing is asked but to be an object.
const OBJECTS: [&str; 4] = ["activation_checkpointing", "flops_profiler", "nebula", "pipeline"];

/// Sections that must name `enabled`: the rest of the section is handed on without it.
const WITH_ENABLED: [(&str, &str); 3] = [
    ("amp", "amp_params"),
    ("progressive_layer_drop", "pld_params"),
    ("curriculum_learning", "curriculum_params_legacy"),
];

pub(super) fn load(loader: &mut Loader<'_, '_>) {
    for section in OBJECTS {
        if let Some(node) = loader.known(section) {
            loader.judge.section(node, &Place::top(section));
        }
    }
    for (section, attribute) in WITH_ENABLED {
        with_enabled(loader, section, attribute);
    }
    pipeline(loader);
    breakdown(loader);
    vocabulary(loader);
    aio(loader);
    autotuning(loader);
    checkpoint(loader);
    data_types(loader);
    expert_parallel(loader);
    sparse_attention(loader);
    if let Some(node) = loader.known("datastates_ckpt") {
        loader.set("datastates_config.enabled", PyValue::Bool(node.value != Value::Bool(false)));
    }
}

fn with_enabled(loader: &mut Loader<'_, '_>, section: &'static str, attribute: &'static str) {
    let Some(node) = loader.known(section) else { return };
    let place = Place::top(section);
    if loader.judge.section(node, &place).is_none() {
        return;
    }
    let mut rest = PyValue::from(node);
    if rest.remove("enabled").is_none() {
        loader.judge.report(
            ProblemKind::MissingKey { key: "enabled".to_owned() },
            &place,
            node.span,
        );
    }
    loader.set(attribute, rest);
}

fn pipeline(loader: &mut Loader<'_, '_>) {
    let Some(Node { value: Value::Object(members), .. }) = loader.known("pipeline") else { return };
    let mut pipeline =
        loader.judge.schema.resolved_defaults.get("pipeline").map_or(PyValue::None, PyValue::from);
    for Member { key, value, .. } in members {
        pipeline.set(key, value.into());
    }
    loader.set("pipeline", pipeline);
}

/// `wall_clock_breakdown | flops_profiler.enabled`, which Python has for whole numbers and objects.
fn breakdown(loader: &mut Loader<'_, '_>) {
    let profiler = match loader.known("flops_profiler").map(|node| &node.value) {
        Some(Value::Object(members)) => get(members, "enabled"),
        _ => None,
    };
    let breakdown = loader.get("wall_clock_breakdown");
    let off = Value::Bool(false);
    let left = breakdown.map_or(&off, |node| &node.value);
    let right = profiler.map_or(&off, |node| &node.value);
    let value = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => PyValue::Bool(a | b),
        (Value::Object(_), Value::Object(members)) => {
            let mut merged = PyValue::from(left);
            members.iter().for_each(|member| merged.set(&member.key, (&member.value).into()));
            merged
        }
        _ => match (whole(left), whole(right)) {
            (Some(a), Some(b)) => PyValue::Int(a | b),
            _ => {
                let wrong_left = whole(left).is_none() && breakdown.is_some();
                let (node, path) =
                    if wrong_left { (breakdown, None) } else { (profiler, Some("enabled")) };
                let top =
                    Place::top(if wrong_left { "wall_clock_breakdown" } else { "flops_profiler" });
                let span = node.map_or(loader.root_span, |node| node.span);
                let kind = ProblemKind::Conflict(Conflict::BreakdownNeedsBooleans);
                match path {
                    Some(key) => loader.judge.report(kind, &top.child(key), span),
                    None => loader.judge.report(kind, &top, span),
                }
                return;
            }
        },
    };
    loader.set("wall_clock_breakdown", value);
}

fn whole(value: &Value) -> Option<num_bigint::BigInt> {
    match value {
        Value::Bool(value) => Some(i32::from(*value).into()),
        Value::Int(value) => Some(value.clone()),
        _ => None,
    }
}

/// `vocabulary_size % 8` is computed for a warning, and fails for anything but a number.
fn vocabulary(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.known("vocabulary_size") else { return };
    let number = PyValue::from(node).number().is_some();
    if is_true(&node.value) && !number {
        loader.judge.wrong(Expected::Int, node, &Place::top("vocabulary_size"));
    }
}

fn aio(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.get("aio").filter(|node| !matches!(node.value, Value::Null)) else {
        return;
    };
    let place = Place::top("aio");
    let Some(members) = loader.judge.section(node, &place) else { return };
    if !loader.knows("aio.use_gds") {
        return;
    }
    let Some(gds) = get(members, "use_gds") else { return };
    if is_true(&gds.value) && loader.circumstances.accelerator != Accelerator::Cuda {
        let kind = ProblemKind::Conflict(Conflict::GdsNeedsCuda);
        loader.judge.report(kind, &place.child("use_gds"), gds.span);
    }
    loader.set("aio_config.use_gds", gds.into());
}

fn autotuning(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.get("autotuning") else { return };
    let place = Place::top("autotuning");
    let Some(members) = loader.judge.section(node, &place) else { return };
    for key in ["results_dir", "exps_dir"] {
        if let Some(node) = get(members, key).filter(|node| !is_true(&node.value)) {
            loader.judge.wrong(Expected::NotEmpty, node, &place.child(key));
        }
    }
    let info = get(members, "model_info").filter(|node| !matches!(node.value, Value::Null));
    if let Some(node) = info
        && let Some(members) = loader.judge.section(node, &place.child("model_info"))
    {
        let value = read_all(loader, "autotuning.model_info", members);
        loader.set("autotuning_config.model_info", value);
    }
}

/// Every key the engine asks of a section, written or default, as one dictionary.
fn read_all(loader: &Loader<'_, '_>, section: &str, members: &[Member]) -> PyValue {
    let keys = loader.judge.schema.raw_members(section).filter(|key| *key != "*");
    let read = |key: &str| {
        get(members, key)
            .map_or_else(|| loader.raw_default(&format!("{section}.{key}")), PyValue::from)
    };
    PyValue::Dict(keys.map(|key| (key.to_owned(), read(key))).collect())
}

fn checkpoint(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.get("checkpoint") else { return };
    let place = Place::top("checkpoint");
    let Some(members) = loader.judge.section(node, &place) else { return };
    if let Some(node) = get(members, "tag_validation") {
        let place = place.child("tag_validation");
        let mode = loader.choice("checkpoint.tag_validation", node, &place, str::to_uppercase);
        if let Some(mode) = mode {
            loader
                .set("checkpoint_tag_validation_enabled", (mode != PyValue::str("IGNORE")).into());
            loader.set("checkpoint_tag_validation_fail", (mode == PyValue::str("FAIL")).into());
            if loader.knows("checkpoint.writer") {
                loader.set("checkpoint_config.tag_validation", mode);
            }
        }
    }
    if let Some(node) = get(members, "parallel_write") {
        parallel_write(loader, node, &place.child("parallel_write"));
    }
    if loader.knows("checkpoint.writer")
        && let Some(node) = get(members, "writer").filter(|node| !matches!(node.value, Value::Null))
    {
        writer(loader, node, &place.child("writer"));
    }
}

fn parallel_write(loader: &mut Loader<'_, '_>, node: &Node, place: &Place<'_>) {
    let Some(members) = loader.judge.section(node, place) else { return };
    let Some(stage) = get(members, "pipeline_stage") else { return };
    // `value in [True, False]` compares by equality, so 0, 1, 0.0 and 1.0 are in it too.
    let boolean = match &stage.value {
        Value::Bool(_) => true,
        Value::Int(value) => value.is_zero() || *value == 1.into(),
        Value::Float(value) => *value == 0.0 || *value == 1.0,
        _ => false,
    };
    if boolean {
        loader.set("checkpoint_parallel_write_pipeline", stage.into());
    } else {
        loader.judge.wrong(Expected::Bool, stage, &place.child("pipeline_stage"));
    }
}

fn writer(loader: &mut Loader<'_, '_>, node: &Node, place: &Place<'_>) {
    let Some(members) = loader.judge.section(node, place) else { return };
    let mut writer = read_all(loader, "checkpoint.writer", members);
    for (key, path) in
        [("type", "checkpoint.writer.type"), ("data_parallel", "checkpoint.writer.data_parallel")]
    {
        let Some(node) = get(members, key).filter(|node| !matches!(node.value, Value::Null)) else {
            continue;
        };
        if let Some(word) = loader.choice(path, node, &place.child(key), str::to_uppercase) {
            writer.set(key, word);
        }
    }
    loader.set("checkpoint_config.writer", writer);
}

fn data_types(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.get("data_types") else { return };
    let place = Place::top("data_types");
    let Some(members) = loader.judge.section(node, &place) else { return };
    let key = "keep_in_fp32_modules";
    if !loader.knows("data_types.keep_in_fp32_modules") {
        return;
    }
    let Some(node) = get(members, key) else { return };
    let fine = match &node.value {
        Value::Str(text) => text == "auto",
        Value::Array(items) => items.iter().all(|item| matches!(item.value, Value::Str(_))),
        _ => false,
    };
    if fine {
        loader.set("keep_in_fp32_modules", node.into());
    } else {
        loader.judge.wrong(Expected::ListOfText, node, &place.child(key));
    }
}

fn expert_parallel(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.known("expert_parallel").filter(|node| is_true(&node.value)) else {
        return;
    };
    let place = Place::top("expert_parallel");
    let Some(members) = loader.judge.section(node, &place) else { return };
    let Some(node) = get(members, "load_balance_coeff") else { return };
    if matches!(node.value, Value::Null) {
        loader.set("expert_parallel_config._load_balance_coeff_explicit", PyValue::Bool(true));
    } else {
        let kind =
            ProblemKind::WrongValue { expected: Expected::Null, found: kind_of(&node.value) };
        loader.judge.report(kind, &place.child("load_balance_coeff"), node.span);
    }
}

fn sparse_attention(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.known("sparse_attention") else { return };
    let place = Place::top("sparse_attention");
    let Some(members) = loader.judge.section(node, &place) else { return };
    let modes = &loader.judge.schema.behaviours.sparse_attention_modes;
    let mode = match get(members, "mode") {
        None => "fixed",
        Some(Node { value: Value::Str(mode), .. }) if modes.contains_key(mode) => mode,
        Some(node) => {
            let allowed = modes.keys().cloned().collect();
            loader.judge.wrong(Expected::OneOf(allowed), node, &place.child("mode"));
            return;
        }
    };
    let mut sparsity = modes.get(mode).map_or(PyValue::None, PyValue::from);
    if let PyValue::Dict(items) = &mut sparsity {
        for (key, value) in items.iter_mut().filter(|(key, _)| key != "mode") {
            if let Some(node) = get(members, key) {
                *value = node.into();
            }
        }
    }
    loader.set("sparse_attention", sparsity);
}
