//! Arguments a training script might give, some of them forgotten on request.

use zeropilot_config::front_end::{
    AccelerateArguments, Arguments, FrontEnd, MixedPrecision, ModelFacts, Number, OptimizerInCode,
    PluginArguments, SchedulerInCode, TextConfigFacts, TrainerArguments,
};
use zeropilot_config::syntax::Node;

use super::tree::lookup;
use zeropilot_oracle::Random;

pub(crate) fn random_model(random: &mut Random) -> ModelFacts {
    const WIDTHS: [u64; 8] = [1, 64, 768, 1023, 2048, 3584, 4096, 12_289];
    let mut model = ModelFacts::with_hidden_size(*random.pick(&WIDTHS));
    if random.one_in(4) {
        model.hidden_size = None;
        if random.one_in(2) {
            model.hidden_sizes =
                Some((0..random.below(4)).map(|_| *random.pick(&WIDTHS)).collect());
        }
        if random.one_in(2) {
            let hidden_size = random.one_in(2).then(|| *random.pick(&WIDTHS));
            let hidden_sizes =
                random.one_in(2).then(|| vec![*random.pick(&WIDTHS), *random.pick(&WIDTHS)]);
            model.text_config = Some(TextConfigFacts { hidden_size, hidden_sizes });
        }
        model.has_config = !random.one_in(6);
    }
    model
}

pub(crate) fn random_plugin(random: &mut Random, front_end: FrontEnd) -> PluginArguments {
    if random.one_in(2) {
        return PluginArguments::default();
    }
    let device = |random: &mut Random| {
        random.one_in(2).then(|| (*random.pick(&["none", "cpu", "nvme"])).to_owned())
    };
    let path = |random: &mut Random| random.one_in(3).then(|| "/local_nvme".to_owned());
    let fields = if random.one_in(20) {
        vec!["zero3_init_flag", "zero_stage"]
    } else {
        vec!["deepspeed_hostfile"]
    };
    PluginArguments {
        gradient_accumulation_steps: random.one_in(3).then(|| *random.pick(&[1, 2, 5])),
        gradient_clipping: random.one_in(3).then(|| Number::Float(*random.pick(&[0.5, 1.0]))),
        zero_stage: random.one_in(2).then(|| *random.pick(&[0, 1, 2, 3])),
        offload_optimizer_device: device(random),
        offload_param_device: device(random),
        offload_optimizer_nvme_path: path(random),
        offload_param_nvme_path: path(random),
        zero3_save_16bit_model: random.one_in(2).then(|| random.one_in(2)),
        // The Trainer builds its plugin without arguments, and this one has no variable.
        is_train_batch_min: (front_end == FrontEnd::Accelerate && random.one_in(3))
            .then(|| random.one_in(2)),
        rocm: Some(random.one_in(4)),
        accelerate_config_fields: if random.one_in(2) {
            fields.into_iter().map(str::to_owned).collect()
        } else {
            vec![]
        },
    }
}

pub(crate) fn random_trainer(random: &mut Random) -> TrainerArguments {
    let float = |random: &mut Random, choices: &[f64]| Some(Number::Float(*random.pick(choices)));
    let (fp16, bf16) = *random.pick(&[(false, false), (true, false), (false, true), (false, true)]);
    let rarely_negative = if random.one_in(40) { -1 } else { 5 };
    TrainerArguments {
        per_device_train_batch_size: Some(*random.pick(&[1, 2, 3, 4, 8, 16])),
        gradient_accumulation_steps: Some(*random.pick(&[1, 1, 2, 4, 7])),
        max_grad_norm: Some(*random.pick(&[
            Number::Float(1.0),
            Number::Float(0.5),
            Number::Int(1),
            Number::Float(0.0),
        ])),
        learning_rate: float(random, &[5e-5, 0.001, 1e-4, 3.0e-4]),
        adam_beta1: float(random, &[0.9, 0.8]),
        adam_beta2: float(random, &[0.999, 0.95]),
        adam_epsilon: float(random, &[1e-8, 1e-6]),
        weight_decay: float(random, &[0.0, 0.01, 0.1]),
        warmup_steps: Some(*random.pick(&[
            Number::Int(0),
            Number::Float(0.0),
            Number::Float(0.03),
            Number::Float(0.1),
            Number::Int(1),
            Number::Int(100),
            Number::Float(250.7),
            Number::Int(rarely_negative),
        ])),
        num_training_steps: Some(*random.pick(&[1, 10, 99, 1000, 12_345])),
        fp16: Some(fp16),
        bf16: Some(bf16 || random.one_in(60)),
        fp16_full_eval: Some(random.one_in(12)),
        bf16_full_eval: Some(random.one_in(12)),
        save_on_each_node: Some(random.one_in(8)),
        auto_find_batch_size: Some(random.one_in(8)),
        environment_mixed_precision: Some(if random.one_in(10) {
            *random.pick(&[MixedPrecision::Fp16, MixedPrecision::Bf16, MixedPrecision::Fp8])
        } else {
            MixedPrecision::No
        }),
    }
}

