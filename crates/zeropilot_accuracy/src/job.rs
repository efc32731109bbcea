//! What a row trains for, apart from the next token, and which other models run.

use zeropilot_model::catalogue::{self, Entry};
use zeropilot_step::task::{Distillation, Divergence, Objective, Ppo};

use crate::question::Obstacle;
use crate::recipe::Software;
use crate::row::{Outcome, Row};

/// A job that is more than the next token of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// What is minimised.
    pub objective: Objective,
    /// Whether the model is compared with what it was: a copy, or itself without its adapters.
    pub has_reference: bool,
    /// The model that is imitated.
    pub teacher: Option<&'static Entry>,
}

/// The job of a row; nothing for the next token of one model.
pub(crate) fn job(row: &Row, software: &Software) -> Result<Option<Job>, Obstacle> {
    let Some(name) = row.task.as_deref() else { return Ok(None) };
    let (objective, has_reference) = match name {
        "dpo" => (Objective::Dpo { scores: software.scores, last_logits: false }, true),
        "simpo" => (Objective::Cpo, false),
        "reward" => (Objective::Reward, false),
        "gkd" => (Objective::Distillation(distillation(software)), false),
        "ppo" => {
            let completion = software.completion.ok_or(Obstacle::Lengths)?;
            (Objective::Ppo(Ppo { completion, as_trl: true }), true)
        }
        _ => return Err(Obstacle::Task(name.to_uppercase())),
    };
    let find = |name: &String| catalogue::find(name).map_err(|_| Obstacle::Model);
    let teacher = row.teacher.as_ref().map(find).transpose()?;
    Ok(Some(Job { name: name.to_owned(), objective, has_reference, teacher }))
}

fn distillation(software: &Software) -> Distillation {
    Distillation {
        divergence: Divergence::JensenShannon,
        cross_entropy: software.adds_cross_entropy,
        teacher_first: false,
        picks_logits: software.is_swift_gkd,
    }
}

/// What keeps a row from being asked whatever else it says.
pub(crate) fn check(row: &Row) -> Result<(), Obstacle> {
    if row.outcome == Outcome::Fits && !row.complete_memory && row.peak_mem_gb.is_some() {
        return Err(Obstacle::CardFull);
    }
    match row.rollout.as_deref() {
        None | Some("vllm server") => {}
        Some("vllm colocated") => return Err(Obstacle::Colocated),
        Some("teacher") => return Err(Obstacle::TeacherGenerates),
        Some(_) => return Err(Obstacle::Lengths),
    }
    if row.images.as_deref() == Some("not published") {
        return Err(Obstacle::Images);
    }
    Ok(())
}
