//! `compression_training` and `quantize_training`, which engines up to 0.18 read.

use std::cmp::Ordering;

use super::loader::Loader;
use crate::judge::{Place, get};
use crate::problem::{Bound, Conflict, Expected, ProblemKind};
use crate::python::{Number, PyValue, is_true};
use crate::syntax::{Member, Node};

const SECTION: &str = "compression_training";

/// A compression technique: its attribute, and what each of its groups must name.
const TECHNIQUES: [(&str, &str, &[&str]); 6] = [
    (
        "weight_quantization",
        "compression_config.weight_quantization",
        &["start_bits", "target_bits"],
    ),
    ("activation_quantization", "compression_config.activation_quantization", &["bits"]),
    ("sparse_pruning", "compression_config.sparse_pruning", &["dense_ratio"]),
    ("row_pruning", "compression_config.row_pruning", &["dense_ratio"]),
    ("head_pruning", "compression_config.head_pruning", &["dense_ratio"]),
    ("channel_pruning", "compression_config.channel_pruning", &["dense_ratio"]),
];

/// Keys that only one pruning method reads.
const SNIP_MOMENTUM_KEYS: [&str; 5] = [
    "block_pattern",
    "dense_ratio",
    "schedule_offset_stride",
    "excluded_modules",
    "schedule_offset_end",
];

pub(super) fn load(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.known(SECTION) else { return };
    let place = Place::top(SECTION);
    let Some(members) = loader.judge.section(node, &place) else { return };
    for (technique, attribute, needed) in TECHNIQUES {
        let Some(node) = get(members, technique) else { continue };
        let place = place.child(technique);
        let Some(members) = loader.judge.section(node, &place) else { continue };
        let shared =
            shared_parameters(loader, technique, get(members, "shared_parameters"), &place);
        let groups = match get(members, "different_groups") {
            Some(groups) => different_groups(
                loader,
                technique,
                needed,
                groups,
                &place.child("different_groups"),
            ),
            None => {
                let kind = ProblemKind::MissingKey { key: "different_groups".to_owned() };
                loader.judge.report(kind, &place, node.span);
                continue;
            }
        };
        let output = [("shared_parameters", shared), ("different_groups", groups)];
        let dict = output.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        loader.set(attribute, PyValue::Dict(dict));
    }
    layer_reduction(loader, members, &place);
    quantize_training(loader, members, &place);
}

fn shared_parameters(
    loader: &mut Loader<'_, '_>,
    technique: &str,
    node: Option<&Node>,
    place: &Place<'_>,
) -> PyValue {
    let section = format!("{SECTION}.{technique}.shared_parameters");
    let default = || {
        let config = loader.judge.schema.resolved_defaults.get("compression_config");
        let shared = config.and_then(|config| config.get(technique)?.get("shared_parameters"));
        shared.map_or(PyValue::None, PyValue::from)
    };
    let Some(node) = node else {
        let mut output = default();
        // The engine forgets this one where the whole dictionary is missing.
        output.remove("quantize_weight_in_forward");
        return output;
    };
    let mut output = default();
    let place = place.child("shared_parameters");
    let Some(members) = loader.judge.section(node, &place) else { return PyValue::None };
    if let PyValue::Dict(items) = &mut output {
        for (key, value) in items
            .iter_mut()
            .filter(|(key, _)| key != "fp16_mixed_quantize" && key != "quantize_change_ratio")
        {
            if let Some(node) = get(members, key) {
                *value = node.into();
            }
        }
    }
    for key in ["quantization_type", "rounding", "range_calibration", "method"] {
        let path = format!("{section}.{key}");
        if loader.knows(&path)
            && let Some(node) = get(members, key)
        {
            loader.choice(&path, node, &place.child(key), str::to_owned);
        }
    }
    match technique {
        "weight_quantization" => mixed_quantize(loader, members, &mut output, &place),
        "sparse_pruning" if output.get("method") == Some(&PyValue::str("snip_momentum")) => {
            snip_momentum(loader, members, &mut output, &place);
        }
        "head_pruning" if output.get("enabled").is_some_and(PyValue::is_true) => {
            match get(members, "num_heads") {
                Some(heads) => output.set("num_heads", heads.into()),
                None => {
                    let kind = ProblemKind::MissingKey { key: "num_heads".to_owned() };
                    loader.judge.report(kind, &place, node.span);
                }
            }
        }
        _ => {}
    }
    output
}

fn mixed_quantize(
    loader: &mut Loader<'_, '_>,
    members: &[Member],
    output: &mut PyValue,
    place: &Place<'_>,
) {
    let Some(node) = get(members, "fp16_mixed_quantize") else { return };
    let Some(members) = loader.judge.section(node, &place.child("fp16_mixed_quantize")) else {
        return;
    };
    if let Some(enabled) = get(members, "enabled") {
        output.set("fp16_mixed_quantize", enabled.into());
    }
    if let Some(ratio) = get(members, "quantize_change_ratio") {
        output.set("quantize_change_ratio", ratio.into());
    }
}

