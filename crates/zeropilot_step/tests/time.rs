//! Laws of simulated steps.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use zeropilot_cluster::{Cluster, Fabric, Outlook, Pace};
use zeropilot_config::resolve::{Circumstances, ResolvedConfig, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::catalogue;
use zeropilot_step::lower::{Conditions, Lowered, Recipe};
use zeropilot_step::program::StepProgram;
use zeropilot_step::tape::{Kernels, Options};
use zeropilot_step::time::calibration::{MeasuredStep, fit};
use zeropilot_step::time::{Cause, Machine, Spans, StepTime, Stream, observe, simulate};
use zeropilot_step::traffic::Traffic;

struct Job {
    model: &'static str,
    world: u64,
    zero: &'static str,
    accumulation: u64,
    recipe: Recipe,
}

impl Job {
    fn new(model: &'static str, world: u64, zero: &'static str) -> Self {
        let recipe = Recipe { checkpointing: true, ..Recipe::full(2048) };
        Self { model, world, zero, accumulation: 1, recipe }
    }

    fn resolved(&self) -> ResolvedConfig {
        let text = format!(
            r#"{{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": {},
                 "bf16": {{"enabled": true}}, "zero_optimization": {}}}"#,
            self.accumulation, self.zero
        );
        let document = parse_json(&text).unwrap();
        let circumstances = Circumstances::new(EngineVersion::NEWEST, self.world as usize);
        resolve(document.root(), circumstances).resolved.unwrap()
    }

    fn lowered(&self) -> Lowered {
        let resolved = self.resolved();
        let options = Options { kernels: Kernels::Cuda, ..Options::default() };
        let element = resolved.precision().element_size();
        let conditions = Conditions::of(&resolved.zero(), element, 1, options);
        let model = catalogue::find(self.model).unwrap().model().unwrap();
        Lowered::new(&model, &self.recipe, &conditions).unwrap()
    }

    fn program_of(&self, lowered: &Lowered) -> StepProgram {
        let resolved = self.resolved();
        let zero = resolved.zero();
        StepProgram::of(lowered, &lowered.rank(&resolved, &zero, self.world, 0), true)
    }

    fn program(&self) -> StepProgram {
        self.program_of(&self.lowered())
    }
}

fn machine(gpus: &str) -> Machine {
    let cluster = Cluster::new(gpus.parse().unwrap());
    let job = Job::new("qwen3-8b", 8, r#"{"stage": 3}"#);
    Machine::of(&cluster, job.resolved().precision(), Outlook::Expected).unwrap()
}

const STAGES: [&str; 8] = [
    r#"{"stage": 0}"#,
    r#"{"stage": 1}"#,
    r#"{"stage": 2}"#,
    r#"{"stage": 2, "overlap_comm": true}"#,
    r#"{"stage": 3}"#,
    r#"{"stage": 3, "overlap_comm": false}"#,
    r#"{"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true}}"#,
    r#"{"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
        "offload_param": {"device": "cpu", "pin_memory": true}}"#,
];

