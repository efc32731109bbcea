//! One number format, and its loss scale if it is fp16.

use super::Request;
use crate::precision::{DynamicLossScale, LossScale, Precision};
use crate::refusal::Refusal;

pub(super) fn resolve(request: &Request, refusals: &mut Vec<Refusal>) -> Option<Precision> {
    let mut names: Vec<&'static str> = Vec::new();
    for precision in &request.precisions {
        if !names.contains(&precision.name()) {
            names.push(precision.name());
        }
    }
    if names.len() > 1 {
        refusals.push(Refusal::SeveralPrecisions(names));
        return None;
    }
    let before = refusals.len();
    let scale = loss_scale(request, refusals);
    let precision = match request.precisions.first().copied().unwrap_or(Precision::Bf16) {
        Precision::Fp16(given) => Precision::Fp16(scale.unwrap_or(given)),
        other => {
            if scale.is_some() {
                refusals.push(Refusal::LossScaleWithoutFp16);
            }
            other
        }
    };
    (refusals.len() == before).then_some(precision)
}

/// What was said about the scale.
fn loss_scale(request: &Request, refusals: &mut Vec<Refusal>) -> Option<LossScale> {
    let dynamic = request.loss_scale.dynamic;
    let is_dynamic = dynamic != DynamicLossScale::default();
    match request.loss_scale.fixed {
        Some(_) if is_dynamic => {
            refusals.push(Refusal::StaticAndDynamicLossScale);
            None
        }
        // The engine takes zero to mean that the scale is searched.
        Some(scale) if scale.is_nan() || scale.is_infinite() || scale <= 0.0 => {
            refusals.push(Refusal::LossScaleNotPositive(scale));
            None
        }
        Some(scale) => Some(LossScale::Static(scale)),
        None => is_dynamic.then_some(LossScale::Dynamic(dynamic)),
    }
}
