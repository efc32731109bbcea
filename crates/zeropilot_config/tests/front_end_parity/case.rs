//! One run of a front end: the config, all that is known besides, and the question to the real one.

use serde_json::{Value as Json, json};
use zeropilot_config::front_end::{
    Arguments, Filled, FrontEnd, MixedPrecision, ModelFacts, Number, OptimizerInCode,
    PluginArguments, SchedulerInCode, fill,
};
use zeropilot_config::syntax::Node;

use super::arguments::{random_accelerate, random_model, random_plugin, random_trainer};
use super::configs::{mutate, reconcile};
use super::tree::text_of;
use zeropilot_oracle::Random;

/// A config with everything known that a front end asks for.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) front_end: FrontEnd,
    pub(crate) config: Node,
    pub(crate) arguments: Arguments,
    pub(crate) model: ModelFacts,
    pub(crate) world_size: u64,
}

impl Case {
    /// What we make of it.
    pub(crate) fn filled(&self) -> Filled {
        fill(
            self.front_end,
            &self.config,
            &self.arguments,
            Some(&self.model),
            Some(self.world_size),
        )
    }

    /// The question to `oracle/front_end_server.py`.
    pub(crate) fn request(&self) -> Json {
        let arguments = match self.front_end {
            FrontEnd::Accelerate => accelerate_json(&self.arguments),
            _ => trainer_json(&self.arguments),
        };
        json!({
            "front_end": self.front_end.name(),
            "config": text_of(&self.config.value),
            "arguments": arguments,
            "model": model_json(&self.model),
            "world_size": self.world_size,
        })
    }

    pub(crate) fn random(random: &mut Random, front_end: FrontEnd, templates: &[Node]) -> Self {
        let world_size = *random.pick(&[1, 1, 2, 3, 4, 8, 16, 64]);
        let mut config = random.pick(templates).clone();
        let plugin = random_plugin(random, front_end);
        let trainer = random_trainer(random);
        let mut arguments = Arguments { trainer, plugin, ..Arguments::default() };
        let wild = random.one_in(3);
        for _ in 0..random.below(7) {
            mutate(random, &mut config, &arguments, world_size, wild);
        }
        if !random.one_in(4) {
            reconcile(random, front_end, &mut config, &arguments, world_size);
        }
        arguments.accelerate = random_accelerate(random, &config, world_size);
        Self { front_end, config, arguments, model: random_model(random), world_size }
    }
}

fn number_json(number: Option<Number>) -> Json {
    match number {
        Some(Number::Int(number)) => json!(number),
        Some(Number::Float(number)) => json!(number),
        None => Json::Null,
    }
}

fn plugin_json(plugin: &PluginArguments) -> Json {
    let mut fields = json!({
        "gradient_accumulation_steps": plugin.gradient_accumulation_steps,
        "gradient_clipping": number_json(plugin.gradient_clipping),
        "zero_stage": plugin.zero_stage,
        "offload_optimizer_device": plugin.offload_optimizer_device,
        "offload_param_device": plugin.offload_param_device,
        "offload_optimizer_nvme_path": plugin.offload_optimizer_nvme_path,
        "offload_param_nvme_path": plugin.offload_param_nvme_path,
        "zero3_save_16bit_model": plugin.zero3_save_16bit_model,
        "rocm": plugin.rocm,
        "accelerate_config_fields": plugin.accelerate_config_fields,
    });
    if let Some(smallest) = plugin.is_train_batch_min {
        fields["is_train_batch_min"] = json!(smallest);
    }
    fields
}

fn trainer_json(arguments: &Arguments) -> Json {
    let trainer = &arguments.trainer;
    json!({
        "per_device_train_batch_size": trainer.per_device_train_batch_size,
        "gradient_accumulation_steps": trainer.gradient_accumulation_steps,
        "max_grad_norm": number_json(trainer.max_grad_norm),
        "learning_rate": number_json(trainer.learning_rate),
        "adam_beta1": number_json(trainer.adam_beta1),
        "adam_beta2": number_json(trainer.adam_beta2),
        "adam_epsilon": number_json(trainer.adam_epsilon),
        "weight_decay": number_json(trainer.weight_decay),
        "warmup_steps": number_json(trainer.warmup_steps),
        "num_training_steps": trainer.num_training_steps,
        "fp16": trainer.fp16,
        "bf16": trainer.bf16,
        "fp16_full_eval": trainer.fp16_full_eval,
        "bf16_full_eval": trainer.bf16_full_eval,
        "save_on_each_node": trainer.save_on_each_node,
        "auto_find_batch_size": trainer.auto_find_batch_size,
        "environment_mixed_precision": trainer.environment_mixed_precision.map(MixedPrecision::name),
        "plugin": plugin_json(&arguments.plugin),
    })
}

fn accelerate_json(arguments: &Arguments) -> Json {
    let accelerate = &arguments.accelerate;
    let optimizer = match accelerate.optimizer {
        Some(OptimizerInCode::Dummy { lr, weight_decay }) => {
            json!({"kind": "dummy", "lr": number_json(lr), "weight_decay": number_json(weight_decay)})
        }
        Some(OptimizerInCode::Torch { lr }) => json!({"kind": "torch", "lr": number_json(lr)}),
        _ => Json::Null,
    };
    let scheduler = match accelerate.scheduler {
        Some(SchedulerInCode::Dummy { total_num_steps, warmup_num_steps, callable }) => json!({
            "kind": "dummy",
            "total_num_steps": total_num_steps.flatten(),
            "warmup_num_steps": warmup_num_steps,
            "callable": callable,
        }),
        Some(SchedulerInCode::Torch) => json!({"kind": "torch"}),
        _ => Json::Null,
    };
    json!({
        "mixed_precision": accelerate.mixed_precision.map(MixedPrecision::name),
        "gradient_accumulation_steps": accelerate.gradient_accumulation_steps,
        "dataloader_batch_sizes": accelerate.dataloader_batch_sizes,
        "split_batches": accelerate.split_batches,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "plugin": plugin_json(&arguments.plugin),
    })
}

fn model_json(model: &ModelFacts) -> Json {
    if !model.has_config {
        return Json::Null;
    }
    let text = model
        .text_config
        .as_ref()
        .map(|text| json!({"hidden_size": text.hidden_size, "hidden_sizes": text.hidden_sizes}));
    json!({"hidden_size": model.hidden_size, "hidden_sizes": model.hidden_sizes, "text_config": text})
}
