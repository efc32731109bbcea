//! Predictions and measurements side by side.

use zeropilot_cluster::Capacity;
use zeropilot_units::Bytes;

use crate::interval::{Bounds, Calibrated, calibrate};
use crate::job::Job;
use crate::measured::{Measured, Metric, measured};
use crate::question::{Obstacle, Question};
use crate::row::{Outcome, Row};

/// What a predictor says about the fullest GPU of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicted {
    /// What tensors hold at most.
    pub allocated: Bytes,
    /// What PyTorch takes from the driver at most.
    pub reserved: Bytes,
    /// What the driver shows.
    pub device: Bytes,
}

impl Predicted {
    /// What compares with a reading.
    pub fn of(&self, metric: Metric) -> Bytes {
        match metric {
            Metric::Allocated => self.allocated,
            Metric::Reserved => self.reserved,
            Metric::Unstated => self.device,
        }
    }
}

/// A row with what was said about it.
#[derive(Debug, Clone)]
pub struct Judged<'r> {
    /// The row.
    pub row: &'r Row,
    /// The question, or why there is none.
    pub question: Result<Question, Obstacle>,
    /// The answer; the text says why there is none.
    pub predicted: Option<Result<Predicted, String>>,
    /// What was measured.
    pub measured: Option<Measured>,
    /// Bounds of measured over predicted memory, from the rows of all other sources.
    pub bounds: Option<Bounds>,
}

impl Judged<'_> {
    /// Prediction over measurement, less one.
    pub fn error(&self) -> Option<f64> {
        let (predicted, measured) = (self.answer()?, self.measured?);
        Some(predicted.of(measured.metric).0 as f64 / measured.bytes.0 as f64 - 1.0)
    }

    /// Whether the measurement lies within the bounds of the prediction.
    pub fn is_within_bounds(&self) -> Option<bool> {
        Some(self.bounds?.contain((1.0 + self.error()?).recip()))
    }

    /// What is trained for, if it is more than the next token of one model.
    pub fn job(&self) -> Option<&Job> {
        self.question.as_ref().ok()?.job.as_ref()
    }

    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&Predicted> {
        self.predicted.as_ref().and_then(|answer| answer.as_ref().ok())
    }

    /// Whether the run was predicted to fit its GPUs, if their memory is known.
    pub fn predicted_to_fit(&self) -> Option<bool> {
        let gpus = self.question.as_ref().ok()?.gpus?;
        let capacity = Capacity::of(gpus.device)?.bytes;
        Some(self.answer()?.device <= capacity.expected())
    }
}

/// Every row that says something about memory, judged.
#[derive(Debug)]
pub struct Judgement<'r> {
    /// The bounds that follow from the rows.
    pub groups: Vec<Calibrated>,
    /// The rows, in their order.
    pub rows: Vec<Judged<'r>>,
}

/// Puts every row that measured memory, or ran out of it, to a predictor.
pub fn judge<'r>(
    rows: &'r [Row],
    predict: &dyn Fn(&Question) -> Result<Predicted, String>,
) -> Judgement<'r> {
    let is_relevant = |row: &&Row| {
        let is_told = row.task.is_some() || row.images.is_some() || row.dataset.is_some();
        row.complete_memory || row.outcome == Outcome::Oom || is_told
    };
    let relevant = rows.iter().filter(is_relevant);
    let judged = relevant.map(|row| {
        let question = Question::of(row);
        let predicted = question.as_ref().ok().map(predict);
        let measured = if row.complete_memory { measured(row) } else { None };
        Judged { row, question, predicted, measured, bounds: None }
    });
    let mut rows: Vec<Judged<'_>> = judged.collect();
    Judgement { groups: calibrate(&mut rows, |judged| judged.job().is_none()), rows }
}
