//! Whether both sides did the same, and whether knowing less contradicts knowing more.

use serde_json::{Value as Json, json};
use zeropilot_config::front_end::{Filled, How, Operation, ProblemKind};
use zeropilot_config::syntax::{Node, Value};

use super::case::Case;
use super::tagged::tagged;
use super::tree::lookup;

/// Why the two sides differ, if they do.
pub(crate) fn disagreement(case: &Case, answer: &Json) -> Option<String> {
    let ours = case.filled();
    if answer["ok"] == json!(true) {
        if !ours.problems.is_empty() {
            return Some("only we refuse".to_owned());
        }
        if answer["config"] != tagged(&ours.root.value) {
            return Some("another tree".to_owned());
        }
        return broken_promise(&ours);
    }
    if ours.problems.is_empty() {
        return Some("only the front end refuses".to_owned());
    }
    let recorded: Vec<&str> =
        answer["mismatches"].as_array()?.iter().filter_map(Json::as_str).collect();
    let noted: Vec<&str> = ours
        .problems
        .iter()
        .filter(|problem| matches!(problem.kind, ProblemKind::Mismatch { .. }))
        .map(|problem| problem.path.as_str())
        .collect();
    if recorded != noted {
        return Some(format!("mismatches {recorded:?} there, {noted:?} here"));
    }
    let error = answer["error"].as_str()?;
    let same = ours.problems.iter().any(|problem| is_about(error, &problem.kind, &problem.path));
    (!same).then(|| "refused for another reason".to_owned())
}

/// With everything known nothing may stay pending, and what is listed must be in the tree.
fn broken_promise(ours: &Filled) -> Option<String> {
    if !ours.pending.is_empty() {
        return Some(format!("pending although all is known: {:?}", ours.pending));
    }
    let lost = ours.filled.iter().find(|filled| {
        filled.how == How::Placeholder
            && !lookup(&ours.root, &filled.path).is_some_and(|value| same(value, &filled.value))
    });
    lost.map(|filled| format!("listed but not in the tree: {filled:?}"))
}

fn same(left: &Value, right: &Value) -> bool {
    tagged(left) == tagged(right)
}

/// Whether an exception's text means the same as one of our problems.
fn is_about(error: &str, kind: &ProblemKind, path: &str) -> bool {
    let says = |text: &str| error.contains(text);
    match kind {
        ProblemKind::Mismatch { .. } => says("that mismatch TrainingArguments values"),
        // Only the first is named there, all are noted here.
        ProblemKind::LeftoverAuto => says(&format!("`{path}` not found in kwargs")),
        ProblemKind::NotAnObject { found } => {
            says(&format!("'{found}' object has no attribute 'get'")) || says("does not support item assignment")
                || says("list indices must be integers")
                // The property that reads the sections hides the real error behind its own name.
                || says("'AcceleratorState' object has no attribute 'mixed_precision'")
        }
        ProblemKind::Unusable { operation, .. } => match operation {
            Operation::LookUpInASet => says("unhashable type"),
            Operation::Multiply => {
                says("unsupported operand")
                    || says("can't multiply")
                    || says("too large")
                    || says("cannot fit 'int'")
            }
            Operation::CompareWithOne => says("'>' not supported"),
            Operation::DivideBy => error.starts_with("ZeroDivisionError"),
        },
        ProblemKind::NoZeroSection => says("Please specify the ZeRO optimization config"),
        ProblemKind::BothPrecisions { .. } => says("`--mixed_precision` arg cannot be set"),
        ProblemKind::NoHiddenSize { .. } => {
            says("hidden_size") || says("`model.config` entry") || says("max()")
        }
        ProblemKind::AutoFindBatchSizeWithStage3 => says("`auto_find_batch_size` isn't supported"),
        ProblemKind::ConflictingArguments { .. } => says("At most one of fp16 and bf16"),
        ProblemKind::UnusableArgument { .. } => says("warmup_steps must be"),
        ProblemKind::FieldsInAccelerateConfig { .. } => says("When using `deepspeed_config_file`"),
        ProblemKind::OptimizerInConfigAndCode => {
            says("You cannot specify an optimizer in the config file")
        }
        ProblemKind::DummyOptimizerWithoutSection => says("You cannot create a `DummyOptim`"),
        ProblemKind::SchedulerInConfigAndCode => {
            says("You cannot specify a scheduler in the config file")
        }
        ProblemKind::DummySchedulerWithoutSection => says("Either specify a scheduler"),
        ProblemKind::DummyOptimizerWithRealScheduler => {
            says("You can only specify `accelerate.utils.DummyScheduler`")
        }
        ProblemKind::NoDataloader => says("requires you to pass at least one of"),
        ProblemKind::DataloaderWithoutBatchSize => {
            says("`None` as batch size") || says("you must have a `batch_size`")
        }
        ProblemKind::UnevenSplit { .. } => says("needs to be a round multiple"),
    }
}

/// Whether all that is settled in the one tree stands in the other.
pub(crate) fn agrees(filled: &Filled, less: &Node, all: &Node, prefix: &str) -> bool {
    let (Value::Object(less), Value::Object(all)) = (&less.value, &all.value) else {
        return same(&less.value, &all.value);
    };
    less.iter().all(|member| {
        let path = format!("{prefix}{}", member.key);
        filled.is_pending(&path)
            || all.iter().find(|other| other.key == member.key).is_some_and(|other| {
                agrees(filled, &member.value, &other.value, &format!("{path}."))
            })
    })
}
