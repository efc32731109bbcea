//! What a job trains for, and which models run beside the trained one.

use zeropilot_config::syntax::Span;

use super::{Reader, parsed};
use crate::Place;
use crate::framework::Framework;
use crate::library_version::LibraryVersion;
use crate::name::{MethodName, ReferenceName, RolloutName, TaskName, TrainerName};
use crate::origin::{Origin, Sourced};
use crate::python::{Call, Value};
use crate::recipe::ARGUMENTS;
use crate::requirement;
use crate::task::{JobReuse, JobTask, JobVllm};
use crate::training_job::{Direction, NotModelled, TrainingJob};

/// TRL's trainers with the classes of their arguments.
const TRAINERS: [(&str, &str, TaskName); 9] = [
    ("DPOTrainer", "DPOConfig", TaskName::Dpo),
    ("KTOTrainer", "KTOConfig", TaskName::Kto),
    ("ORPOTrainer", "ORPOConfig", TaskName::Orpo),
    ("CPOTrainer", "CPOConfig", TaskName::Cpo),
    ("RewardTrainer", "RewardConfig", TaskName::Reward),
    ("GKDTrainer", "GKDConfig", TaskName::Gkd),
    ("GRPOTrainer", "GRPOConfig", TaskName::Grpo),
    ("RLOOTrainer", "RLOOConfig", TaskName::Rloo),
    ("PPOTrainer", "PPOConfig", TaskName::Ppo),
];

/// Classes of TRL for tasks that no answer follows.
const NOT_FOLLOWED: [&str; 8] = [
    "BCOTrainer",
    "BCOConfig",
    "OnlineDPOTrainer",
    "OnlineDPOConfig",
    "XPOTrainer",
    "XPOConfig",
    "DistillationTrainer",
    "DistillationConfig",
];

/// What frameworks call such tasks.
const WORDS_NOT_FOLLOWED: [&str; 7] = ["ppo", "bco", "xpo", "rm", "reward", "gdpo", "ebft"];

const OTHER_MODELS: (&str, &str) =
    ("this task's loss and other models", "该任务的其他模型及其 loss");

/// PPO of TRL before 0.12, on which LLaMA-Factory's is built too: a value head on the policy instead of a value model.
const FIRST_PPO: LibraryVersion = LibraryVersion::new(0, 12);

/// The task behind a framework's word for it. LLaMA-Factory's reward model keeps its output layer beside a second head, which
/// is another model than TRL's, and its PPO puts such a head on the policy.
fn task_of(word: &str, framework: Option<Framework>) -> Option<TaskName> {
    Some(match word {
        "dpo" | "ipo" => TaskName::Dpo,
        "kto" => TaskName::Kto,
        "orpo" => TaskName::Orpo,
        "cpo" | "simpo" => TaskName::Cpo,
        "rm" | "reward" if framework != Some(Framework::LlamaFactory) => TaskName::Reward,
        "gkd" => TaskName::Gkd,
        "grpo" => TaskName::Grpo,
        "rloo" => TaskName::Rloo,
        "ppo" if framework != Some(Framework::LlamaFactory) => TaskName::Ppo,
        _ => return None,
    })
}

