//! A model that runs beside the trained one and is not trained.

use zeropilot_config::settings::{Stage, Zero};
use zeropilot_units::Bytes;

use super::{
    Conditions, Fidelity, LowerError, Method, RankOf, Recipe, parameters, program_parameters,
    setup, shape,
};
use crate::family::{Program, build};
use crate::micro_step::{MicroStep, modules};
use crate::tape::{Mark, Options, Tape, Trace};
use crate::task::{Frozen, Returned, Role, Task};
use crate::zero::gather::Modules;
use crate::zero::{Loading, Parameter, Run};

/// A frozen model lowered.
#[derive(Debug)]
pub struct FrozenModel {
    role: Role,
    zero: Option<Zero>,
    has_optimizer: bool,
    program: Box<dyn Program>,
    modules: Modules,
    pass: MicroStep,
    returned: Vec<Returned>,
    /// As the program has them.
    own: Vec<Parameter>,
    /// As the model has them.
    real: Vec<Parameter>,
    fidelity: Fidelity,
    buffers: Bytes,
}

impl FrozenModel {
    pub(super) fn new(
        frozen: &Frozen,
        recipe: &Recipe,
        conditions: &Conditions,
    ) -> Result<Self, LowerError> {
        let Frozen { role, model, has_optimizer, .. } = frozen;
        let objective = recipe.task.objective;
        let micro_batch = recipe.task.frozen_sequences(*role, conditions.micro_batch);
        let conditions = &Conditions { micro_batch, ..conditions.clone() };
        let recipe = Recipe { method: Method::Full, checkpointing: false, ..recipe.clone() };
        let mut setup =
            setup(model, model, &recipe, conditions, Loading::Whole(conditions.element), None)?;
        setup.head = objective.frozen_head(*role);
        setup.keeps_cache = frozen.keeps_cache;
        setup.keeps_hidden = objective.keeps_hidden();
        let program = build(&setup);
        let element = setup.training.element_bytes;
        let as_kept = |parameter: Parameter| Parameter { trainable: *has_optimizer, ..parameter };
        let own = program_parameters(program.model(), element, &recipe);
        let own: Vec<Parameter> = own.into_iter().map(as_kept).collect();
        let real = parameters(model, &recipe, element, element);
        let real: Vec<Parameter> = real.into_iter().map(as_kept).collect();
        let is_own = own == real && shape::program(model).1 && model.stand_in().is_none();
        let options = recipe.options(conditions.options);
        let returns = objective.frozen_returns(*role, recipe.task.completion);
        let (trace, returned) =
            pass(&*program, returns, options).ok_or(LowerError::TaskOfLanguageModels)?;
        Ok(Self {
            role: *role,
            zero: frozen.zero.clone(),
            has_optimizer: *has_optimizer,
            modules: modules(program.model()),
            pass: MicroStep::from_trace(&trace, options),
            returned,
            fidelity: if is_own { Fidelity::Own } else { Fidelity::StandIn(setup.family) },
            buffers: super::buffers(&setup, model, conditions.is_stage_3()),
            own,
            real,
            program,
        })
    }

    /// What it is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// How near its program is to the model.
    pub fn fidelity(&self) -> Fidelity {
        self.fidelity
    }

    /// The modules and parameters of its program.
    pub fn model(&self) -> &crate::model::Model {
        self.program.model()
    }

    /// The parameters that each module gathers.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// A forward pass; what it returns is freed in what would be backward.
    pub fn pass(&self) -> &MicroStep {
        &self.pass
    }

    pub(crate) fn returned(&self) -> &[Returned] {
        &self.returned
    }

    /// Buffers of the model.
    pub fn buffers(&self) -> Bytes {
        self.buffers
    }

    /// Whether its engine has an optimizer all the same.
    pub fn has_optimizer(&self) -> bool {
        self.has_optimizer
    }

    /// A rank of its engine, beside one of the trained model: stage 3 stays, every other stage becomes 0, and nothing is
    /// left of the optimizer (TRL's `prepare_deepspeed`).
    pub(crate) fn rank(&self, trained: &RankOf<'_>) -> RankOf<'static> {
        let zero = self.zero.as_ref().unwrap_or(&trained.zero);
        let stage = if zero.stage == Stage::Three { Stage::Three } else { Stage::Zero };
        let offload_optimizer = zero.offload_optimizer.clone().filter(|_| self.has_optimizer);
        trained.with(Zero { stage, offload_optimizer, ..zero.clone() })
    }

    /// What `rank` runs, with the parameters of the program.
    pub fn run<'a>(&'a self, rank: &'a RankOf<'a>) -> Run<'a> {
        rank.run(&self.own, &[])
    }

    /// The same with the parameters of the model itself.
    pub(crate) fn real_run<'a>(&'a self, rank: &'a RankOf<'a>) -> Run<'a> {
        rank.run(&self.real, &[])
    }
}

/// A forward pass without gradients, and what is alive after it.
fn pass(
    program: &dyn Program,
    returns: crate::family::Returns,
    options: Options,
) -> Option<(Trace, Vec<Returned>)> {
    let tape = Tape::new(options);
    let mut returned = Vec::new();
    {
        let outputs = tape.no_grad(|| program.call(&tape, returns))?;
        returned.extend(outputs.iter().map(|output| Returned {
            elements: output.elements(),
            element_bytes: output.element_bytes(),
        }));
        returned.push(Returned { elements: tape.kept_bytes(), element_bytes: 1 });
        tape.mark(Mark::Saved);
        drop(outputs);
        tape.drop_kept();
    }
    Some((tape.into_trace(), returned))
}

/// The models that a task runs beside the trained one.
pub(super) fn frozen_models(
    task: &Task,
    recipe: &Recipe,
    conditions: &Conditions,
) -> Result<Vec<FrozenModel>, LowerError> {
    task.frozen.iter().map(|frozen| FrozenModel::new(frozen, recipe, conditions)).collect()
}
