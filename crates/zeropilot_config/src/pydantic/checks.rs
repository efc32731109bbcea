//! The models' own checks, by the name the engine gives them.
//!
//! A schema lists which of them a version has. A name that is not known here is a check this
//! program does not make; the parity tests are there to notice.

use crate::judge::{Judge, Place};
use crate::problem::{Bound, Conflict, Expected, ProblemKind};
use crate::python::{PyValue, parse_float, parse_int};
use crate::schema::{Field, Model};
use crate::syntax::{Member, Node, Span, Value};

/// A model that takes `null` for an empty section.
pub(super) fn takes_null(model: &Model) -> bool {
    model.has_validator("_coerce_container_types")
}

/// Checks of one value before it is converted; says whether to go on.
pub(super) fn before(
    judge: &mut Judge<'_>,
    model: &Model,
    field: &Field,
    node: &Node,
    place: &Place<'_>,
) -> bool {
    match field.name.as_str() {
        "loss_scale" if model.has_validator("_validate_loss_scale") => {
            loss_scale(judge, node, place)
        }
        "loss_scale_window" | "min_loss_scale"
            if model.has_validator("_reject_non_integer_scale_params") =>
        {
            whole_number(judge, node, place)
        }
        _ => true,
    }
}

fn loss_scale(judge: &mut Judge<'_>, node: &Node, place: &Place<'_>) -> bool {
    let number = match &node.value {
        Value::Int(_) | Value::Float(_) => super::pydantic1::float(&node.value),
        Value::Str(text) => parse_float(text),
        _ => None,
    };
    match number.filter(|number| number.is_finite()) {
        None => {
            judge.wrong(Expected::Float, node, place);
            false
        }
        Some(number) if number < 0.0 => {
            judge.report(ProblemKind::OutOfBounds(Bound::AtLeast(0.0)), place, node.span);
            false
        }
        Some(_) => true,
    }
}

fn whole_number(judge: &mut Judge<'_>, node: &Node, place: &Place<'_>) -> bool {
    let fine = match &node.value {
        Value::Int(_) => true,
        Value::Float(value) => value.is_finite(),
        Value::Str(text) => parse_int(text).is_some(),
        _ => false,
    };
    if !fine {
        judge.wrong(Expected::Int, node, place);
    }
    fine
}

/// A value that a check rewrites before conversion.
pub(super) fn replaced(model: &Model, field: &Field, node: &Node) -> Option<Node> {
    match &node.value {
        // A single name stands for a list of one.
        Value::Str(_)
            if model.has_validator("_coerce_container_types")
                && matches!(field.name.as_str(), "classes" | "names" | "name_suffixes") =>
        {
            Some(Node { span: node.span, value: Value::Array(vec![node.clone()]) })
        }
        Value::Str(text)
            if field.name == "loss_scale" && model.has_validator("_validate_loss_scale") =>
        {
            parse_float(text).map(|number| Node { span: node.span, value: Value::Float(number) })
        }
        _ => None,
    }
}

/// What the checks compute, without judging.
pub(super) fn derive(model: &Model, section: &mut PyValue) {
    if model.has_validator("overlap_comm_valid")
        && section.get("overlap_comm") == Some(&PyValue::None)
    {
        section.set("overlap_comm", PyValue::Bool(stage(section) == Some(3)));
    }
    if model.has_validator("set_pipeline") {
        let on = |key: &str| section.get(key).is_some_and(PyValue::is_true);
        let pipeline = on("pipeline_read") || on("pipeline_write") || on("pipeline");
        section.set("pipeline", PyValue::Bool(pipeline));
    }
    if model.has_validator("_validate_entries") {
        for key in ["classes", "names", "name_suffixes"] {
            if let Some(PyValue::List(items)) = section.get(key) {
                let mut unique = Vec::new();
                for item in items {
                    if !unique.contains(item) {
                        unique.push(item.clone());
                    }
                }
                section.set(key, PyValue::List(unique));
            }
        }
    }
}

