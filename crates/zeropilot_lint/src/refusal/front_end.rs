//! Refusals of the HF Trainer and accelerate.

use zeropilot_config::front_end::{Operation, Problem, ProblemKind};

use crate::diagnostic::Diagnostic;
use crate::rules::{auto, batch, integrations, keys, optimizer, precision};
use crate::subject::Subject;

/// Words a refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    match &problem.kind {
        ProblemKind::Mismatch { written, expected, argument } => {
            auto::mismatch::explain(problem, written, expected, argument, subject)
        }
        ProblemKind::LeftoverAuto => auto::leftover::explain(problem, subject),
        ProblemKind::NotAnObject { .. } => keys::not_a_section::explain_front_end(problem, subject),
        ProblemKind::Unusable { operation, .. } => unusable(problem, *operation, subject),
        ProblemKind::NoZeroSection => integrations::no_zero_section::explain(problem, subject),
        ProblemKind::BothPrecisions { requested } => {
            precision::both_precisions::explain_front_end(problem, *requested, subject)
        }
        ProblemKind::NoHiddenSize { keys } => auto::hidden_size::explain(problem, keys),
        ProblemKind::AutoFindBatchSizeWithStage3 => {
            integrations::auto_find_batch_size::explain(problem, subject)
        }
        ProblemKind::ConflictingArguments { first, second } => {
            integrations::conflicting_arguments::explain(problem, first, second)
        }
        ProblemKind::UnusableArgument { argument } => {
            integrations::unusable_argument::explain(problem, argument)
        }
        ProblemKind::FieldsInAccelerateConfig { fields } => {
            integrations::accelerate_fields::explain(problem, fields)
        }
        ProblemKind::OptimizerInConfigAndCode | ProblemKind::SchedulerInConfigAndCode => {
            optimizer::in_config_and_code::explain(problem)
        }
        ProblemKind::DummyOptimizerWithoutSection
        | ProblemKind::DummySchedulerWithoutSection
        | ProblemKind::DummyOptimizerWithRealScheduler => {
            integrations::dummy_objects::explain(problem)
        }
        ProblemKind::NoDataloader | ProblemKind::DataloaderWithoutBatchSize => {
            batch::no_dataloader::explain(problem)
        }
        ProblemKind::UnevenSplit { batch_size, world_size } => {
            batch::uneven_split::explain(problem, *batch_size, *world_size)
        }
    }
}

fn unusable(problem: &Problem, operation: Operation, subject: &Subject<'_>) -> Diagnostic {
    match operation {
        Operation::Multiply => batch::quoted_number::explain_front_end(problem, subject),
        Operation::LookUpInASet => keys::offload_device::explain_front_end(problem, subject),
        Operation::CompareWithOne | Operation::DivideBy => {
            keys::wrong_value::explain_front_end(problem, subject)
        }
    }
}
