//! Every step of a run for whoever plots it: `steps.jsonl`.

use serde::{Deserialize, Serialize};

/// An optimizer step as the log has it. A number that the log does not print is absent; one that is NaN or infinite is `null`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TrainedStep {
    /// Seconds since 1970 when it was printed.
    pub at: f64,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The optimizer step.
    pub step: u64,
    /// The loss.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "crate::number::or_nan"
    )]
    pub loss: Option<f64>,
    /// The norm of the gradients.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "crate::number::or_nan"
    )]
    pub grad_norm: Option<f64>,
    /// The learning rate.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "crate::number::or_nan"
    )]
    pub learning_rate: Option<f64>,
    /// Seconds since the step printed before, divided by the steps between.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seconds: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_is_null_and_one_that_is_not_printed_is_absent() {
        let step =
            TrainedStep { attempt: 1, step: 3, loss: Some(f64::NAN), ..TrainedStep::default() };
        let text = serde_json::to_string(&step).expect("JSON");
        assert_eq!(text, r#"{"at":0.0,"attempt":1,"step":3,"loss":null}"#);
        let again: TrainedStep = serde_json::from_str(&text).expect("a step");
        assert!(again.loss.is_some_and(f64::is_nan) && again.grad_norm.is_none(), "{again:?}");
    }
}
