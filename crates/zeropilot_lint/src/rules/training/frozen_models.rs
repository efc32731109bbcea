//! Jobs with a model beside the trained one, which an engine of its own holds.

use crate::job_view::JobView;
use zeropilot_job::{
    Files, Launch, LaunchScript, MethodName, Place, ReferenceName, TaskName, TrainingJob,
};

/// Launches on several ranks that run a frozen model beside the trained one, with where they say so.
pub(super) fn launches<'a>(
    job: &JobView<'a>,
) -> impl Iterator<Item = (&'a Launch, Option<u8>, Place)> {
    let (script, files) = (job.job, job.files);
    job.launches().filter(|(launch, _)| launch.world != Some(1)).filter_map(
        move |(launch, report)| {
            let task = task(script, launch, files)?;
            let stage = report.and_then(|report| Some(report.resolved.as_ref()?.stage));
            Some((launch, stage, place(launch, task)))
        },
    )
}

/// The task, if a copy of the model or a teacher runs beside it.
fn task(script: &LaunchScript, launch: &Launch, files: Files<'_>) -> Option<TaskName> {
    let job = TrainingJob::of_launch("", "", script, launch, files);
    let adapts = job.method.as_ref().is_some_and(|said| said.value != MethodName::Full);
    let task = job.task?;
    let name = task.task.value;
    let has_copy = match task.reference.map(|said| said.value) {
        Some(reference) => reference == ReferenceName::Copy,
        None => name.compares() && !name.learns_from_completions() && !adapts,
    };
    let has_teacher = name.has_teacher() && task.teacher.is_some();
    (has_copy || has_teacher).then_some(name)
}

/// Where the trainer is made, or the launch where no script does.
fn place(launch: &Launch, task: TaskName) -> Place {
    let trainer = format!("{}trainer", task.name());
    let made = launch.script.as_ref().and_then(|script| {
        let is_it = |call: &&zeropilot_job::Call| call.name().eq_ignore_ascii_case(&trainer);
        script.calls.iter().find(is_it)
    });
    match (made, &launch.program) {
        (Some(call), Some(program)) => Place::in_file(program, call.span),
        _ => Place::here(launch.span()),
    }
}