pub(crate) fn random_accelerate(
    random: &mut Random,
    config: &Node,
    world_size: u64,
) -> AccelerateArguments {
    const PRECISIONS: [MixedPrecision; 6] = [
        MixedPrecision::No,
        MixedPrecision::No,
        MixedPrecision::No,
        MixedPrecision::Fp16,
        MixedPrecision::Bf16,
        MixedPrecision::Fp8,
    ];
    let has = |key: &str| lookup(config, key).is_some();
    let lr = Some(*random.pick(&[Number::Float(0.001), Number::Float(5e-5), Number::Int(1)]));
    let dummy = OptimizerInCode::Dummy {
        lr,
        weight_decay: Some(*random.pick(&[Number::Int(0), Number::Float(0.01)])),
    };
    let torch = OptimizerInCode::Torch { lr };
    let optimizer = match random.below(12) {
        0 => OptimizerInCode::Absent,
        1 => *random.pick(&[dummy, torch]),
        _ if has("optimizer") => dummy,
        _ => torch,
    };
    let dummy = SchedulerInCode::Dummy {
        total_num_steps: Some((!random.one_in(6)).then(|| *random.pick(&[1, 10, 1000, 4097]))),
        warmup_num_steps: Some(*random.pick(&[0, 1, 10, 100])),
        callable: random.one_in(6),
    };
    let scheduler = match random.below(12) {
        0 => dummy,
        1 => SchedulerInCode::Torch,
        _ if has("scheduler") => dummy,
        _ => SchedulerInCode::Absent,
    };
    let split_batches = random.one_in(5);
    let unit = if split_batches && !random.one_in(4) { world_size } else { 1 };
    let loaders = (0..*random.pick(&[0, 1, 1, 1, 2, 3]))
        .map(|_| (!random.one_in(40)).then(|| unit * *random.pick(&[1, 2, 4, 8, 6])))
        .collect();
    AccelerateArguments {
        mixed_precision: Some(*random.pick(&PRECISIONS)),
        gradient_accumulation_steps: Some(*random.pick(&[1, 1, 2, 4])),
        dataloader_batch_sizes: Some(loaders),
        split_batches: Some(split_batches),
        optimizer: Some(optimizer),
        scheduler: Some(scheduler),
    }
}

/// Takes some of what is known away.
pub(crate) fn forget_some(random: &mut Random, arguments: &mut Arguments) {
    fn maybe<T>(random: &mut Random, value: &mut Option<T>) {
        if random.one_in(3) {
            *value = None;
        }
    }
    let trainer = &mut arguments.trainer;
    maybe(random, &mut trainer.per_device_train_batch_size);
    maybe(random, &mut trainer.gradient_accumulation_steps);
    maybe(random, &mut trainer.max_grad_norm);
    maybe(random, &mut trainer.learning_rate);
    maybe(random, &mut trainer.adam_beta1);
    maybe(random, &mut trainer.adam_beta2);
    maybe(random, &mut trainer.adam_epsilon);
    maybe(random, &mut trainer.weight_decay);
    maybe(random, &mut trainer.warmup_steps);
    maybe(random, &mut trainer.num_training_steps);
    maybe(random, &mut trainer.fp16);
    maybe(random, &mut trainer.bf16);
    maybe(random, &mut trainer.fp16_full_eval);
    maybe(random, &mut trainer.bf16_full_eval);
    let accelerate = &mut arguments.accelerate;
    maybe(random, &mut accelerate.mixed_precision);
    maybe(random, &mut accelerate.gradient_accumulation_steps);
    maybe(random, &mut accelerate.dataloader_batch_sizes);
    maybe(random, &mut accelerate.split_batches);
    if let Some(OptimizerInCode::Dummy { lr, weight_decay }) = &mut accelerate.optimizer {
        maybe(random, lr);
        maybe(random, weight_decay);
    }
    if let Some(SchedulerInCode::Dummy { total_num_steps, warmup_num_steps, .. }) =
        &mut accelerate.scheduler
    {
        maybe(random, total_num_steps);
        maybe(random, warmup_num_steps);
    }
}
