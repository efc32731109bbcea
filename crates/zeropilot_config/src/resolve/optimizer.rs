//! `optimizer` and `scheduler`: a type, and parameters that only the optimizer itself judges.

use super::loader::Loader;
use crate::judge::{Place, get};
use crate::problem::Expected;
use crate::python::{PyValue, is_true};
use crate::syntax::{Node, Value};

pub(super) fn load(loader: &mut Loader<'_, '_>) {
    optimizer(loader);
    let Some(node) = loader.get("scheduler") else { return };
    let Some(members) = loader.judge.section(node, &Place::top("scheduler")) else { return };
    let name = get(members, "type").filter(|node| !matches!(node.value, Value::Null));
    let params = name.and_then(|_| get(members, "params"));
    loader.set("scheduler_params", params.map_or(PyValue::None, PyValue::from));
}

fn optimizer(loader: &mut Loader<'_, '_>) {
    let Some(node) = loader.get("optimizer") else { return };
    let place = Place::top("optimizer");
    let Some(members) = loader.judge.section(node, &place) else { return };
    // Without a type the parameters are not looked at.
    loader.set("optimizer_params", PyValue::None);
    let Some(name) = get(members, "type") else { return };
    match &name.value {
        Value::Null => return,
        Value::Str(text) => {
            let lower = text.to_lowercase();
            let known = loader.judge.schema.optimizers.contains(&lower);
            loader.set("optimizer_name", PyValue::Str(if known { lower } else { text.clone() }));
        }
        _ => {
            loader.judge.wrong(Expected::Str, name, &place.child("type"));
            return;
        }
    }
    if let Some(params) = get(members, "params") {
        parameters(loader, params, &place.child("params"));
    }
}

fn parameters(loader: &mut Loader<'_, '_>, node: &Node, place: &Place<'_>) {
    let mut params = PyValue::from(node);
    if params == PyValue::None {
        return;
    }
    let Some(members) = loader.judge.section(node, place) else { return };
    if let Some(norm) = get(members, "max_grad_norm") {
        match PyValue::from(norm).number() {
            None => loader.judge.wrong(Expected::Float, norm, &place.child("max_grad_norm")),
            Some(number) if number.is_positive() => {
                if loader.judge.schema.behaviours.zeroes_max_grad_norm_in_fp32
                    && !fp16_is_on(loader)
                {
                    params.set("max_grad_norm", PyValue::Float(0.0));
                }
            }
            Some(_) => {}
        }
    }
    loader.set("optimizer_params", params);
}

fn fp16_is_on(loader: &Loader<'_, '_>) -> bool {
    let model = loader.special.iter().find(|(name, _)| *name == "float16_config");
    if let Some((_, section)) = model {
        return section.get("enabled").is_some_and(PyValue::is_true);
    }
    match loader.get("fp16").map(|node| &node.value) {
        Some(Value::Object(members)) => {
            get(members, "enabled").is_some_and(|node| is_true(&node.value))
        }
        _ => false,
    }
}
