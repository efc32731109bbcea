//! `data_efficiency`: curriculum sampling, dynamic batching and random layer-token dropping.

use num_bigint::BigInt;
use num_traits::FromPrimitive;

use super::loader::Loader;
use crate::judge::{Place, get};
use crate::problem::{Expected, ProblemKind};
use crate::python::{PyValue, is_true, parse_int, python_str};
use crate::syntax::{Member, Node, Value};

pub(super) fn load(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.known("data_efficiency") else { return };
    let place = Place::top("data_efficiency");
    let Some(members) = loader.judge.section(node, &place) else { return };
    if let Some(node) = get(members, "data_sampling") {
        sampling(loader, node, &place.child("data_sampling"));
    }
    if let Some(node) = get(members, "data_routing") {
        routing(loader, node, &place.child("data_routing"));
    }
}

fn sampling(loader: &mut Loader<'_, '_>, node: &Node, place: &Place<'_>) {
    let Some(members) = loader.judge.section(node, place) else { return };
    let mut output = PyValue::Dict(Vec::new());
    if loader.judge.schema.behaviours.keeps_unknown_data_sampling_keys {
        output = node.into();
    }
    for key in ["enabled", "num_epochs", "num_workers", "pin_memory"] {
        let path = format!("data_efficiency.data_sampling.{key}");
        if loader.knows(&path) {
            let value = get(members, key).map_or_else(|| loader.raw_default(&path), PyValue::from);
            output.set(key, value);
        }
    }
    let curriculum = curriculum(loader, get(members, "curriculum_learning"), place);
    output.set("curriculum_learning", curriculum);
    if loader.knows("data_efficiency.data_sampling.dynamic_batching") {
        let batching = dynamic_batching(loader, get(members, "dynamic_batching"), place);
        output.set("dynamic_batching", batching);
    }
    loader.set("data_efficiency_config.data_sampling", output);
}

fn switched_off() -> PyValue {
    PyValue::Dict(vec![("enabled".to_owned(), PyValue::Bool(false))])
}

fn curriculum(loader: &mut Loader<'_, '_>, node: Option<&Node>, place: &Place<'_>) -> PyValue {
    let Some(node) = node else { return switched_off() };
    let place = place.child("curriculum_learning");
    let Some(members) = loader.judge.section(node, &place) else { return PyValue::None };
    match get(members, "enabled") {
        None => switched_off(),
        Some(enabled) if !is_true(&enabled.value) => {
            PyValue::Dict(vec![("enabled".to_owned(), enabled.into())])
        }
        Some(_) => {
            if get(members, "curriculum_metrics").is_none() {
                missing(loader, "curriculum_metrics", node, &place);
            }
            node.into()
        }
    }
}

fn missing(loader: &mut Loader<'_, '_>, key: &str, node: &Node, place: &Place<'_>) {
    loader.judge.report(ProblemKind::MissingKey { key: key.to_owned() }, place, node.span);
}

fn dynamic_batching(
    loader: &mut Loader<'_, '_>,
    node: Option<&Node>,
    place: &Place<'_>,
) -> PyValue {
    let place = place.child("dynamic_batching");
    let empty: &[Member] = &[];
    let members = match node {
        Some(node) => match loader.judge.section(node, &place) {
            Some(members) => members,
            None => return PyValue::None,
        },
        None => empty,
    };
    let mut output = node.map_or(PyValue::Dict(Vec::new()), PyValue::from);
    let enabled = get(members, "enabled").is_some_and(|node| is_true(&node.value));
    output.set("enabled", PyValue::Bool(enabled));
    let verbose = get(members, "verbose").is_some_and(|node| is_true(&node.value));
    output.set("verbose", PyValue::Bool(verbose));
    for (key, default) in
        [("lr_scaling_method", "linear"), ("sequence_picking_order", "dataloader")]
    {
        let text = get(members, key).map_or(default.to_owned(), |node| python_str(&node.into()));
        output.set(key, PyValue::Str(text));
    }
    for (key, default) in [("min_batch_size", PyValue::from(1)), ("max_batch_size", PyValue::None)]
    {
        let value = match get(members, key) {
            None => default,
            Some(node) => as_int(loader, node, &place.child(key)),
        };
        output.set(key, value);
    }
    if enabled {
        match (get(members, "max_tokens"), node) {
            (Some(tokens), _) => {
                output.set("max_tokens", as_int(loader, tokens, &place.child("max_tokens")))
            }
            (None, Some(node)) => missing(loader, "max_tokens", node, &place),
            (None, None) => {}
        }
    }
    output
}

/// `int(value)`; notes a problem where Python raises.
fn as_int(loader: &mut Loader<'_, '_>, node: &Node, place: &Place<'_>) -> PyValue {
    let int = match &node.value {
        Value::Bool(value) => Some(BigInt::from(*value)),
        Value::Int(value) => Some(value.clone()),
        Value::Float(value) => BigInt::from_f64(value.trunc()),
        Value::Str(text) => parse_int(text),
        _ => None,
    };
    match int {
        Some(value) => PyValue::Int(value),
        None => {
            loader.judge.wrong(Expected::Int, node, place);
            PyValue::None
        }
    }
}

fn routing(loader: &mut Loader<'_, '_>, node: &Node, place: &Place<'_>) {
    let Some(members) = loader.judge.section(node, place) else { return };
    let Some(node) = get(members, "random_ltd") else { return };
    let Some(members) = loader.judge.section(node, &place.child("random_ltd")) else { return };
    if !get(members, "enabled").is_some_and(|node| is_true(&node.value)) {
        // Left at its defaults, whatever else is written.
        loader.set("data_efficiency_config.data_routing.random_ltd.enabled", PyValue::Bool(false));
        return;
    }
    let mut output = PyValue::Dict(vec![("layer_token_lr_schedule".to_owned(), switched_off())]);
    members.iter().for_each(|member| output.set(&member.key, (&member.value).into()));
    loader.set("data_efficiency_config.data_routing.random_ltd", output);
}
