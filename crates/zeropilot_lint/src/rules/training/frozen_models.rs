//! Jobs with a model beside the trained one, which an engine of its own holds.

use super::tasks::{Task, tasks};
use crate::job_view::JobView;
use zeropilot_job::{JobTask, ReferenceName};

/// Launches on several ranks that run a frozen model beside the trained one.
pub(super) fn launches<'a>(view: &JobView<'a>) -> impl Iterator<Item = Task<'a>> {
    tasks(view).filter(has_frozen_model)
}

/// Whether a copy of the model or a teacher runs beside it.
fn has_frozen_model(task: &Task<'_>) -> bool {
    let Some(said) = &task.job.task else { return false };
    let is_whole = || task.adapts() == Some(false);
    let has_copy = match said.reference.as_ref().map(|said| said.value) {
        Some(ReferenceName::Copy) => !task.name.learns_from_completions() || is_whole(),
        Some(_) => false,
        None => {
            let keeps_it = task.is_off("precompute_ref_log_probs");
            task.name.compares() && !task.name.learns_from_completions() && keeps_it && is_whole()
        }
    };
    has_copy || has_teacher(task, said)
}

/// Whether a teacher is on the GPUs, under the config of the trained model.
fn has_teacher(task: &Task<'_>, said: &JobTask) -> bool {
    let Some(teacher) = said.teacher.as_ref().filter(|_| task.name.has_teacher()) else {
        return false;
    };
    // ms-swift switches the adapters off where both are one model.
    let is_itself = task.job.model.as_ref().is_some_and(|model| model.value == teacher.value)
        && task.adapts() != Some(false);
    !is_itself && task.said("teacher_deepspeed").is_none() && task.is_off("offload_teacher_model")
}

#[cfg(test)]
mod tests {
    use zeropilot_job::Outside;

    use crate::job::judge;
    use crate::settings::Settings;

    #[test]
    fn a_teacher_counts_where_it_is_a_model_of_its_own_on_the_gpus() {
        let is_found = |arguments: &str| {
            let command = format!(
                "NPROC_PER_NODE=2 swift rlhf --rlhf_type gkd --model m --deepspeed zero2 {arguments}"
            );
            let report = judge(&command, &Outside::default(), &Settings::default(), &|_| None);
            let mut found = report.files.iter().flat_map(|file| &file.report.diagnostics);
            found.any(|found| found.rule.code == "G16")
        };
        assert!(is_found("--train_type lora --teacher_model t"));
        assert!(is_found("--train_type full --teacher_model m"));
        for otherwise in [
            "--train_type lora --teacher_model m",
            "--train_type full --teacher_model t --teacher_deepspeed zero3",
            "--train_type full --teacher_model t --offload_teacher_model true",
            "--train_type full --teacher_model_server http://localhost:8000",
        ] {
            assert!(!is_found(otherwise), "{otherwise}");
        }
    }
}