/// Everything but kernels takes no time.
fn nothing_but_kernels(machine: Machine) -> Machine {
    let never = f64::INFINITY;
    Machine {
        pace: Pace {
            kernel: 0.0,
            hook: 0.0,
            micro_step: 0.0,
            step: 0.0,
            to_device: never,
            to_host: never,
            host_updates: never,
            ..machine.pace
        },
        fabric: Fabric { gpus_per_node: 8, ..Fabric::free() },
    }
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

#[test]
fn kernels_and_waits_are_the_whole_step() {
    for zero in STAGES {
        let time = simulate(&Job::new("qwen3-8b", 16, zero).program(), &machine("2x8xH100"));
        let all = time.busy(Stream::Compute) + time.waits.iter().sum::<f64>();
        assert!(is_near(all, time.total), "{zero}: {all} {time:?}");
        assert!(is_near(time.forward + time.backward + time.step, time.total), "{zero}");
    }
}

#[test]
fn links_that_cost_nothing_leave_the_kernels() {
    for zero in STAGES {
        let time = simulate(
            &Job::new("qwen3-8b", 16, zero).program(),
            &nothing_but_kernels(machine("2x8xH100")),
        );
        assert!(is_near(time.busy(Stream::Compute), time.total), "{zero}: {time:?}");
    }
}

#[test]
fn more_of_anything_is_never_slower() {
    type Improve = fn(&mut Machine, f64);
    let improvements: [Improve; 9] = [
        |machine, by| machine.fabric.inside_rate *= by,
        |machine, by| machine.fabric.outside_rate *= by,
        |machine, by| machine.fabric.call /= by,
        |machine, by| machine.pace.products *= by,
        |machine, by| machine.pace.memory *= by,
        |machine, by| machine.pace.kernel /= by,
        |machine, by| machine.pace.hook /= by,
        |machine, by| machine.pace.to_device *= by,
        |machine, by| machine.pace.host_updates *= by,
    ];
    for zero in STAGES {
        let program = Job::new("qwen3-8b", 16, zero).program();
        for (number, improve) in improvements.iter().enumerate() {
            let mut before = f64::INFINITY;
            for by in [0.1, 0.5, 1.0, 2.0, 10.0] {
                let mut machine = machine("2x8xA100-80G");
                improve(&mut machine, by);
                let total = simulate(&program, &machine).total;
                assert!(total <= before * (1.0 + 1e-12), "{zero} {number} {by}: {total} {before}");
                before = total;
            }
        }
    }
}

#[test]
fn overlap_is_never_slower() {
    let pairs = [
        (r#"{"stage": 2}"#, r#"{"stage": 2, "overlap_comm": true}"#),
        (r#"{"stage": 3, "overlap_comm": false}"#, r#"{"stage": 3}"#),
    ];
    for gpus in ["2x8xA100-80G", "2x8xH100", "16x1xH100"] {
        for (apart, together) in pairs {
            let time = |zero| simulate(&Job::new("qwen3-8b", 16, zero).program(), &machine(gpus));
            let (apart, together) = (time(apart).total, time(together).total);
            assert!(together <= apart, "{gpus}: {together} {apart}");
        }
    }
}

#[test]
fn accumulation_takes_as_many_micro_steps() {
    for zero in STAGES {
        let time = |accumulation| {
            let job = Job { accumulation, ..Job::new("qwen3-8b", 16, zero) };
            simulate(&job.program(), &machine("2x8xH100")).total
        };
        // The first and the last micro step may differ from those between, which are all alike.
        let (three, four, nine) = (time(3), time(4), time(9));
        assert!(is_near(nine - three, 6.0 * (four - three)), "{zero}: {three} {four} {nine}");
    }
}

/// Bytes each rank sends in a step, in times the model in bf16, and corrected for its own share.
fn volume(zero: &'static str, accumulation: u64) -> f64 {
    let job = Job { accumulation, ..Job::new("qwen3-8b", 16, zero) };
    let model = catalogue::find(job.model).unwrap().model().unwrap();
    let whole = model.elements().0 as f64 * 2.0 * 15.0 / 16.0;
    Traffic::of(&job.program()).sent as f64 / whole
}

/// Gradients are all-reduced (2Ψ), in stage 2 at every micro step; stages 1 and 2 gather the weights (Ψ).
#[test]
fn traffic_is_the_engines_and_not_the_papers() {
    let near = |volume: f64, expected: f64| (volume / expected - 1.0).abs() < 1e-3;
    assert!(near(volume(r#"{"stage": 0}"#, 4), 2.0));
    assert!(near(volume(r#"{"stage": 1}"#, 1), 3.0));
    assert!(near(volume(r#"{"stage": 1}"#, 4), 3.0));
    assert!(near(volume(r#"{"stage": 2}"#, 1), 3.0));
    assert!(near(volume(r#"{"stage": 2}"#, 4), 9.0));
    let three = volume(r#"{"stage": 3}"#, 1);
    assert!((2.0..=4.0).contains(&three), "{three}");
}

#[test]
fn spans_of_a_stream_do_not_overlap_and_fill_the_step() {
    for zero in STAGES {
        let program = Job { accumulation: 2, ..Job::new("qwen3-8b", 16, zero) }.program();
        let mut spans = Spans::default();
        let time = observe(&program, &machine("2x8xH100"), &mut spans);
        for stream in [Stream::Compute, Stream::ToDevice, Stream::ToHost, Stream::Host] {
            let own = spans.0.iter().filter(|span| span.stream == stream);
            let mut end = 0.0;
            for span in own {
                assert!(span.begin >= end - 1e-9, "{zero} {span:?} begins before {end}");
                end = span.end;
            }
        }
        let kernels = spans.0.iter().filter(|span| span.stream == Stream::Compute);
        let filled: f64 = kernels.map(|span| span.end - span.begin).sum();
        assert!((filled / time.total - 1.0).abs() < 1e-6, "{zero}: {filled} {}", time.total);
    }
}

#[test]
fn slow_networks_are_what_stage_3_waits_for() {
    let cluster = Cluster {
        network: Some("1x10GbE".parse().unwrap()),
        ..Cluster::new("2x8xA100-80G".parse().unwrap())
    };
    let job = Job::new("qwen3-8b", 16, r#"{"stage": 3}"#);
    let machine = Machine::of(&cluster, job.resolved().precision(), Outlook::Expected).unwrap();
    let time = simulate(&job.program(), &machine);
    let (cause, _) = time.causes()[0];
    assert!(matches!(cause, Cause::Gather | Cause::Reduction), "{time:?}");
}

/// A host that computes itself, at prices of its own.
fn processors(machine: Machine) -> Machine {
    let pace = Pace {
        products: 4e10,
        backward_products: 3e10,
        attention: 2e10,
        memory: 5e9,
        update: 3e9,
        host_updates: 2e8,
        kernel: 2e-5,
        is_host: true,
        last_wave: 0.0,
        hook: 4e-4,
        micro_step: 2e-3,
        step: 5e-3,
        to_device: 5e9,
        to_host: 5e9,
        pageable: 1.0,
        ..machine.pace
    };
    Machine { pace, fabric: Fabric::free() }
}

#[test]
fn where_the_host_computes_nothing_overlaps() {
    let host = processors(machine("8xH100"));
    for zero in STAGES {
        let program = Job::new("qwen3-8b", 8, zero).program();
        let time = simulate(&program, &host);
        let twice = |pace: Pace| Machine { pace, ..host.clone() };
        // Everything twice as slow takes twice as long, whatever waits for what.
        let slow = twice(Pace {
            products: host.pace.products / 2.0,
            backward_products: host.pace.backward_products / 2.0,
            attention: host.pace.attention / 2.0,
            memory: host.pace.memory / 2.0,
            update: host.pace.update / 2.0,
            host_updates: host.pace.host_updates / 2.0,
            kernel: host.pace.kernel * 2.0,
            hook: host.pace.hook * 2.0,
            micro_step: host.pace.micro_step * 2.0,
            step: host.pace.step * 2.0,
            to_device: host.pace.to_device / 2.0,
            to_host: host.pace.to_host / 2.0,
            ..host.pace
        });
        assert!(is_near(simulate(&program, &slow).total, 2.0 * time.total), "{zero}");
    }
}

#[test]
fn a_fit_finds_the_prices_behind_steps_and_says_how_sure_it_is() {
    let host = processors(machine("8xH100"));
    let steps: Vec<MeasuredStep> = ["qwen3-0.6b", "gpt2", "qwen3-8b"]
        .into_iter()
        .flat_map(|model| STAGES.map(|zero| Job::new(model, 8, zero).program()))
        .map(|program| {
            let StepTime { forward, backward, step, .. } = simulate(&program, &host);
            MeasuredStep { program, forward, backward, step }
        })
        .collect();
    let rates = fit(&steps, &Fabric::free()).unwrap();
    let fitted = Machine {
        pace: Pace {
            products: rates.products_per_s,
            backward_products: rates.backward_products_per_s,
            attention: rates.attention_per_s,
            memory: rates.memory_bytes_per_s,
            update: rates.update_bytes_per_s,
            host_updates: rates.host_updates_per_s,
            kernel: rates.kernel_s,
            hook: rates.hook_s,
            micro_step: rates.micro_step_s,
            step: rates.step_s,
            to_device: rates.memory_bytes_per_s,
            to_host: rates.memory_bytes_per_s,
            ..host.pace
        },
        fabric: Fabric::free(),
    };
    for step in &steps {
        let (said, is) =
            (simulate(&step.program, &fitted).total, simulate(&step.program, &host).total);
        assert!((said / is - 1.0).abs() < 0.02, "{said} {is}");
    }
    assert!(rates.spread.low > 0.8 && rates.spread.high < 1.25, "{:?}", rates.spread);
    assert_eq!(rates.spread.steps, 24);
    assert!(fit(&steps[..2], &Fabric::free()).is_none());
}
