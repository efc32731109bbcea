//! Random wishes: mostly sensible, some not.

use std::num::NonZeroU64;

use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use zeropilot_plan::{
    ActivationCheckpointing, AsyncIo, BatchRequest, Device, DynamicLossScale, HyperParameters,
    Knob, KnobKind, KnobValue, Knobs, Link, LossScale, LossScaleRequest, ModelSize, OffloadRequest,
    OptimizerKind, Precision, Preset, Request, SchedulerKind, Stage, Steps, Target, WarmupShape,
    Wish,
};
use zeropilot_units::Elements;

/// Something that is said one time in ten.
fn seldom<T: Clone + std::fmt::Debug>(
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    weighted(0.1, values)
}

fn wish<T: Copy + std::fmt::Debug + 'static>(
    values: &'static [T],
) -> impl Strategy<Value = Wish<T>> {
    prop_oneof![
        6 => Just(Wish::Open),
        1 => Just(Wish::No),
        3 => select(values).prop_map(Wish::Yes),
    ]
}

fn count(most: u64) -> impl Strategy<Value = NonZeroU64> {
    (1..=most).prop_map(|number| NonZeroU64::new(number).expect("at least one"))
}

fn value(knob: Knob) -> BoxedStrategy<KnobValue> {
    match knob.kind() {
        KnobKind::Elements => (0_u64..2_000_000_000)
            .prop_map(|elements| KnobValue::Elements(Elements(elements)))
            .boxed(),
        KnobKind::Count => (0_u64..16).prop_map(KnobValue::Count).boxed(),
        KnobKind::Flag => any::<bool>().prop_map(KnobValue::Flag).boxed(),
        KnobKind::Share => (0.0..1.1_f64).prop_map(KnobValue::Share).boxed(),
    }
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let one = select(Knob::ALL).prop_flat_map(|knob| (Just(knob), value(knob)));
    prop_oneof![
        2 => Just(Vec::new()).boxed(),
        1 => proptest::collection::vec(one, 1..3).boxed(),
    ]
    .prop_map(|chosen| {
        let mut knobs = Knobs::default();
        for (knob, value) in chosen {
            knobs.set(knob, value).expect("the right kind");
        }
        knobs
    })
}

fn stage() -> impl Strategy<Value = (Option<Preset>, Option<Stage>)> {
    const STAGES: [Stage; 4] = [Stage::Zero, Stage::One, Stage::Two, Stage::Three];
    prop_oneof![
        10 => select(&Preset::ALL[..]).prop_map(|preset| (Some(preset), None)),
        10 => select(&STAGES[..]).prop_map(|stage| (None, Some(stage))),
        1 => (of(select(&Preset::ALL[..])), of(select(&STAGES[..]))),
    ]
}

fn offload() -> impl Strategy<Value = OffloadRequest> {
    const DEVICES: &[Device] = &[Device::Cpu, Device::Cpu, Device::Nvme];
    let device = || prop_oneof![4 => Just(Wish::Open), 1 => wish(DEVICES)];
    let path = prop_oneof![4 => Just(Some("/nvme".to_owned())), 1 => Just(None)];
    (weighted(0.2, Just(())), device(), device(), path, seldom(any::<bool>())).prop_map(
        |(all, optimizer, parameters, nvme_path, pin_memory)| OffloadRequest {
            all: all.is_some(),
            optimizer,
            parameters,
            nvme_path,
            pin_memory,
        },
    )
}

fn precision() -> impl Strategy<Value = (Vec<Precision>, LossScaleRequest)> {
    const ALL: [Precision; 3] = [
        Precision::Bf16,
        Precision::Fp16(LossScale::Dynamic(DynamicLossScale {
            initial_scale_power: None,
            window: None,
            hysteresis: None,
            minimum: None,
        })),
        Precision::Fp32,
    ];
    let scale = (
        seldom(0.0..1000.0_f64),
        seldom(1..32_u64),
        seldom(1..5000_u64),
        seldom(1..5_u64),
        seldom(1..5_u64),
    )
        .prop_map(|(fixed, initial_scale_power, window, hysteresis, minimum)| {
            LossScaleRequest {
                fixed,
                dynamic: DynamicLossScale { initial_scale_power, window, hysteresis, minimum },
            }
        });
    let formats = prop_oneof![
        20 => select(&ALL[..]).prop_map(|one| vec![one]),
        1 => proptest::collection::vec(select(&ALL[..]), 0..3),
    ];
    (formats, scale).prop_map(|(formats, scale)| {
        let is_fp16 = matches!(formats.first(), Some(Precision::Fp16(_)));
        (formats, if is_fp16 { scale } else { LossScaleRequest::default() })
    })
}