fn snip_momentum(
    loader: &mut Loader<'_, '_>,
    members: &[Member],
    output: &mut PyValue,
    place: &Place<'_>,
) {
    for key in SNIP_MOMENTUM_KEYS {
        let path = format!("{SECTION}.sparse_pruning.shared_parameters.{key}");
        let value = match get(members, key) {
            Some(node) => node.into(),
            None if key == "schedule_offset_end" => {
                output.get("schedule_offset").cloned().unwrap_or(PyValue::None)
            }
            None => loader.raw_default(&path),
        };
        output.set(key, value);
    }
    if let Some(node) = get(members, "dense_ratio") {
        let place = place.child("dense_ratio");
        match PyValue::from(node).number() {
            None => loader.judge.wrong(Expected::Float, node, &place),
            Some(ratio) => {
                let below = ratio.compare(&Number::from_usize(1)) == Some(Ordering::Less);
                if !ratio.is_positive() || !below {
                    let bound = if below { Bound::Above(0.0) } else { Bound::Below(1.0) };
                    loader.judge.report(ProblemKind::OutOfBounds(bound), &place, node.span);
                }
            }
        }
    }
    let order = match (output.get("schedule_offset"), output.get("schedule_offset_end")) {
        (Some(start), Some(end)) => at_most(start, end),
        _ => true,
    };
    if !order {
        let written = get(members, "schedule_offset_end").or(get(members, "schedule_offset"));
        let span = written.map_or(loader.root_span, |node| node.span);
        let kind = ProblemKind::Conflict(Conflict::ScheduleEndsBeforeStart);
        loader.judge.report(kind, &place.child("schedule_offset_end"), span);
    }
}

/// `left <= right`, false also where Python cannot compare.
fn at_most(left: &PyValue, right: &PyValue) -> bool {
    match (left, right) {
        (PyValue::Str(left), PyValue::Str(right)) => left <= right,
        (PyValue::List(left), PyValue::List(right)) => {
            for (a, b) in left.iter().zip(right) {
                if !equal(a, b) {
                    return at_most(a, b);
                }
            }
            left.len() <= right.len()
        }
        _ => match (left.number(), right.number()) {
            (Some(left), Some(right)) => {
                matches!(left.compare(&right), Some(Ordering::Less | Ordering::Equal))
            }
            _ => false,
        },
    }
}

fn equal(left: &PyValue, right: &PyValue) -> bool {
    match (left.number(), right.number()) {
        (Some(left), Some(right)) => left.equals(&right),
        _ => left == right,
    }
}

fn different_groups(
    loader: &mut Loader<'_, '_>,
    technique: &str,
    needed: &[&str],
    node: &Node,
    place: &Place<'_>,
) -> PyValue {
    let Some(groups) = loader.judge.section(node, place) else { return PyValue::None };
    let mut output = PyValue::Dict(Vec::with_capacity(groups.len()));
    for Member { key, value: node, .. } in groups {
        let place = place.child(key);
        let Some(group) = loader.judge.section(node, &place) else { continue };
        let Some(params) = get(group, "params") else {
            let kind = ProblemKind::MissingKey { key: "params".to_owned() };
            loader.judge.report(kind, &place, node.span);
            continue;
        };
        let params_place = place.child("params");
        let Some(members) = loader.judge.section(params, &params_place) else { continue };
        for key in needed.iter().filter(|key| get(members, key).is_none()) {
            let kind = ProblemKind::MissingKey { key: (*key).to_owned() };
            loader.judge.report(kind, &params_place, params.span);
        }
        let mut parameters = PyValue::from(params);
        if technique == "weight_quantization" && get(members, "quantization_period").is_none() {
            parameters.set("quantization_period", 1.into());
        }
        let read = |key: &str, default: PyValue| get(group, key).map_or(default, PyValue::from);
        let entry = [
            ("params", parameters),
            ("modules", read("modules", PyValue::str("*"))),
            ("related_modules", read("related_modules", PyValue::None)),
        ];
        let dict = entry.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        output.set(key, PyValue::Dict(dict));
    }
    output
}

fn layer_reduction(loader: &mut Loader<'_, '_>, members: &[Member], place: &Place<'_>) {
    let Some(node) = get(members, "layer_reduction") else { return };
    let Some(members) = loader.judge.section(node, &place.child("layer_reduction")) else { return };
    let on = get(members, "enabled").is_some_and(|node| is_true(&node.value));
    let off = PyValue::Dict(vec![("enabled".to_owned(), PyValue::Bool(false))]);
    loader.set("compression_config.layer_reduction", if on { node.into() } else { off });
}

/// Shared parameters one level too high. If they are enabled, the engine goes on to a section whose
/// name its own code has lost, and fails whatever the config says.
fn quantize_training(loader: &mut Loader<'_, '_>, compression: &[Member], place: &Place<'_>) {
    let Some(shared) = get(compression, "shared_parameters") else { return };
    let place = place.child("shared_parameters");
    let Some(members) = loader.judge.section(shared, &place) else { return };
    for key in ["quantization_type", "rounding"] {
        if let Some(node) = get(members, key) {
            let path = format!("{SECTION}.shared_parameters.{key}");
            loader.choice(&path, node, &place.child(key), str::to_owned);
        }
    }
    if let Some(node) = get(members, "fp16_mixed_quantize") {
        loader.judge.section(node, &place.child("fp16_mixed_quantize"));
    }
    if let Some(enabled) = get(members, "enabled").filter(|node| is_true(&node.value)) {
        let kind = ProblemKind::Conflict(Conflict::EigenvalueDisabled);
        loader.judge.report(kind, &place.child("enabled"), enabled.span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_different_kinds_do_not_compare() {
        assert!(at_most(&1.into(), &PyValue::Float(1.0)));
        assert!(at_most(&PyValue::str("a"), &PyValue::str("b")));
        assert!(!at_most(&PyValue::str("1"), &2.into()));
        assert!(!at_most(&PyValue::None, &PyValue::None));
    }
}