impl Reader<'_> {
    /// Whether the script uses one of TRL's trainers.
    pub(super) fn has_trl_trainer(&self) -> bool {
        let calls = |name: &str| self.called(name).is_some();
        ["SFTConfig", "SFTTrainer", "TrlParser"].into_iter().chain(NOT_FOLLOWED).any(calls)
            || self.trl_trainer().is_some()
    }

    /// The trainer that the script makes, or the arguments for it.
    fn trl_trainer(&self) -> Option<(&Call, TaskName)> {
        TRAINERS.iter().find_map(|&(trainer, arguments, task)| {
            let call = self.called(trainer).or_else(|| self.called(arguments))?;
            Some((call, task))
        })
    }

    /// The model that one of TRL's trainers is given by its name.
    pub(super) fn trained_model(&self) -> Option<Sourced<String>> {
        let trainers = TRAINERS.iter().map(|(trainer, ..)| *trainer);
        let mut calls = ["SFTTrainer"].into_iter().chain(trainers).chain(NOT_FOLLOWED);
        calls.find_map(|name| self.keyword(self.called(name)?, "model"))
    }

    /// The task; `job` has everything else.
    pub(super) fn task(&self, job: &mut TrainingJob) {
        for name in ARGUMENTS.names("task") {
            let Some(said) = self.argument(name) else { continue };
            if let Some(task) = task_of(&said.value, job.framework) {
                self.follow(Sourced { value: task, origin: said.origin }, job);
                return;
            }
            if WORDS_NOT_FOLLOWED.contains(&said.value.as_str()) {
                self.leave_out(job, OTHER_MODELS, &said, name, Direction::Higher);
                return;
            }
        }
        let is_old_ppo = || self.required_trl().is_some_and(|trl| trl.value < FIRST_PPO);
        let trainer = self.trl_trainer();
        let followed = trainer.filter(|(_, task)| *task != TaskName::Ppo || !is_old_ppo());
        let not_followed = || NOT_FOLLOWED.iter().find_map(|class| self.called(class));
        if let Some((call, value)) = followed {
            self.follow(Sourced { value, origin: self.place_of(call) }, job);
        } else if let Some(call) = trainer.map(|(call, _)| call).or_else(not_followed) {
            job.not_modelled.push(NotModelled {
                en: OTHER_MODELS.0.to_owned(),
                zh: OTHER_MODELS.1.to_owned(),
                written: call.name().to_owned(),
                direction: Direction::Higher,
                origin: self.place_of(call),
            });
        }
    }

    fn place_of(&self, call: &Call) -> Origin {
        let program = self.launch.program.as_deref().unwrap_or(self.name);
        self.origin(&Place::in_file(program, call.span))
    }

    fn follow(&self, task: Sourced<TaskName>, job: &mut TrainingJob) {
        let (name, origin) = (task.value, task.origin.clone());
        let framework = job.framework;
        let completion_len = self.completion_len(name, framework);
        if name.learns_from_completions() {
            job.seq_len = self.whole_length(job, completion_len.as_ref());
        }
        let version = framework.and_then(Framework::version);
        let by_default = version.map(|version| Origin::FrameworkDefault { version });
        let trainer = match framework {
            Some(Framework::LlamaFactory) => Some(TrainerName::LlamaFactory),
            Some(Framework::Swift) => Some(TrainerName::Swift),
            _ => None,
        };
        let trl = self.required_trl().or_else(|| {
            let value = framework?.trl()?.parse().ok()?;
            Some(Sourced { value, origin: by_default.clone()? })
        });
        let rollout = self.rollout(name, trl.as_ref());
        if rollout.is_none() && name.generates() && self.is_unknown("vllm") {
            job.unknown.push("rollout");
        }
        job.task = Some(JobTask {
            task,
            teacher: self.teacher(name),
            reward_model: self.reward_model(name),
            critic: self.called("PPOTrainer").and_then(|call| self.loaded(call, "value_model")),
            rollout_batch: self.number("rollout_batch").filter(|_| name == TaskName::Ppo),
            reuse: self.reuse(name),
            reference: self.reference(name, job),
            completion_len,
            vllm: self.vllm(name, framework, rollout.as_ref()),
            rollout,
            trainer: trainer.zip(by_default).map(|(value, origin)| Sourced { value, origin }),
            trl,
        });
        self.other_reference(job);
        self.other_judges(name, job);
        self.precompute_batch(job);
        self.mini_batches(name, job);
        if framework == Some(Framework::Swift) && name == TaskName::Gkd {
            let words = (
                "ms-swift's own chunked GKD loss; zeropilot uses TRL's loss",
                "ms-swift 自己的 GKD loss（分块计算）；按 TRL 的 loss 计入",
            );
            let said = Sourced { value: name.name().to_owned(), origin };
            self.leave_out(job, words, &said, "rlhf_type", Direction::Lower);
        }
    }

    /// A reward model that the trainer is given, or loads itself.
    fn reward_model(&self, task: TaskName) -> Option<Sourced<String>> {
        if !task.learns_from_completions() {
            return None;
        }
        let call = self.trainer_of(task);
        let handed = |name: &str| call.and_then(|call| self.loaded(call, name));
        let is_named =
            |said: &Sourced<String>| !matches!(said.value.as_str(), "" | "none" | "null");
        handed("reward_model")
            .or_else(|| handed("reward_funcs"))
            .or_else(|| self.judges(task).into_iter().next())
            .or_else(|| self.text("reward_model").filter(is_named))
    }

    fn trainer_of(&self, task: TaskName) -> Option<&Call> {
        let (trainer, ..) = TRAINERS.iter().find(|(.., known)| *known == task)?;
        self.called(trainer)
    }

    /// The models among several judges of completions: texts are names of models, other judges are functions.
    fn judges(&self, task: TaskName) -> Vec<Sourced<String>> {
        let list = || self.trainer_of(task)?.keyword("reward_funcs");
        let Some((Value::List(judges), span)) = list() else { return Vec::new() };
        let model = |judge: &Value| match judge {
            Value::Literal(_) => self.written((judge, span)),
            Value::Call(callee) if callee.ends_with("from_pretrained") => {
                let mut calls = self.script()?.calls.iter().filter(|it| it.callee == *callee);
                let call = calls.next().filter(|_| calls.next().is_none())?;
                self.written(call.argument(0, "pretrained_model_name_or_path")?)
            }
            _ => None,
        };
        judges.iter().filter_map(model).collect()
    }

    /// Reward models after the first one.
    fn other_judges(&self, task: TaskName, job: &mut TrainingJob) {
        let judges = if task.learns_from_completions() { self.judges(task) } else { Vec::new() };
        for said in judges.into_iter().skip(1) {
            let words = ("a further reward model", "另一个奖励模型");
            self.leave_out(job, words, &said, "reward_funcs", Direction::Higher);
        }
    }

    /// The reference model may run with a larger batch before training starts.
    fn precompute_batch(&self, job: &mut TrainingJob) {
        let Some(said) = self.number("precompute_batch") else { return };
        let reference = job.task.as_ref().and_then(|task| task.reference.as_ref());
        let is_precomputed = reference.is_some_and(|it| it.value == ReferenceName::Precomputed);
        let is_larger = job.micro_batch.as_ref().is_none_or(|batch| batch.value < said.value);
        if is_precomputed && is_larger {
            let words = (
                "the reference model's forward pass before training, with a larger batch",
                "训练前参考模型以更大 batch 进行的前向",
            );
            let said = said.map(|batch| batch.to_string());
            self.leave_out(job, words, &said, "precompute_ref_batch_size", Direction::Higher);
        }
    }

    /// The name of a model that a trainer is given, or that the script has loaded for it.
    fn loaded(&self, trainer: &Call, argument: &str) -> Option<Sourced<String>> {
        let loaded = || {
            let name = trainer.handed(usize::MAX, argument)?;
            let is_load = |call: &&Call| {
                call.name() == "from_pretrained" && call.bound_to.as_deref() == Some(name)
            };
            let call = self.script()?.calls.iter().find(is_load)?;
            self.written(call.argument(0, "pretrained_model_name_or_path")?)
        };
        self.keyword(trainer, argument).or_else(loaded)
    }

    /// The policy of PPO, among the models that a script loads.
    pub(super) fn policy(&self) -> Option<Sourced<String>> {
        self.loaded(self.called("PPOTrainer")?, "model")
    }

    /// How often completions are generated and learned from.
    fn reuse(&self, task: TaskName) -> JobReuse {
        match task {
            TaskName::Grpo | TaskName::Rloo => JobReuse {
                steps_per_generation: self.number("steps_per_generation"),
                generation_batch_size: self.number("generation_batch"),
                num_iterations: self.number("iterations"),
            },
            TaskName::Ppo => {
                JobReuse { num_iterations: self.number("ppo_epochs"), ..JobReuse::default() }
            }
            _ => JobReuse::default(),
        }
    }

    /// A rollout of PPO that is cut into several optimizer steps.
    fn mini_batches(&self, task: TaskName, job: &mut TrainingJob) {
        let said = self.argument("num_mini_batches").filter(|said| said.value != "1");
        if let Some(said) = said.filter(|_| task == TaskName::Ppo) {
            let words = (
                "several optimizer steps per rollout; zeropilot counts the completions of one step",
                "一次 rollout 分成多次参数更新；只按其中一次的补全计入",
            );
            self.leave_out(job, words, &said, "num_mini_batches", Direction::Higher);
        }
    }

    /// The release of TRL that the project asks for.
    fn required_trl(&self) -> Option<Sourced<LibraryVersion>> {
        let text = |name: &str| (self.files)(name);
        let in_head = || {
            let name = self.launch.program.as_deref()?;
            let (value, start) = requirement::in_script(&text(name)?, "trl")?;
            Some((name, value, start))
        };
        let in_list = || {
            let name = requirement::REQUIREMENTS;
            let (value, start) = requirement::in_requirements(&text(name)?, "trl")?;
            Some((name, value, start))
        };
        let (name, value, start) = in_head().or_else(in_list)?;
        let span = Span { start, end: start };
        Some(Sourced { value, origin: self.origin(&Place::in_file(name, span)) })
    }

    /// A value that a framework takes for a task where the job says nothing.
    fn usual(
        &self,
        task: TaskName,
        framework: Option<Framework>,
        field: &str,
    ) -> Option<Sourced<String>> {
        let (value, version) = framework?.default_of_task(task, field)?;
        let origin = Origin::FrameworkDefault { version };
        Some(Sourced { value: value.to_owned(), origin })
    }

    fn completion_len(&self, task: TaskName, framework: Option<Framework>) -> Option<Sourced<u64>> {
        if !task.has_completions() {
            return None;
        }
        let is_called_so = matches!(task, TaskName::Gkd | TaskName::Ppo);
        let generated = || self.number("generated_len").filter(|_| is_called_so);
        let usual = || self.usual(task, framework, "completion_len").and_then(parsed);
        self.number("completion_len").or_else(generated).or_else(usual)
    }

    /// Tokens of a prompt and its completion. What GRPO and RLOO are told limits the one or the other.
    fn whole_length(
        &self,
        job: &TrainingJob,
        completion: Option<&Sourced<u64>>,
    ) -> Option<Sourced<u64>> {
        let completion = completion.map_or(0, |tokens| tokens.value);
        let whole = |prompt: Sourced<u64>| prompt.map(|tokens| tokens.saturating_add(completion));
        let said = || {
            let is_said = |said: &Sourced<u64>| matches!(said.origin, Origin::File { .. });
            job.seq_len.clone().filter(is_said)
        };
        match (self.number("prompt_len"), job.framework) {
            (Some(prompt), _) => Some(whole(prompt)),
            // Its `max_length` is that of a prompt.
            (None, Some(Framework::Swift)) => said().map(whole),
            (None, _) => said(),
        }
    }

    fn teacher(&self, task: TaskName) -> Option<Sourced<String>> {
        let in_script = || self.keyword(self.called("GKDTrainer")?, "teacher_model");
        let said = self.text("teacher").or_else(in_script);
        said.filter(|_| task.has_teacher())
    }

    fn reference(&self, task: TaskName, job: &TrainingJob) -> Option<Sourced<ReferenceName>> {
        if !task.compares() {
            return None;
        }
        if task == TaskName::Ppo {
            return None;
        }
        if task.learns_from_completions() {
            let usual = || self.usual(task, job.framework, "reference_weight");
            let said = self.text("reference_weight").or_else(usual)?;
            let weight: f64 = said.value.parse().ok()?;
            let adapts = job.method.as_ref().is_some_and(|said| said.value != MethodName::Full);
            return Some(said.map(|_| match (weight == 0.0, adapts) {
                (true, _) => ReferenceName::None,
                (false, true) => ReferenceName::AdaptersOff,
                (false, false) => ReferenceName::Copy,
            }));
        }
        let precomputed = self.is_on("precomputed_reference");
        let without = || {
            let loss = self.text("preference_loss")?;
            matches!(loss.value.as_str(), "orpo" | "simpo").then_some(loss)
        };
        let copy = || self.reference_model().map(|said| said.map(|_| ReferenceName::Copy));
        precomputed
            .map(|on| on.map(|_| ReferenceName::Precomputed))
            .or_else(|| without().map(|loss| loss.map(|_| ReferenceName::None)))
            .or_else(copy)
    }

    fn reference_model(&self) -> Option<Sourced<String>> {
        let is_named =
            |said: &Sourced<String>| !matches!(said.value.as_str(), "" | "none" | "null");
        self.text("reference_model").filter(is_named)
    }

    /// A reference is counted as a copy of the trained model.
    fn other_reference(&self, job: &mut TrainingJob) {
        let Some(said) = self.reference_model() else { return };
        if job.model.as_ref().is_some_and(|model| model.value != said.value) {
            let words = (
                "a reference model other than the trained model, counted as a copy of the trained model",
                "参考模型与所训模型不同，按所训模型的副本计入",
            );
            self.leave_out(job, words, &said, "ref_model", Direction::Either);
        }
    }

    fn rollout(
        &self,
        task: TaskName,
        trl: Option<&Sourced<LibraryVersion>>,
    ) -> Option<Sourced<RolloutName>> {
        if !task.generates() {
            return None;
        }
        if let Some(on) = self.is_on("vllm") {
            let (value, is_known) = self.place_of_vllm(trl);
            let origin = if is_known { on.origin } else { Origin::Assumed };
            return Some(Sourced { value, origin });
        }
        let share = self.text("generated_share").filter(|_| task == TaskName::Gkd)?;
        let is_none = share.value.parse::<f64>().is_ok_and(|share| share == 0.0);
        is_none.then(|| share.map(|_| RolloutName::None))
    }

    /// Where vLLM runs, and whether the job settles it: TRL took a server by default before 1.0, the GPUs that train since.
    fn place_of_vllm(&self, trl: Option<&Sourced<LibraryVersion>>) -> (RolloutName, bool) {
        let is_old = || trl.is_some_and(|trl| trl.value < LibraryVersion::new(1, 0));
        match self.text("vllm_mode").map(|mode| mode.value).as_deref() {
            Some("server") => (RolloutName::Server, true),
            Some("colocate") => (RolloutName::Vllm, true),
            None if self.is_unknown("vllm_mode") => (RolloutName::Vllm, false),
            None if is_old() => (RolloutName::Server, true),
            None => (RolloutName::Vllm, true),
            Some(_) => (RolloutName::Vllm, false),
        }
    }

    fn vllm(
        &self,
        task: TaskName,
        framework: Option<Framework>,
        rollout: Option<&Sourced<RolloutName>>,
    ) -> JobVllm {
        if rollout.is_none_or(|said| said.value != RolloutName::Vllm) {
            return JobVllm::default();
        }
        let level = || {
            let level = self.text("vllm_sleep_level")?;
            Some(level.map(|level| level != "0"))
        };
        let usual = || self.usual(task, framework, "vllm_share");
        JobVllm {
            share: self.text("vllm_share").or_else(usual).and_then(parsed),
            sleeps: self.switch("vllm_sleep").or_else(level),
            tensor_parallel: self.number("vllm_tensor_parallel"),
        }
    }

    /// Whether an argument that no prediction follows in general is followed in this job.
    pub(super) fn is_followed(&self, name: &str, job: &TrainingJob) -> bool {
        let is = |field: &str| ARGUMENTS.names(field).any(|known| known == name);
        if is("sequence_parallel") && job.sequence_parallel.is_some() {
            return true;
        }
        let Some(task) = &job.task else { return false };
        (is("teacher") && task.teacher.is_some())
            || (is("reward_model") && task.reward_model.is_some())
            || (is("reference_model") && task.reference.is_some())
            || (is("vllm") && task.rollout.is_some())
    }
}
