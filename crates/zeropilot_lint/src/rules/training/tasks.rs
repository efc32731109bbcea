//! Jobs that do not train on the next token: DPO, KTO, GKD, GRPO and their like, as far as everything is known that
//! the trainer is told.

use serde_json::Value as Json;
use zeropilot_job::{
    Call, ConfigContent, Launch, MethodName, Place, Said, TaskName, TrainingJob, Value, Word,
};

use crate::job_view::JobView;
use crate::report::ResolvedValues;

/// A launch on several ranks that trains for such a task.
pub(super) struct Task<'a> {
    pub(super) launch: &'a Launch,
    pub(super) job: TrainingJob,
    pub(super) name: TaskName,
    /// The call that makes the trainer, where the script has it.
    pub(super) trainer: Option<&'a Call>,
    /// The ZeRO stage, where the config is accepted.
    pub(super) stage: Option<u8>,
    /// Where the trainer is made, or the launch where no script does.
    pub(super) place: Place,
}

/// All of them in a job.
pub(super) fn tasks<'a>(view: &JobView<'a>) -> impl Iterator<Item = Task<'a>> {
    let (script, files) = (view.job, view.files);
    let several = view.launches().filter(|(launch, _)| launch.world != Some(1));
    several.filter_map(move |(launch, report)| {
        let job = TrainingJob::of_launch("", "", script, launch, files);
        let name = job.task.as_ref()?.task.value;
        let trainer = trainer(launch, name);
        let stage = match report {
            Some(report) => report.values().and_then(ResolvedValues::known_stage),
            None => preset_stage(&job, launch),
        };
        let place = match (trainer, &launch.program) {
            (Some(call), Some(program)) => Place::in_file(program, call.span),
            _ => Place::here(launch.span()),
        };
        let task = Task { launch, job, name, trainer, stage, place };
        task.is_settled().then_some(task)
    })
}

fn trainer(launch: &Launch, task: TaskName) -> Option<&Call> {
    let class = format!("{}trainer", task.name());
    let script = launch.script.as_ref()?;
    script.calls.iter().find(|call| call.name().eq_ignore_ascii_case(&class))
}

/// The stage of a config that has no file: a preset of ms-swift, or what accelerate writes.
fn preset_stage(job: &TrainingJob, launch: &Launch) -> Option<u8> {
    let has_file = launch.given.config.is_some() || launch.given.dictionary.is_some();
    let config = config(job).filter(|_| !has_file)?;
    config.pointer("/zero_optimization/stage")?.as_u64()?.try_into().ok()
}

fn config(job: &TrainingJob) -> Option<Json> {
    match &job.config.as_ref()?.content {
        ConfigContent::Text(text) => serde_json::from_str(text).ok(),
        ConfigContent::Missing | ConfigContent::Computed => None,
    }
}

/// Calls that give a model adapters out of sight of the trainer's arguments.
const WRAPPED: [&str; 2] = ["get_peft_model", "PeftModel.from_pretrained"];

/// Arguments that ask for adapters.
const ADAPTS: [&str; 2] = ["use_peft", "use_lora"];

impl<'a> Task<'a> {
    /// The config, where it is strict JSON.
    pub(super) fn config(&self) -> Option<Json> {
        config(&self.job)
    }

    /// An argument of the trainer; axolotl has some in a section.
    pub(super) fn said(&self, name: &str) -> Option<&'a Said> {
        let given = &self.launch.given;
        given.said(name).or_else(|| given.said(&format!("trl.{name}")))
    }

    /// Whether an argument is switched on; `None` if only the run knows.
    pub(super) fn is_on(&self, name: &str) -> Option<bool> {
        if self.launch.given.unknown.iter().any(|unknown| unknown == name) {
            return None;
        }
        match self.said(name).map(|said| said.value.to_lowercase()).as_deref() {
            None | Some("false" | "no" | "0" | "off" | "none" | "null") => Some(false),
            Some("" | "true" | "yes" | "1" | "on") => Some(true),
            Some(_) => None,
        }
    }

    /// Whether an argument is certainly not switched on.
    pub(super) fn is_off(&self, name: &str) -> bool {
        self.is_on(name) == Some(false)
    }

    /// Whether the trainer is handed something under this name, `None` aside.
    pub(super) fn is_handed(&self, name: &str) -> bool {
        let handed = self.trainer.and_then(|call| call.keyword(name));
        handed.is_some_and(|(value, _)| *value != Value::None)
    }

    /// Whether adapters are trained instead of the model; `None` if only the run knows.
    pub(super) fn adapts(&self) -> Option<bool> {
        if let Some(method) = &self.job.method {
            return Some(method.value != MethodName::Full);
        }
        let calls = || self.launch.script.iter().flat_map(|script| &script.calls);
        let is_wrapped = |call: &Call| {
            WRAPPED.iter().any(|name| call.callee.ends_with(name))
                || call.callee.contains("AutoPeftModel")
        };
        if calls().any(is_wrapped) || ADAPTS.iter().any(|name| self.is_on(name).is_none()) {
            return None;
        }
        match self.trainer.and_then(|call| call.keyword("peft_config")) {
            None | Some((Value::None, _)) => Some(false),
            // TRL's own makes nothing unless an argument asks for adapters.
            Some((Value::Call(callee), _)) if callee.ends_with("get_peft_config") => Some(false),
            Some(_) => None,
        }
    }

    /// Whether the training program is told to read arguments from a file, known or not.
    fn names_settings(&self) -> bool {
        let is_unknown = self.launch.given.unknown.iter().any(|unknown| unknown == "config");
        self.said("config").is_some() || is_unknown
    }

    /// Whether nothing but what was read reaches the trainer.
    fn is_settled(&self) -> bool {
        let script = self.launch.script.as_ref();
        let made = script.into_iter().flat_map(|script| script.training_arguments());
        let has_more = made.chain(self.trainer).any(|call| call.has_more);
        let own = own_words(self.launch);
        let is_read_from_file = self.launch.program.is_some()
            && !self.launch.is_axolotl()
            && (self.names_settings() || own.iter().any(is_yaml));
        !has_more && !is_read_from_file && !has_loose_words(own)
    }
}