fn stage(section: &PyValue) -> Option<i64> {
    match section.get("stage") {
        Some(PyValue::Int(stage)) => i64::try_from(stage).ok(),
        _ => None,
    }
}

/// Checks of the converted section.
pub(super) fn after(
    judge: &mut Judge<'_>,
    model: &Model,
    section: &mut PyValue,
    given: &[(&Field, &Member)],
    node: &Node,
    place: &Place<'_>,
) {
    derive(model, section);
    let span_of = |name: &str| {
        given
            .iter()
            .find(|(field, _)| field.name == name)
            .map_or(node.span, |(_, member)| member.value.span)
    };
    if model.has_validator("compute_grad_norm_valid")
        && section.get("compute_grad_norm") == Some(&PyValue::Bool(false))
        && !matches!(stage(section), Some(1 | 2))
    {
        let kind = ProblemKind::Conflict(Conflict::GradNormOffNeedsStage1Or2);
        judge.report(kind, &place.child("compute_grad_norm"), span_of("compute_grad_norm"));
    }
    // In 0.14 the check looks the section up in the wrong way and never fires.
    if model.has_validator("offload_ratio_check")
        && judge.schema.behaviours.partial_offload_needs_stage_3
        && stage(section) != Some(3)
    {
        let ratio = section.get("offload_optimizer").and_then(|offload| offload.get("ratio"));
        if matches!(ratio, Some(PyValue::Float(ratio)) if *ratio < 1.0) {
            let kind = ProblemKind::Conflict(Conflict::PartialOffloadNeedsStage3);
            let place = place.child("offload_optimizer");
            judge.report(kind, &place.child("ratio"), span_of("offload_optimizer"));
        }
    }
    if model.has_validator("_validate_dynamic_loss_scale_params") {
        dynamic_loss_scale(judge, section, span_of, place);
    }
    if model.has_validator("validate_fields") {
        zenflow(judge, section, span_of, place);
    }
}

fn dynamic_loss_scale(
    judge: &mut Judge<'_>,
    section: &PyValue,
    span_of: impl Fn(&str) -> Span,
    place: &Place<'_>,
) {
    let dynamic = section.get("loss_scale") == Some(&PyValue::Float(0.0));
    if !dynamic || section.get("enabled") != Some(&PyValue::Bool(true)) {
        return;
    }
    for key in ["loss_scale_window", "min_loss_scale"] {
        let positive =
            section.get(key).and_then(PyValue::number).is_some_and(|number| number.is_positive());
        if !positive {
            let kind = ProblemKind::Conflict(Conflict::DynamicLossScaleNeedsPositive);
            judge.report(kind, &place.child(key), span_of(key));
        }
    }
}

fn zenflow(
    judge: &mut Judge<'_>,
    section: &PyValue,
    span_of: impl Fn(&str) -> Span,
    place: &Place<'_>,
) {
    let mut wrong = |key: &str, allowed: &[&str], found| {
        let expected = Expected::OneOf(allowed.iter().map(|&word| word.to_owned()).collect());
        judge.report(ProblemKind::WrongValue { expected, found }, &place.child(key), span_of(key));
    };
    match section.get("select_strategy") {
        Some(PyValue::Str(word)) if !matches!(word.as_str(), "auto" | "step" | "epoch") => {
            wrong("select_strategy", &["auto", "step", "epoch"], crate::python::Kind::Str);
        }
        _ => {}
    }
    for key in ["select_interval", "update_interval"] {
        if matches!(section.get(key), Some(PyValue::Str(word)) if word != "auto") {
            wrong(key, &["auto"], crate::python::Kind::Str);
        }
    }
    if judge.schema.behaviours.zenflow_update_interval_at_least_one
        && let Some(PyValue::Int(interval)) = section.get("update_interval")
        && *interval < 1.into()
    {
        judge.report(
            ProblemKind::OutOfBounds(Bound::AtLeast(1.0)),
            &place.child("update_interval"),
            span_of("update_interval"),
        );
    }
}
