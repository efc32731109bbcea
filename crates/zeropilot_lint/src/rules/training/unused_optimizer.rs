//! The optimizer that a script makes for the model that it hands to DeepSpeed, and keeps to itself, while DeepSpeed
//! makes another one from the config.

use zeropilot_job::{Call, Value};

use crate::job_view::Training;

/// Where it is made, bound to a name.
pub(super) fn unused<'a>(training: &Training<'a>) -> Option<&'a Call> {
    let script = training.script;
    training.config?.values()?.keys.table().get("optimizer.type")?;
    let (made, _) = script.engine()?;
    let model = made.handed(1, "model")?;
    let parameters = format!("{model}.parameters");
    let optimizer = script.calls.iter().find(|call| {
        let of_model = matches!(call.argument(0, "params"), Some((Value::Call(callee), _)) if *callee == parameters);
        let name = call.name();
        let is_optimizer = name.contains("Adam") || name == "SGD" || call.object().ends_with("optim");
        of_model && is_optimizer && call.bound_to.is_some() && made.follows(call)
    })?;
    let name = optimizer.bound_to.as_deref()?;
    let hands = made.keyword("optimizer").is_some() || made.positional.len() > 1 || made.has_more;
    let is_bound_again = made.bound_names.iter().any(|bound| bound == name);
    let is_changed =
        script.assignments.iter().filter(|it| it.target == name).count() > 1 && !is_bound_again;
    (!hands && !is_changed).then_some(optimizer)
}