/// The words of a command that the training program gets.
fn own_words(launch: &Launch) -> &[Word] {
    let program = launch.program.as_deref();
    let at =
        launch.words.iter().position(|word| program.is_some() && word.text.as_deref() == program);
    at.and_then(|at| launch.words.get(at + 1..)).unwrap_or(&launch.words)
}

fn is_yaml(word: &Word) -> bool {
    let ends = |text: &str| text.ends_with(".yaml") || text.ends_with(".yml");
    word.text.as_deref().is_some_and(ends)
}

/// Whether a word that only the run knows may be any argument, and not the value of one.
fn has_loose_words(words: &[Word]) -> bool {
    let is_flag = |word: &Word| {
        word.text.as_deref().is_some_and(|text| text.starts_with('-') && !text.contains('='))
    };
    words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        word.text.is_none() && !before.is_some_and(is_flag)
    })
}

#[cfg(test)]
mod tests {
    use zeropilot_job::Outside;

    use crate::job::judge;
    use crate::rules::launch::model_first::{STAGE_2, STAGE_3};
    use crate::settings::Settings;

    /// The codes that a command with this training script gives.
    fn codes(command: &str, script: &str, config: &str) -> Vec<&'static str> {
        let files = |name: &str| match name {
            "t.py" => Some(script.to_owned()),
            "ds.json" => Some(config.to_owned()),
            _ => None,
        };
        let report = judge(command, &Outside::default(), &Settings::default(), &files);
        let found = report.files.iter().flat_map(|file| &file.report.diagnostics);
        found.map(|found| found.rule.code).collect()
    }

    const PARSED: &str = "args, model = TrlParser((DPOConfig, ModelConfig)).parse_args_and_config()\n\
        DPOTrainer(model='m', args=args, peft_config=get_peft_config(model)).train()\n";
    const LINE: &str = "torchrun --nproc_per_node 2 t.py --deepspeed ds.json";

    #[test]
    fn arguments_from_elsewhere_leave_everything_open() {
        let of = |more: &str| codes(&format!("{LINE} {more}"), PARSED, STAGE_2);
        assert_eq!(of(""), ["G16"]);
        assert_eq!(of("--learning_rate $RATE"), ["G16"]);
        for open in [
            "\"$@\"",
            "--bf16 $MORE $EVEN_MORE",
            "--config dpo.yaml",
            "--config $RECIPE",
            "dpo.yaml",
            "--use_peft",
            "--use_peft $ADAPT",
            "--precompute_ref_log_probs $EARLY",
        ] {
            assert_eq!(of(open), [""; 0], "{open}");
        }
    }

    #[test]
    fn adapters_that_are_made_elsewhere_leave_everything_open() {
        let of = |model: &str, trainer: &str| {
            let script = format!(
                "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\n{model}\n\
                DPOTrainer(model=model, args=args{trainer}).train()\n"
            );
            codes("torchrun --nproc_per_node 2 t.py", &script, STAGE_2)
        };
        let loaded = "model = AutoModelForCausalLM.from_pretrained('m')";
        assert_eq!(of(loaded, ""), ["G16"]);
        assert_eq!(of(loaded, ", peft_config=None"), ["G16"]);
        assert_eq!(of(loaded, ", peft_config=adapters()"), [""; 0]);
        assert_eq!(of(loaded, ", **more"), [""; 0]);
        let wrapped = "model = PeftModel.from_pretrained(base, 'adapter', is_trainable=True)";
        assert_eq!(of(wrapped, ""), [""; 0]);
    }

    #[test]
    fn who_generates_must_be_known() {
        let of = |arguments: &str| {
            let script = format!(
                "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8{arguments})\n\
                GRPOTrainer(model='m', reward_funcs=score, args=args).train()\n"
            );
            codes("torchrun --nproc_per_node 2 t.py", &script, STAGE_3)
        };
        assert_eq!(of(", use_vllm=False"), ["G17"]);
        assert_eq!(of(", use_vllm=has_vllm()"), [""; 0]);
        assert_eq!(of(", ds3_gather_for_generation=fits()"), [""; 0]);
        let other = "args = GRPOConfig(deepspeed='ds.json', per_device_train_batch_size=8)\n\
            FastGRPOTrainer(model='m', args=args).train()\n";
        assert_eq!(codes("torchrun --nproc_per_node 2 t.py", other, STAGE_3), [""; 0]);
    }

    #[test]
    fn presets_of_ms_swift_have_a_stage() {
        let of = |config: &str| {
            codes(
                &format!(
                    "NPROC_PER_NODE=2 swift rlhf --rlhf_type dpo --model m --train_type full --deepspeed {config}"
                ),
                "",
                "",
            )
        };
        assert_eq!(of("zero2"), ["G16"]);
        assert_eq!(of("zero3"), ["A14"]);
    }
}