fn batch() -> impl Strategy<Value = BatchRequest> {
    (of(count(64)), of(count(64)), of(count(1024)), seldom(count(100_000))).prop_map(
        |(micro, accumulation, world, global)| BatchRequest { micro, accumulation, world, global },
    )
}

fn hyper_parameters() -> impl Strategy<Value = HyperParameters> {
    (
        of(1e-6..1e-2_f64),
        seldom((0.5..1.0_f64, 0.5..1.0_f64)),
        seldom(1e-10..1e-5),
        seldom(0.0..0.2),
    )
        .prop_map(|(learning_rate, betas, epsilon, weight_decay)| HyperParameters {
            learning_rate,
            betas,
            epsilon,
            weight_decay,
        })
}

fn steps() -> impl Strategy<Value = Steps> {
    let shape = select(&[WarmupShape::Linear, WarmupShape::Log][..]);
    (of(count(500)), of(count(10_000)), seldom(shape)).prop_map(|(warmup, total, shape)| Steps {
        warmup,
        total,
        shape,
    })
}

fn sections() -> impl Strategy<Value = (Option<ActivationCheckpointing>, AsyncIo, Option<u64>)> {
    let checkpointing = (any::<[bool; 4]>(), of(1..100_u64)).prop_map(
        |([partition, cpu, synchronize, profile], number_checkpoints)| ActivationCheckpointing {
            partition_activations: partition,
            cpu_checkpointing: cpu,
            number_checkpoints,
            synchronize_checkpoint_boundary: synchronize,
            profile,
        },
    );
    let async_io = (
        seldom(4096..1_048_576_u64),
        seldom(1..64_u64),
        seldom(1..16_u64),
        seldom(any::<bool>()),
        seldom(any::<bool>()),
    )
        .prop_map(
            |(block_size, queue_depth, intra_op_parallelism, single_submit, overlap_events)| {
                AsyncIo {
                    block_size,
                    queue_depth,
                    intra_op_parallelism,
                    single_submit,
                    overlap_events,
                }
            },
        );
    (
        seldom(checkpointing),
        prop_oneof![9 => Just(AsyncIo::default()), 1 => async_io],
        seldom(1..100_u64),
    )
}

fn sizes() -> impl Strategy<Value = (Option<ModelSize>, Option<Link>)> {
    let model = (64..20_000_u64, 1_000_000..500_000_000_000_u64, 1_000..3_000_000_000_u64)
        .prop_map(|(hidden, parameters, largest)| ModelSize {
            hidden,
            parameters: Elements(parameters),
            largest: Elements(largest),
        });
    (of(model), of((1e9..1e12_f64).prop_map(|bandwidth| Link { bandwidth })))
}

/// Any wish.
pub(crate) fn wishes() -> impl Strategy<Value = Request> {
    let what = (select(&Target::ALL[..]), stage(), offload(), precision(), batch());
    let how = (
        wish(&OptimizerKind::ALL),
        hyper_parameters(),
        wish(&SchedulerKind::ALL),
        steps(),
        seldom(0.0..2.0_f64),
    );
    (what, how, sections(), knobs(), sizes()).prop_map(|(what, how, sections, knobs, sizes)| {
        let (target, (preset, stage), mut offload, (precisions, loss_scale), batch) = what;
        let (optimizer, hyper_parameters, scheduler, mut steps, clipping) = how;
        let (checkpointing, async_io, steps_per_print) = sections;
        let asks_for_disk = preset == Some(Preset::Zero3Nvme)
            || [offload.optimizer, offload.parameters].contains(&Wish::Yes(Device::Nvme));
        if !asks_for_disk {
            offload.nvme_path = None;
        }
        let mut hyper_parameters = hyper_parameters;
        if optimizer != Wish::Open && target == Target::Accelerate {
            hyper_parameters = HyperParameters::default();
        }
        if scheduler == Wish::Open {
            steps = Steps::default();
        }
        Request {
            target,
            preset,
            stage,
            offload,
            precisions,
            loss_scale,
            batch,
            optimizer,
            hyper_parameters,
            scheduler,
            steps,
            clipping,
            checkpointing,
            async_io,
            steps_per_print,
            knobs,
            model: sizes.0,
            link: sizes.1,
        }
    })
}
