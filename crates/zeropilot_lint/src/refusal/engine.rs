//! Refusals of the engine.

use zeropilot_config::problem::{Conflict, Expected, Problem, ProblemKind};
use zeropilot_config::python::{Kind, is_auto};

use crate::diagnostic::Diagnostic;
use crate::rules::{auto, batch, gradients, keys, offload, optimizer, precision, versions};
use crate::subject::Subject;

/// Words a refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    match &problem.kind {
        ProblemKind::RootNotAnObject(found) => {
            keys::root_not_an_object::explain(*found, problem.span)
        }
        ProblemKind::DuplicateKey { first } => {
            keys::duplicate_key::explain_refusal(&problem.path, problem.span, *first)
        }
        ProblemKind::WrongValue { expected, found } => {
            wrong_value(problem, expected, *found, subject)
        }
        ProblemKind::OutOfBounds(bound) => keys::out_of_bounds::explain(problem, *bound, subject),
        ProblemKind::UnknownKey { nearest } => unknown_key(problem, nearest.as_deref(), subject),
        ProblemKind::SpeltTwice { used } => keys::spelt_twice::explain(problem, used, subject),
        ProblemKind::DeprecatedTogether { new } => {
            keys::deprecated_together::explain(problem, new, subject)
        }
        ProblemKind::Removed { message } => {
            versions::removed_key::explain(problem, message, subject)
        }
        ProblemKind::MissingKey { key } => keys::missing_key::explain(problem, key),
        ProblemKind::AutoUnfilled => auto::top_level::explain(problem),
        ProblemKind::BatchUndetermined => batch::no_batch_size::explain(problem, subject),
        ProblemKind::BatchNotPositive(numbers) => {
            batch::micro_batch_zero::explain(problem, numbers, subject)
        }
        ProblemKind::BatchMismatch(numbers) => {
            batch::product_mismatch::explain(problem, numbers, subject)
        }
        ProblemKind::BatchArithmetic => batch::not_computable::explain(problem, subject),
        ProblemKind::BothPrecisions => precision::both_precisions::explain(problem, subject),
        ProblemKind::Conflict(conflict) => self::conflict(problem, *conflict, subject),
        ProblemKind::Elasticity(elasticity) => {
            batch::elastic_training::explain(problem, elasticity, subject)
        }
    }
}

fn wrong_value(
    problem: &Problem,
    expected: &Expected,
    found: Kind,
    subject: &Subject<'_>,
) -> Diagnostic {
    let key = problem.path.key();
    let is_auto_text = subject
        .node(problem.path.0.iter().map(String::as_str))
        .is_some_and(|node| is_auto(&node.value));
    match expected {
        _ if is_auto_text && problem.path.0.len() == 1 && *expected != Expected::Section => {
            auto::top_level::explain(problem)
        }
        _ if batch::is_batch_key(&problem.path) && found == Kind::Str => {
            batch::quoted_number::explain(problem, subject)
        }
        Expected::OneOf(_) if key == "device" => keys::offload_device::explain(problem, subject),
        Expected::OneOf(allowed) if key.ends_with("communication_data_type") => {
            precision::communication_type::explain(problem, allowed, subject)
        }
        Expected::Section => keys::not_a_section::explain(problem, found, subject),
        Expected::Int if found == Kind::Float && key == "min_loss_scale" => {
            keys::min_loss_scale::explain(problem, subject)
        }
        Expected::Int if found == Kind::Float => keys::fractional_number::explain(problem, subject),
        _ => keys::wrong_value::explain(problem, expected, found, subject),
    }
}

fn unknown_key(problem: &Problem, nearest: Option<&str>, subject: &Subject<'_>) -> Diagnostic {
    if keys::legacy_precision_key::applies(&problem.path) {
        keys::legacy_precision_key::explain(problem, subject)
    } else {
        keys::unknown_in_strict_section::explain(problem, nearest, subject)
    }
}

fn conflict(problem: &Problem, conflict: Conflict, subject: &Subject<'_>) -> Diagnostic {
    match conflict {
        Conflict::MasterWeightsNeedZero
        | Conflict::MasterWeightsNeedStage2
        | Conflict::OptimizerStatesNeedMasterWeights => {
            precision::master_weights::explain(problem, conflict)
        }
        Conflict::PartialOffloadNeedsStage3 => offload::partial_needs_stage_3::explain(problem),
        Conflict::GradNormOffNeedsStage1Or2 => gradients::norm_off::explain(problem),
        Conflict::SumNeedsNoStage3
        | Conflict::SumNeedsNoZenFlow
        | Conflict::SumNeedsNoDeepCompile => {
            optimizer::summed_gradients::explain(problem, conflict)
        }
        Conflict::GdsNeedsCuda => offload::gds_needs_cuda::explain(problem),
        Conflict::BreakdownNeedsBooleans => keys::breakdown_needs_booleans::explain(problem),
        Conflict::ScheduleEndsBeforeStart => keys::schedule_ends_early::explain(problem),
        Conflict::EigenvalueDisabled => versions::shared_parameters_too_high::explain(problem),
        Conflict::DynamicLossScaleNeedsPositive => {
            precision::dynamic_loss_scale::explain(problem, subject)
        }
    }
}
