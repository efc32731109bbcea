//! From a launch to the training run it describes.

mod script;
mod task;

use std::cell::RefCell;
use std::collections::HashMap;
use std::str::FromStr;

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::{LineIndex, Span};

use crate::framework::Framework;
use crate::name::{Attention, MethodName, NumberFormat, Optimizer, Quantization};
use crate::origin::{Origin, Sourced};
use crate::recipe::{ARGUMENTS, swift_preset};
use crate::training_job::{
    ConfigContent, Direction, FrozenParts, JobConfig, NotModelled, TiledLoss, TrainingJob,
};
use crate::{
    ACCELERATE_SECTION, Assignment, Call, Files, Launch, LaunchScript, Launcher, Place,
    PythonScript, Said, Value, as_json, inline_config,
};

/// The allocator's settings of PyTorch.
const ALLOCATOR: [&str; 2] = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

/// The setting that lets its segments grow.
const EXPANDABLE: &str = "expandable_segments";

/// The plugin of axolotl that replaces projection and cross entropy by one kernel.
const CUT_CROSS_ENTROPY: &str = "CutCrossEntropyPlugin";

impl TrainingJob {
    /// The run that a launch of a script starts. `name` is the script's own name.
    pub fn of_launch(
        name: &str,
        text: &str,
        script: &LaunchScript,
        launch: &Launch,
        files: Files<'_>,
    ) -> Self {
        let reader = Reader { name, text, launch, files, lines: RefCell::default() };
        let mut job = reader.job();
        for set in launch.variables.iter().chain(&script.exported) {
            reader.allocator(set, &mut job);
        }
        job
    }
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    launch: &'a Launch,
    files: Files<'a>,
    /// Where the lines begin, of each file that a value comes from.
    lines: RefCell<HashMap<Option<String>, LineIndex>>,
}

