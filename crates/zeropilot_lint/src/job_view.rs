//! What rules over jobs look at, and where they put what they find.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::packages::Packages;
use zeropilot_config::syntax::Span;
use zeropilot_job::{
    CLIENT_OPTIMIZER, Call, Files, Launch, LaunchScript, Launcher, Place, PythonScript, Value,
};

use crate::diagnostic::Diagnostic;
use crate::report::{Report, Verdict};
use crate::script::Job;
use crate::settings::Settings;
use crate::{prepared, sharing, warmup};

/// What rules over jobs look at.
pub(crate) struct JobView<'a> {
    pub(crate) job: &'a LaunchScript,
    pub(crate) files: Files<'a>,
    /// For each launch what became of its config, where that could be read.
    pub(crate) configs: &'a [Option<Report>],
    /// The versions that are installed, as far as they are known.
    pub(crate) packages: &'a Packages,
    /// Judges another config: rules stand below the check and cannot call it themselves.
    pub(crate) check: fn(&[u8], &Settings) -> Report,
}

/// A training script, the launch that starts it and what became of its config.
#[derive(Clone, Copy)]
pub(crate) struct Training<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) script: &'a PythonScript,
    /// The script's name.
    pub(crate) name: &'a str,
    /// What became of the config, where it could be read.
    pub(crate) config: Option<&'a Report>,
}

impl<'a> Training<'a> {
    /// The ZeRO stage, where the config settles it.
    pub(crate) fn stage(&self) -> Option<u8> {
        self.config?.values()?.known_stage()
    }

    /// The config as it is written, in a file or in the script.
    pub(crate) fn config_text(&self, job: &JobView<'_>) -> Option<String> {
        let given = &self.launch.given;
        if given.dictionary.is_some() {
            return (job.files)(self.name);
        }
        let name = given.config.as_ref()?.text.as_deref()?;
        self.launch.config_text.clone().or_else(|| (job.files)(name))
    }

    /// Micro-batches per update, where the config says how many.
    pub(crate) fn accumulation(&self) -> Option<i64> {
        self.config?.values()?.accumulation()
    }

    /// A place in the script.
    pub(crate) fn place(&self, span: Span) -> Place {
        Place::in_file(self.name, span)
    }
}

impl<'a> JobView<'a> {
    /// Every launch with what became of its config.
    pub(crate) fn launches(&self) -> impl Iterator<Item = (&'a Launch, Option<&'a Report>)> {
        self.job.launches.iter().zip(self.configs.iter().map(Option::as_ref))
    }

    /// Training scripts that could be read.
    pub(crate) fn trainings(&self) -> impl Iterator<Item = Training<'a>> {
        self.launches().filter_map(|(launch, config)| {
            let (script, name) = (launch.script.as_ref()?, launch.program.as_deref()?);
            Some(Training { launch, script, name, config })
        })
    }

    /// Whether a config would be accepted.
    pub(crate) fn accepts(&self, config: &str, settings: &Settings) -> bool {
        (self.check)(config.as_bytes(), settings).verdict == Verdict::Accept
    }

    /// Training scripts whose config has ZeRO stage 3, and their names.
    pub(crate) fn stage_3_scripts(&self) -> impl Iterator<Item = (&'a PythonScript, &'a str)> {
        self.job.launches.iter().zip(self.configs).filter_map(|(launch, config)| {
            let stage = config.as_ref()?.values()?.known_stage();
            (stage == Some(3)).then_some((launch.script.as_ref()?, launch.program.as_deref()?))
        })
    }

    /// Calls that follow the training arguments of a script of stage 3, in the same function, and the script's name:
    /// from there on transformers builds models partitioned.
    pub(crate) fn calls_under_stage_3(&self) -> impl Iterator<Item = (&'a Call, &'a str)> {
        self.stage_3_scripts().flat_map(|(script, name)| {
            let arguments = script.training_arguments().min_by_key(|call| call.span.start);
            arguments.into_iter().flat_map(move |arguments| {
                let late = script.calls.iter().filter(|call| {
                    call.scope == arguments.scope && call.span.start >= arguments.span.end
                });
                late.map(move |call| (call, name))
            })
        })
    }
}

/// What rules over jobs find.
#[derive(Default)]
pub(crate) struct Findings(pub(crate) Vec<(Option<String>, Diagnostic)>);

impl Findings {
    /// In the launch script.
    pub(crate) fn here(&mut self, diagnostic: Diagnostic) {
        self.0.push((None, diagnostic));
    }

    /// In the file of a place; the span is the diagnostic's own.
    pub(crate) fn at(&mut self, place: &Place, diagnostic: Diagnostic) {
        self.0.push((place.file.clone(), diagnostic));
    }
}

/// What is known beside the config of a launch, on top of what the user said.
pub fn settings(launch: &Launch, said: &Settings) -> Settings {
    let given = &launch.given;
    let mut settings = said.clone();
    settings.world_size = said.world_size.or(launch.world);
    settings.front_end = said.front_end.or(given.front_end);
    given.add_to(&mut settings.arguments);
    if given.config.is_none() && given.dictionary.is_none() {
        // The fields are the config; beside no other do they contradict one.
        let fields = &said.arguments.plugin.accelerate_config_fields;
        settings.arguments.plugin.accelerate_config_fields.clone_from(fields);
    }
    if settings.front_end == Some(FrontEnd::Accelerate) {
        prepared::add_to(launch, &mut settings.arguments.accelerate);
    }
    let script = &mut settings.script;
    script.nodes = script.nodes.or(launch.nodes());
    let text = |name: &str| given.value(name).map(str::to_owned);
    script.optim = script.optim.take().or_else(|| text("optim"));
    script.lr_scheduler_type =
        script.lr_scheduler_type.take().or_else(|| text("lr_scheduler_type"));
    script.client_optimizer = script.client_optimizer.take().or_else(|| text(CLIENT_OPTIMIZER));
    script.save_only_model = script.save_only_model.or_else(|| given.switch("save_only_model"));
    script.load_best_model_at_end =
        script.load_best_model_at_end.or_else(|| given.switch("load_best_model_at_end"));
    settings.script.is_compiled |= is_compiled(launch);
    settings.script.trains_adapters |= trains_adapters(launch);
    settings.script.makes_engine |= launch.script.as_ref().is_some_and(|it| it.engine().is_some());
    settings.script.sharing = settings.script.sharing.or_else(|| sharing::of_launch(launch));
    settings.script.warms_up = settings.script.warms_up.or_else(|| warmup::of_launch(launch));
    settings.script.only_evaluates |= warmup::only_evaluates(launch);
    settings.script.job = settings.script.job.or_else(|| Some(job(launch)));
    settings.script.is_autotuned = launch.launcher == Launcher::DeepSpeed
        && launch.options.iter().any(|(name, _)| name == "autotuning");
    settings
}

/// What the files of a launch say.
fn job(launch: &Launch) -> Job {
    let given = &launch.given;
    let calls = |script: &PythonScript| -> Vec<String> {
        let mut names: Vec<_> = script.calls.iter().map(|call| call.name().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    Job {
        calls: launch.script.as_ref().map(calls),
        arguments: given
            .values
            .iter()
            .map(|said| (said.name.clone(), said.value.clone()))
            .collect(),
        open: given.unknown.clone(),
    }
}

/// Whether only adapters are trained: PEFT in the script, or a framework that is told so.
fn trains_adapters(launch: &Launch) -> bool {
    let in_script = launch.script.as_ref().is_some_and(|script| {
        let hands = |call: &Call| {
            call.keyword("peft_config").is_some_and(|(value, _)| *value != Value::None)
        };
        script.calls("get_peft_model") || script.calls.iter().any(hands)
    });
    let names = ["finetuning_type", "train_type", "tuner_type", "adapter"];
    in_script
        || names.iter().any(|name| {
            launch.given.value(name).is_some_and(|value| matches!(value, "lora" | "qlora"))
        })
}

/// Whether something calls `engine.compile()`: the script itself, or accelerate for the Trainer.
fn is_compiled(launch: &Launch) -> bool {
    let by_script = launch.script.as_ref().is_some_and(|script| {
        let engine = script.engine().map(|(_, engine)| format!("{engine}.compile"));
        engine.is_some_and(|callee| script.call(&callee).is_some())
    });
    by_script || launch.given.switch("torch_compile") == Some(true)
}