impl Reader<'_> {
    fn job(&self) -> TrainingJob {
        let framework = self.framework();
        let mut job = TrainingJob { framework, ..TrainingJob::default() };
        job.config = self.config();
        job.world_size = self.launch.world.map(|ranks| Sourced {
            value: ranks as u64,
            origin: self.origin(&Place::here(self.launch.span())),
        });
        job.model = self.text("model").or_else(|| self.model_in_script());
        job.seq_len = self.number("seq_len");
        job.micro_batch = self.number("micro_batch");
        job.grad_accum = self.grad_accum(framework);
        job.max_steps = self.number("max_steps");
        job.grad_checkpointing = self.grad_checkpointing();
        job.liger = self.switch("liger");
        self.fused_loss(&mut job);
        job.precision = self.precision();
        job.sequence_parallel = self.sequence_parallel();
        let tiles = || Some(self.applied("TiledMLP")?.map(|_| true));
        job.tiled_mlp = self.switch("tiled_mlp").or_else(tiles);
        self.tiled_loss(&mut job);
        self.method(&mut job);
        self.optimizer(&mut job);
        self.attention(&mut job);
        for (field, is_absent) in [
            ("model", job.model.is_none()),
            ("seq_len", job.seq_len.is_none()),
            ("micro_batch", job.micro_batch.is_none()),
            ("grad_accum", job.grad_accum.is_none()),
            ("lora_rank", job.lora_rank.is_none()),
            ("grad_checkpointing", job.grad_checkpointing.is_none()),
        ] {
            if is_absent && self.is_unknown(field) {
                job.unknown.push(field);
            }
        }
        if let Some(framework) = framework {
            job.fill_defaults(framework);
        }
        self.frozen_parts(&mut job);
        self.task(&mut job);
        self.arguments_not_modelled(&mut job);
        self.offloaded_checkpoints(&mut job);
        self.calls_not_modelled(&mut job);
        job
    }

    fn framework(&self) -> Option<Framework> {
        Some(match self.launch.launcher {
            Launcher::LlamaFactory => Framework::LlamaFactory,
            Launcher::Swift => Framework::Swift,
            Launcher::Axolotl => Framework::Axolotl,
            _ if self.launch.is_axolotl() => Framework::Axolotl,
            _ if self.has_trl_trainer() => Framework::Trl,
            _ => match self.launch.given.front_end? {
                FrontEnd::HfTrainer => Framework::HfTrainer,
                FrontEnd::Accelerate => Framework::Accelerate,
                FrontEnd::DeepSpeed => Framework::DeepSpeed,
            },
        })
    }

    fn script(&self) -> Option<&PythonScript> {
        self.launch.script.as_ref()
    }

    fn origin(&self, place: &Place) -> Origin {
        let name = place.file.as_deref().unwrap_or(self.name);
        let mut known = self.lines.borrow_mut();
        let lines = known.entry(place.file.clone()).or_insert_with(|| {
            let other = place.file.as_deref().and_then(|file| (self.files)(file));
            LineIndex::new(other.as_deref().unwrap_or(self.text))
        });
        let line = lines.line_column(place.span.start).line;
        Origin::File { name: name.to_owned(), line }
    }

    /// An argument under one of its names: as the training script gets it, or as the command line gives it.
    fn text(&self, field: &str) -> Option<Sourced<String>> {
        ARGUMENTS.names(field).find_map(|name| self.argument(name))
    }

    fn argument(&self, name: &str) -> Option<Sourced<String>> {
        let line = || self.launch.line.iter().rev().find(|said| said.name == name);
        let said = self.launch.given.said(name).or_else(line);
        let said = said
            .map(|said| Sourced { value: said.value.clone(), origin: self.origin(&said.place) });
        said.or_else(|| self.member(name).filter(|one| one.value.1).map(|one| one.map(|it| it.0)))
    }

    fn number(&self, field: &str) -> Option<Sourced<u64>> {
        let found = ARGUMENTS.names(field).filter_map(|name| self.argument(name));
        found.filter_map(parsed).find(|number| number.value > 0)
    }

    fn switch(&self, field: &str) -> Option<Sourced<bool>> {
        let said = self.text(field)?;
        let value = match said.value.to_ascii_lowercase().as_str() {
            "" | "true" | "yes" | "1" | "on" => true,
            "false" | "no" | "0" | "off" | "none" | "null" => false,
            _ => return None,
        };
        Some(Sourced { value, origin: said.origin })
    }

    fn is_on(&self, field: &str) -> Option<Sourced<bool>> {
        self.switch(field).filter(|switch| switch.value)
    }

    /// Micro-batches of a step. Of a script with an `Accelerator`, the launch command and accelerate's own YAML decide
    /// (`ACCELERATE_GRADIENT_ACCUMULATION_STEPS`).
    fn grad_accum(&self, framework: Option<Framework>) -> Option<Sourced<u64>> {
        let of_launch = || {
            let launch = self.launch;
            if framework != Some(Framework::Accelerate) || !launch.by_accelerate {
                return None;
            }
            let said = launch.accelerate_field("gradient_accumulation_steps")?;
            parsed(Sourced { origin: self.origin(&said.place), value: said.value })
        };
        of_launch().filter(|steps| steps.value > 0).or_else(|| self.number("grad_accum"))
    }

    fn config(&self) -> Option<JobConfig> {
        let given = &self.launch.given;
        if let Some(place) = &given.dictionary {
            let name = place.file.clone().unwrap_or_else(|| self.name.to_owned());
            let text = (self.files)(&name).and_then(|script| as_json(&script, place.span));
            let content = text.map_or(ConfigContent::Computed, ConfigContent::Text);
            return Some(JobConfig { name, content, origin: self.origin(place) });
        }
        if let Some(named) = &given.config {
            let origin = self.origin(&named.place);
            let Some(name) = named.text.clone() else {
                let name = self.name.to_owned();
                return Some(JobConfig { name, content: ConfigContent::Computed, origin });
            };
            let written = self.launch.config_text.clone();
            let text = written.or_else(|| (self.files)(&name));
            let content = text.map_or(ConfigContent::Missing, ConfigContent::Text);
            return Some(JobConfig { name, content, origin });
        }
        if let Some(said) = given.said("deepspeed")
            && let Some(preset) = swift_preset(&said.value)
        {
            let content = ConfigContent::Text(preset.to_owned());
            let name = format!("ms-swift {}", said.value);
            return Some(JobConfig { name, content, origin: self.origin(&said.place) });
        }
        let (text, place) = inline_config::of(self.launch)?;
        let is_field = |said: &&Said| {
            let field = said.name.strip_prefix(ACCELERATE_SECTION);
            // That of the precision is outside the section.
            field.is_some_and(|field| field != "mixed_precision")
        };
        let field = self.launch.given.values.iter().find(is_field);
        let origin = self.origin(field.map_or(&place, |said| &said.place));
        Some(JobConfig {
            name: "accelerate".to_owned(),
            content: ConfigContent::Text(text),
            origin,
        })
    }

    /// What an argument of a call in the training script is, an option of the command line included.
    fn written(&self, value: (&Value, Span)) -> Option<Sourced<String>> {
        let program = self.launch.program.as_deref()?;
        let here = || self.origin(&Place::in_file(program, value.1));
        match value.0 {
            Value::Literal(text) => Some(Sourced { value: text.clone(), origin: here() }),
            Value::Argument(option) => {
                self.argument(option).or_else(|| match self.script()?.option_default(option)? {
                    (Value::Literal(text), span) => Some(Sourced {
                        value: text.clone(),
                        origin: self.origin(&Place::in_file(program, span)),
                    }),
                    _ => None,
                })
            }
            _ => None,
        }
    }

    fn keyword(&self, call: &Call, name: &str) -> Option<Sourced<String>> {
        self.written(call.keyword(name)?)
    }

    fn called(&self, name: &str) -> Option<&Call> {
        self.script()?.calls.iter().find(|call| call.name() == name)
    }

    fn model_load(&self) -> Option<&Call> {
        let is_model = |call: &&Call| {
            let class = call.object();
            call.name() == "from_pretrained"
                && (class.contains("AutoModel") || class.contains("For"))
        };
        self.script()?.calls.iter().find(is_model)
    }

    fn model_in_script(&self) -> Option<Sourced<String>> {
        let of_load = || {
            let call = self.model_load()?;
            self.written(call.argument(0, "pretrained_model_name_or_path")?)
        };
        self.policy().or_else(of_load).or_else(|| self.trained_model())
    }

    fn grad_checkpointing(&self) -> Option<Sourced<bool>> {
        if let Some(off) = self.is_on("no_grad_checkpointing") {
            return Some(off.map(|_| false));
        }
        let named = self.checkpoints_elsewhere();
        self.switch("grad_checkpointing").or(named.map(|said| said.map(|_| true))).or_else(|| {
            Some(self.placed(self.called("gradient_checkpointing_enable")?)?.map(|_| true))
        })
    }

    /// A call of `apply` of a function of DeepSpeed.
    fn applied(&self, class: &str) -> Option<Sourced<&Call>> {
        let is_it = |call: &&Call| {
            call.name() == "apply" && call.object().rsplit('.').next() == Some(class)
        };
        self.placed(self.script()?.calls.iter().find(is_it)?)
    }

    /// A call of the training script, with its place.
    fn placed<'c>(&self, call: &'c Call) -> Option<Sourced<&'c Call>> {
        let place = Place::in_file(self.launch.program.as_deref()?, call.span);
        Some(Sourced { value: call, origin: self.origin(&place) })
    }

    /// Liger's loss, by itself or with its other kernels, or that of axolotl's Cut Cross Entropy, which stores no logits
    /// either.
    fn fused_loss(&self, job: &mut TrainingJob) {
        let said = self.switch("fused_loss");
        let is_fused = |said: &Option<Sourced<bool>>| said.as_ref().is_some_and(|it| it.value);
        let cut = self.cut_cross_entropy(job).filter(|_| !is_fused(&said));
        if let Some(cut) = &cut {
            let words = (
                "Cut Cross Entropy, counted as Liger's fused loss",
                "Cut Cross Entropy，按 Liger 的融合 loss 计入",
            );
            let written = cut.clone().map(|_| CUT_CROSS_ENTROPY.to_owned());
            self.leave_out(job, words, &written, "plugins", Direction::Lower);
        }
        job.fused_loss = cut.or(said).or_else(|| job.liger.clone());
    }

    /// axolotl's plugin, which patches the loss that the model computes from labels: other tasks compute theirs from logits.
    /// Without the plugin axolotl does not read the key.
    fn cut_cross_entropy(&self, job: &mut TrainingJob) -> Option<Sourced<bool>> {
        let is_it = |class: &str| class.trim().rsplit('.').next() == Some(CUT_CROSS_ENTROPY);
        let plugin = self.argument("plugins").filter(|said| said.value.split(',').any(is_it));
        let switch = self.switch("cut_cross_entropy");
        if switch.as_ref().is_some_and(|switch| !switch.value) {
            return None;
        }
        if let (None, Some(on)) = (&plugin, switch) {
            let words = (
                "Cut Cross Entropy; axolotl applies it only if `plugins` contains CutCrossEntropyPlugin",
                "Cut Cross Entropy；只有 `plugins` 包含 CutCrossEntropyPlugin 时 axolotl 才会启用",
            );
            let written = on.map(|on| on.to_string());
            self.leave_out(job, words, &written, "cut_cross_entropy", Direction::Lower);
        }
        Some(plugin.filter(|_| self.argument("rl").is_none())?.map(|_| true))
    }

    /// Parts of a model that are frozen, and the size of its images. Other models than those with a tower have no such parts,
    /// whatever the defaults of a framework.
    fn frozen_parts(&self, job: &mut TrainingJob) {
        let by_default = |field: &str| {
            let (value, version) = job.framework?.default(field)?;
            let origin = Origin::FrameworkDefault { version };
            Some(Sourced { value: value.to_owned(), origin })
        };
        job.max_pixels = self
            .number("max_pixels")
            .or_else(|| self.max_pixels_of_swift(job.framework))
            .or_else(|| by_default("max_pixels").and_then(parsed));
        let adapts = job.method.as_ref().is_some_and(|said| said.value != MethodName::Full);
        let has_targets = job.lora_targets.as_ref().is_some_and(|said| !said.value.is_empty());
        if job.framework == Some(Framework::Swift) && adapts && has_targets {
            // Only `all-linear` looks at the parts.
            return;
        }
        let mut is_unknown = false;
        let mut part = |field: &str| {
            let said = self.switch(field);
            if said.is_none() && self.is_unknown(field) {
                is_unknown = true;
                return None;
            }
            said.or_else(|| by_default(field).and_then(parsed))
        };
        job.frozen = FrozenParts {
            towers: part("freeze_towers"),
            projector: part("freeze_projector"),
            language: part("freeze_language"),
        };
        if is_unknown {
            job.unknown.push("freeze");
        }
    }

    /// ms-swift also reads a variable.
    fn max_pixels_of_swift(&self, framework: Option<Framework>) -> Option<Sourced<u64>> {
        let is_it = |set: &&Assignment| set.name == "MAX_PIXELS";
        let set = self.launch.variables.iter().rfind(is_it)?;
        let value = set.value.text.as_deref()?.parse().ok()?;
        let origin = self.origin(&Place::here(set.value.span));
        Some(Sourced { value, origin }).filter(|_| framework == Some(Framework::Swift))
    }

    /// DeepSpeed's functions that compute the loss in shards. `sequence_tiled_compute` computes other things, too: a loss
    /// where its results are no sequence.
    fn tiled_loss(&self, job: &mut TrainingJob) {
        let fused = self.applied("TiledFusedLogitsLoss");
        let of_sequence = || self.placed(self.called("sequence_tiled_compute")?);
        let found = fused
            .map(|call| (call, TiledLoss::TiledFused, 5))
            .or_else(|| Some((of_sequence()?, TiledLoss::SequenceTiled, 2)));
        let Some((call, kind, place)) = found else { return };
        let is_loss = || {
            let dimension = call.value.argument(7, "output_unshard_dimension");
            matches!(dimension, Some((Value::Literal(text), _)) if text == "0")
        };
        if kind == TiledLoss::SequenceTiled && !is_loss() {
            let words = ("a part of the model computed in tiles", "模型的一部分分块计算");
            let said = call.map(|call| call.name().to_owned());
            return self.leave_out(job, words, &said, "script", Direction::Lower);
        }
        let shards = call.value.argument(place, "shards");
        job.loss_shards = shards.and_then(|shards| self.written(shards)).and_then(parsed);
        job.tiled_loss = Some(call.map(|_| kind));
    }

    /// GPUs that share a sequence: as an argument, or as the script registers Ulysses or builds a `ParallelismConfig`.
    fn sequence_parallel(&self) -> Option<Sourced<u64>> {
        let of_call = |name: &str, keyword: &str| {
            self.keyword(self.called(name)?, keyword).and_then(parsed::<u64>)
        };
        self.number("sequence_parallel")
            .or_else(|| of_call("register_with_transformers", "sequence_parallel_size"))
            .or_else(|| of_call("ParallelismConfig", "sp_size"))
            .filter(|size| size.value > 1)
    }

    fn precision(&self) -> Option<Sourced<NumberFormat>> {
        for (field, format) in [("bf16", NumberFormat::Bf16), ("fp16", NumberFormat::Fp16)] {
            let auto =
                || self.text(field).filter(|said| said.value == "auto").map(|it| it.map(|_| true));
            if let Some(on) = self.is_on(field).or_else(auto) {
                return Some(on.map(|_| format));
            }
        }
        let words = |said: Sourced<String>| {
            let value = match said.value.as_str() {
                "bf16" | "bfloat16" | "torch.bfloat16" => NumberFormat::Bf16,
                "fp16" | "float16" | "torch.float16" => NumberFormat::Fp16,
                "no" | "float32" | "torch.float32" => NumberFormat::Fp32,
                _ => return None,
            };
            Some(Sourced { value, origin: said.origin })
        };
        let plain = || self.text("dtype").filter(|_| self.launch.launcher == Launcher::Swift);
        self.text("mixed_precision").or_else(plain).and_then(words)
    }

    fn method(&self, job: &mut TrainingJob) {
        job.lora_rank = self.number("lora_rank");
        let all = self.is_on("all_linear").map(|on| on.map(|_| Vec::new()));
        job.lora_targets =
            all.or_else(|| self.text("lora_targets").map(|it| it.map(|text| targets(&text))));
        let named = self.text("method").and_then(|said| {
            let value = match said.value.to_ascii_lowercase().as_str() {
                "full" => MethodName::Full,
                "lora" => MethodName::Lora,
                "qlora" => MethodName::Qlora,
                "freeze" => {
                    self.leave_out(
                        job,
                        ("frozen layers", "冻结的层"),
                        &said,
                        "method",
                        Direction::Lower,
                    );
                    MethodName::Full
                }
                other if other.contains("lora") => {
                    let words =
                        ("this kind of adapter, counted as LoRA", "这种适配器，按 LoRA 计算");
                    self.leave_out(job, words, &said, "method", Direction::Either);
                    MethodName::Lora
                }
                _ => return None,
            };
            Some(Sourced { value, origin: said.origin })
        });
        let lora = || self.is_on("adapters").map(|on| on.map(|_| MethodName::Lora));
        let call = self.called("LoraConfig");
        let by_rank = || job.lora_rank.clone().map(|rank| rank.map(|_| MethodName::Lora));
        let off = self.switch("adapters").is_some_and(|switch| !switch.value);
        job.method =
            named.or_else(lora).or_else(|| Some(self.placed(call?)?.map(|_| MethodName::Lora)));
        if job.method.is_none() && !off {
            job.method = by_rank();
        }
        if job.method.is_none() {
            job.method = self.other_adapter(job);
        }
        if let Some(call) = call {
            let rank = || self.keyword(call, "r").and_then(parsed);
            job.lora_rank = job.lora_rank.take().or_else(rank);
            if job.lora_targets.is_none() {
                self.adapted_modules(call, job);
            }
        }
        self.quantization(job);
    }

    fn quantizes_scales(&self) -> bool {
        let said = self.switch("double_quantization").map(|said| said.value);
        let by_default = || self.framework()?.default("double_quantization");
        said.unwrap_or_else(|| by_default().is_none_or(|default| default.0 != "false"))
    }

    /// Adapters on a quantized base.
    fn quantization(&self, job: &mut TrainingJob) {
        let bits = self.number("bits");
        let with_bits = |count: u64| {
            let said = bits.clone().filter(|bits| bits.value == count);
            said.map(|bits| bits.origin)
        };
        let call = self.called("BitsAndBytesConfig");
        let in_script = |name: &str| {
            let said = self.keyword(call?, name)?;
            said.value.eq_ignore_ascii_case("true").then_some(said.origin)
        };
        let four = self.is_on("four_bit").map(|on| on.origin).or_else(|| with_bits(4));
        // Frameworks quantize the scales too; `BitsAndBytesConfig` by itself does not.
        let four_bits = four
            .map(|origin| (origin, self.quantizes_scales()))
            .or_else(|| {
                let twice = in_script("bnb_4bit_use_double_quant").is_some();
                in_script("load_in_4bit").map(|origin| (origin, twice))
            })
            .map(|(origin, twice)| {
                let value = if twice { Quantization::Nf4 } else { Quantization::Nf4Plain };
                Sourced { value, origin }
            });
        let eight = self.is_on("eight_bit").map(|on| on.origin).or_else(|| with_bits(8));
        let eight_bits = eight
            .or_else(|| in_script("load_in_8bit"))
            .map(|origin| Sourced { value: Quantization::Int8, origin });
        let quantization = four_bits.or(eight_bits);
        let framework_has_lora = || {
            let default = self.framework()?.default("method")?;
            (default.0 == "lora").then_some(())
        };
        let has_lora = match &job.method {
            Some(method) => method.value == MethodName::Lora,
            None => framework_has_lora().is_some(),
        };
        if let Some(quantization) = quantization.filter(|_| has_lora) {
            job.method = Some(quantization.clone().map(|_| MethodName::Qlora));
            job.quantization = Some(quantization);
        }
        if let Some(other) = bits.filter(|bits| bits.value != 4 && bits.value != 8) {
            let said = other.map(|bits| bits.to_string());
            self.leave_out(
                job,
                ("a quantized base model", "量化的基座模型"),
                &said,
                "bits",
                Direction::Lower,
            );
        }
    }

    fn optimizer(&self, job: &mut TrainingJob) {
        let Some(said) = self.text("optimizer") else { return };
        let name = said.value.to_ascii_lowercase();
        let is_small = name.contains("8bit") || name.contains("bnb");
        let known = match name.as_str() {
            _ if name.contains("adafactor") => Some(Optimizer::Adafactor),
            _ if name.contains("adam") && is_small => Some(Optimizer::Adamw8bit),
            _ if name.contains("paged") || name.contains("galore") || name.contains("apollo") => {
                None
            }
            _ if name.contains("adam") && !name.contains("mini") && !name.contains("4bit") => {
                Some(Optimizer::Adamw)
            }
            _ if name.contains("lion") && !is_small => Some(Optimizer::Lion),
            "sgd" => Some(Optimizer::Sgd),
            _ => None,
        };
        match known {
            Some(value) => job.optimizer = Some(Sourced { value, origin: said.origin }),
            None => {
                let words = ("this optimizer, counted as AdamW", "该优化器，按 AdamW 计算");
                self.leave_out(job, words, &said, "optim", Direction::Either);
            }
        }
    }

    fn attention(&self, job: &mut TrainingJob) {
        for (field, form) in [
            ("flash_attention", Attention::Flash),
            ("sdpa_attention", Attention::Sdpa),
            ("eager_attention", Attention::Eager),
        ] {
            if let Some(on) = self.is_on(field) {
                job.attention = Some(on.map(|_| form));
                return;
            }
        }
        let in_script = || self.keyword(self.model_load()?, "attn_implementation");
        let Some(said) = self.text("attention").or_else(in_script) else {
            if self.has_open_member("attention") {
                job.unknown.push("attention");
            }
            return;
        };
        let value = match said.value.to_ascii_lowercase().as_str() {
            "auto" => Attention::Auto,
            "eager" | "disabled" => Attention::Eager,
            "sdpa" => Attention::Sdpa,
            "fa2" | "fa3" => Attention::Flash,
            name if name.starts_with("flash_att") || name.contains("flash-attn") => {
                Attention::Flash
            }
            _ => {
                let words = ("this attention implementation", "这种注意力实现");
                self.leave_out(job, words, &said, "attn_implementation", Direction::Either);
                return;
            }
        };
        job.attention = Some(Sourced { value, origin: said.origin });
    }

    fn arguments_not_modelled(&self, job: &mut TrainingJob) {
        for known in &ARGUMENTS.not_modelled {
            for name in &known.names {
                let said = self.setting(name, known);
                let said = said.filter(|said| known.is_active(&said.value));
                if let Some(said) = said.filter(|_| !self.is_followed(name, job)) {
                    self.leave_out(job, (&known.en, &known.zh), &said, name, known.direction);
                }
            }
        }
    }

    fn leave_out(
        &self,
        job: &mut TrainingJob,
        (en, zh): (&str, &str),
        said: &Sourced<String>,
        name: &str,
        direction: Direction,
    ) {
        let value = if said.value.is_empty() { "true" } else { &said.value };
        job.not_modelled.push(NotModelled {
            en: en.to_owned(),
            zh: zh.to_owned(),
            written: format!("{name}={value}"),
            direction,
            origin: said.origin.clone(),
        });
    }

    /// A setting of PyTorch's allocator: growing segments are followed, the others are not.
    fn allocator(&self, set: &Assignment, job: &mut TrainingJob) {
        let known = set.value.text.as_deref().filter(|_| ALLOCATOR.contains(&set.name.as_str()));
        let Some(value) = known else { return };
        let origin = self.origin(&Place::here(set.value.span));
        if let Some((EXPANDABLE, grows)) = value.split_once(':')
            && let Ok(value) = grows.to_lowercase().parse()
        {
            job.expandable_segments = Some(Sourced { value, origin });
            return;
        }
        job.not_modelled.push(NotModelled {
            en: "the GPU memory allocator setting".to_owned(),
            zh: "显存分配器的设置".to_owned(),
            written: format!("{}={value}", set.name),
            direction: Direction::Lower,
            origin,
        });
    }
}

impl TrainingJob {
    /// Fills what the files leave open with what the framework uses then.
    fn fill_defaults(&mut self, framework: Framework) {
        let unknown = self.unknown.clone();
        let default = |field: &str| {
            let (value, version) =
                framework.default(field).filter(|_| !unknown.contains(&field))?;
            let origin = Origin::FrameworkDefault { version };
            Some(Sourced { value: value.to_owned(), origin })
        };
        for (place, field) in [
            (&mut self.seq_len, "seq_len"),
            (&mut self.micro_batch, "micro_batch"),
            (&mut self.grad_accum, "grad_accum"),
        ] {
            *place = place.take().or_else(|| default(field).and_then(parsed));
        }
        self.method = self
            .method
            .take()
            .or_else(|| default("method").map(|said| said.map(|_| MethodName::Lora)));
        if self.method.as_ref().is_some_and(|method| method.value != MethodName::Full) {
            self.lora_rank =
                self.lora_rank.take().or_else(|| default("lora_rank").and_then(parsed));
            self.lora_targets = self
                .lora_targets
                .take()
                .or_else(|| default("lora_targets").map(|it| it.map(|text| targets(&text))));
        }
        self.trl_head = default("fused_loss").map(|said| said.origin);
        self.grad_checkpointing = self
            .grad_checkpointing
            .take()
            .or_else(|| default("grad_checkpointing").map(|it| it.map(|text| text == "true")));
    }
}

fn parsed<T: FromStr>(said: Sourced<String>) -> Option<Sourced<T>> {
    let value = said.value.parse().ok()?;
    Some(Sourced { value, origin: said.origin })
}

/// Modules by their names; none for all linear layers.
fn targets(text: &str) -> Vec<String> {
    match text {
        "all" | "all-linear" | "ALL" => Vec::new(),
        _ => text.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
}
