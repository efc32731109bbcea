//! What the memory model says about this job, for the ranks it really runs on: GPUs, or CPUs where there are none.

use serde_json::{Map, Value};
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{
    Job, Machines, MemoryRequest, SimulateRequest, Simulated, TaskRequest, Training, simulate,
};
use zeropilot_cluster::Nvidia;
use zeropilot_cluster::discovery::{Driver, FoundGpu, NoDriver, visible};
use zeropilot_job::TrainingJob;
use zeropilot_model::{Model, catalogue};
use zeropilot_record::{
    Fullest, Memory, ModelFrom, Needs, Phase, PhaseNeeds, RunEvent, StepParts, Term,
};
use zeropilot_run::fallbacks::BatchArguments;
use zeropilot_run::{Forecast, PhasePeak, Predict, RunCommand, memory_left};
use zeropilot_step::memory::{Answer, Phase as StepPhase, Prediction};
use zeropilot_step::zero::{Place, Rest};
use zeropilot_text::Language;
use zeropilot_view::memory::terms;

use super::accuracy::{self, Predicted};
use super::arguments::RunArguments;
use crate::doctor::is_on_cpu;
use crate::{cluster_source, machine_file, model_source, own_runs};

/// Interpreter, PyTorch, DeepSpeed and Transformers in a process on a CPU: 735 MB were resident after importing them,
/// with DeepSpeed 0.19 on PyTorch 2.13.
const PROCESS: u64 = 735 * 1000 * 1000;
/// What of that is its own, and not files that all ranks share: 428 MB.
const OWN: u64 = 428 * 1000 * 1000;

/// Who says which model it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The user, to zeropilot.
    Said,
    /// The training program's own arguments: it may train adapters on it, or less.
    Guessed,
}

/// What ranks compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ranks {
    Cpu,
    /// GPUs with this much free memory on the fullest of them, if the driver tells.
    Gpu(Option<u64>),
}

struct Known {
    name: String,
    model: Model,
    trust: Trust,
    machines: Machines,
    ranks: Ranks,
    ranks_here: u64,
    training: Training,
    /// With the other models that the job names.
    task: TaskRequest,
    job: TrainingJob,
}

/// Predictions for a job; none if its model is not known.
#[derive(Default)]
pub(super) struct Forecaster(Option<Known>);

impl Forecaster {
    /// For the model that the user names, that a plan is for, or that the program is told and is at hand.
    pub(super) fn of(
        arguments: &RunArguments,
        planned: Option<&str>,
        command: &RunCommand,
        opened: Option<&Model>,
    ) -> Self {
        let said = arguments
            .model
            .as_deref()
            .zip(opened)
            .map(|(name, model)| (name.to_owned(), model.clone()));
        let (found, trust) = match said {
            Some(said) => (Some(said), Trust::Said),
            None => {
                let told = command.job.model.as_ref().map(|model| model.value.clone());
                (planned.map(str::to_owned).or(told).and_then(near), Trust::Guessed)
            }
        };
        let Some((name, model)) = found else { return Self(None) };
        let world = command.world.and_then(|world| u64::try_from(world).ok());
        let Some(gpus) = arguments.gpus.clone().or_else(|| world.map(cluster_source::of_kind_here))
        else {
            return Self(None);
        };
        let Some(ranks) = ranks() else { return Self(None) };
        let plain = Machines::with_gpus(gpus);
        // A profile that cannot be read does not stop a run.
        let measured = match ranks {
            Ranks::Cpu => machine_file::add_processors(plain.clone(), Language::English),
            Ranks::Gpu(_) => machine_file::add(plain.clone(), None, Language::English),
        };
        // Nor does one that has not measured so many ranks.
        let machines = measured.ok().filter(|machines| machines.cluster().is_ok()).unwrap_or(plain);
        let Ok(cluster) = machines.cluster() else { return Self(None) };
        let mut task = TaskRequest::default();
        let open = |name: &str| near(name.to_owned()).map(|(_, model)| model).ok_or(());
        if task.find_models(&command.job, open).is_err() {
            return Self(None);
        }
        let here = command.ranks_here().and_then(|here| u64::try_from(here).ok());
        Self(Some(Known {
            name,
            model,
            trust,
            ranks,
            ranks_here: here.unwrap_or(cluster.gpus.layout.gpus_per_node),
            machines,
            training: arguments.training(),
            task,
            // Which config counts changes from fallback to fallback.
            job: TrainingJob { config: None, ..command.job.clone() },
        }))
    }

    /// What a config needs here against what there is, and whether that is sure enough to refuse it.
    pub(super) fn room(
        &self,
        config: &Map<String, Value>,
        batch: BatchArguments,
    ) -> Option<(RunEvent, bool)> {
        let known = self.0.as_ref()?;
        let (memory, [least, expected], left) = known.need(config, batch)?;
        let is_sure = known.trust == Trust::Said && least > left;
        Some((RunEvent::Room { memory, least, expected, left }, is_sure))
    }

    /// What a rank is predicted to reach at most, and when, if the user names the model.
    pub(super) fn peak(
        &self,
        config: &Map<String, Value>,
        batch: BatchArguments,
    ) -> Option<(u64, Fullest)> {
        self.0.as_ref().filter(|known| known.trust == Trust::Said)?;
        let forecast = self.forecast(config, batch)?;
        let peak = forecast.fullest()?;
        Some((peak.bytes, Fullest { phase: peak.phase, near: forecast.near.clone() }))
    }
}

impl Forecaster {
    /// What GPUs are predicted to need, if the user names the model.
    pub(super) fn memory(
        &self,
        config: &Map<String, Value>,
        batch: BatchArguments,
    ) -> Option<zeropilot_ask::Memory> {
        let is_asked = |known: &&Known| known.trust == Trust::Said && known.ranks != Ranks::Cpu;
        let known = self.0.as_ref().filter(is_asked)?;
        let request = known.request(config, batch);
        zeropilot_ask::memory(&known.name, known.model.clone(), &request).ok()
    }

    /// What a rank is predicted to need phase by phase, if the user names the model.
    pub(super) fn phases(
        &self,
        config: &Map<String, Value>,
        batch: BatchArguments,
        predicted: Option<&Predicted>,
    ) -> Vec<PhaseNeeds> {
        let is_said = self.0.as_ref().is_some_and(|known| known.trust == Trust::Said);
        let forecast = is_said.then(|| self.forecast(config, batch)).flatten();
        let parts = predicted.and_then(|predicted| predicted.parts);
        let needs = |peak: PhasePeak| PhaseNeeds {
            phase: peak.phase,
            bytes: peak.bytes,
            seconds: parts.and_then(|parts| match peak.phase {
                Phase::Forward => Some(parts.forward),
                Phase::Backward => Some(parts.backward),
                Phase::Step => Some(parts.step),
                Phase::Loading | Phase::Saving => None,
            }),
        };
        forecast
            .map(|forecast| forecast.phases.into_iter().map(needs).collect())
            .unwrap_or_default()
    }

    /// What is predicted for the run, to be compared with what it needs; none where nobody knows the device.
    pub(super) fn predicted(
        &self,
        config: &Map<String, Value>,
        batch: BatchArguments,
    ) -> Option<Predicted> {
        let known = self.0.as_ref()?;
        let is_on_cpu = known.ranks == Ranks::Cpu;
        let cluster = known.machines.cluster().ok()?;
        let device = if is_on_cpu {
            own_runs::CPU.to_owned()
        } else {
            own_runs::device_name(cluster.gpus.device, None)?
        };
        let request =
            SimulateRequest { scale: None, strong: false, job: known.request(config, batch) };
        // Without speeds of the device there is still its memory.
        let simulated = simulate(&known.name, known.model.clone(), &request);
        let (job, answer, process, time) = match simulated {
            Ok(Simulated { job, answer, process, time, .. }) => {
                (job, Some(answer), process, Some(time.expected))
            }
            Err(_) => {
                let job = known.job(config, batch)?;
                let answer = Answer::to(&job.question()).ok();
                (job, answer, None, None)
            }
        };
        let needs = if is_on_cpu {
            let whole = || Some(self.forecast(config, batch)?.fullest()?.bytes);
            Needs { device: process.map(|bytes| bytes.0).or_else(whole), ..Needs::default() }
        } else {
            accuracy::of_gpus(&answer?)
        };
        let needs = Needs { step_seconds: time.map(|time| time.total), ..needs };
        let parts = time.map(|time| StepParts {
            forward: time.forward,
            backward: time.backward,
            step: time.step,
        });
        let job = accuracy::job(&known.name, device, &job.question());
        let model_from = match known.trust {
            Trust::Said => ModelFrom::Option,
            Trust::Guessed => ModelFrom::Command,
        };
        Some(Predicted { job, needs, parts, model_from })
    }
}

impl Predict for Forecaster {
    fn forecast(&self, config: &Map<String, Value>, batch: BatchArguments) -> Option<Forecast> {
        let known = self.0.as_ref()?;
        let job = known.job(config, batch)?;
        match known.ranks {
            Ranks::Cpu => {
                let prediction = job.question().tensors(0).ok()?;
                let phases = phases(&prediction, &Place::ALL, PROCESS, "process");
                let peak = phases.iter().map(|peak| peak.bytes).max().unwrap_or(0);
                let host = peak.saturating_mul(known.ranks_here);
                Some(Forecast { phases, near: None, host })
            }
            Ranks::Gpu(_) => {
                let answer = Answer::to(&job.question()).ok()?;
                let tensors = answer.on_gpu.most(Place::Device).0;
                let beside = answer.device().expected().0.saturating_sub(tensors);
                let phases = phases(&answer.on_gpu, &[Place::Device], beside, "runtime");
                let host = answer.node().expected().0;
                Some(Forecast { phases, near: answer.nearest.clone(), host })
            }
        }
    }
}

impl Known {
    fn job(&self, config: &Map<String, Value>, batch: BatchArguments) -> Option<Job> {
        Job::of(&self.name, self.model.clone(), &self.request(config, batch)).ok()
    }

    fn request(&self, config: &Map<String, Value>, batch: BatchArguments) -> MemoryRequest {
        let training = Training {
            micro_batch: batch.micro.map(std::num::NonZeroU64::get),
            grad_accum: batch.accumulation.map(std::num::NonZeroU64::get),
            ..self.training.clone()
        };
        let config = Value::Object(config.clone()).to_string().into_bytes();
        MemoryRequest {
            machines: self.machines.clone(),
            config: Some(WrittenConfig { name: String::new(), bytes: config }),
            training,
            task: self.task.clone(),
            job: self.job.clone(),
            ..MemoryRequest::default()
        }
    }

    /// Which memory is counted, what is needed of it at least and probably, and what there is.
    fn need(
        &self,
        config: &Map<String, Value>,
        batch: BatchArguments,
    ) -> Option<(Memory, [u64; 2], u64)> {
        let job = self.job(config, batch)?;
        match self.ranks {
            Ranks::Cpu => {
                let prediction = job.question().tensors(0).ok()?;
                let kept = held(&prediction, &Place::ALL);
                let most = prediction.most_anywhere().0;
                let all = |bytes: u64| (bytes + OWN).saturating_mul(self.ranks_here);
                Some((Memory::Host, [all(kept), all(most)], memory_left()?))
            }
            Ranks::Gpu(left) => {
                let answer = Answer::to(&job.question()).ok()?;
                let least = held(&answer.on_gpu, &[Place::Device]);
                Some((Memory::Device, [least, answer.device().expected().0], left?))
            }
        }
    }
}

/// The most that stays between phases: it follows from model and config alone, however long the samples are.
fn held(prediction: &Prediction, places: &[Place]) -> u64 {
    let states = &prediction.states;
    let at = |rest: &Rest| -> u64 { places.iter().map(|place| rest.at(*place).0).sum() };
    [&states.after_init, &states.after_backward, &states.after_step]
        .map(at)
        .into_iter()
        .max()
        .unwrap_or(0)
}

fn phases(prediction: &Prediction, places: &[Place], beside: u64, name: &str) -> Vec<PhasePeak> {
    let phases = [
        (Phase::Loading, StepPhase::Init),
        (Phase::Forward, StepPhase::Forward),
        (Phase::Backward, StepPhase::Backward),
        (Phase::Step, StepPhase::Step),
    ];
    let one = |(phase, of): (Phase, StepPhase)| {
        let peak = prediction.peak(of);
        let tensors = match places {
            [place] => peak.at(*place).0,
            _ => peak.total.0,
        };
        let mut terms = terms(&peak.at_device_peak, places);
        terms.push(Term { name: name.to_owned(), bytes: beside });
        terms.sort_by_key(|term| std::cmp::Reverse(term.bytes));
        PhasePeak { phase, bytes: tensors + beside, terms }
    };
    phases.map(one).into()
}

/// A model that needs no network.
fn near(name: String) -> Option<(String, Model)> {
    let is_near = std::path::Path::new(&name).exists() || catalogue::find(&name).is_ok();
    let model =
        is_near.then(|| model_source::open(&name, zeropilot_text::Language::English).ok())??;
    Some((name, model))
}

/// Devices that are no NVIDIA GPUs: AMD, Ascend, Intel and others.
const OTHER_DEVICES: [&str; 4] = ["/dev/kfd", "/dev/davinci_manager", "/dev/dri", "/dev/accel"];

/// What ranks compute on; `None` if that is something whose memory nobody here can ask for.
fn ranks() -> Option<Ranks> {
    if is_on_cpu(&|name| std::env::var_os(name)) {
        return Some(Ranks::Cpu);
    }
    let shown = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    match Nvidia.gpus() {
        Ok(gpus) if !gpus.is_empty() => Some(Ranks::Gpu(least_free(&gpus, shown.as_deref()))),
        Err(NoDriver::Refuses(_)) => None,
        _ => {
            let has_other = OTHER_DEVICES.iter().any(|path| std::path::Path::new(path).exists());
            (!has_other).then_some(Ranks::Cpu)
        }
    }
}

/// What is free on the fullest of the GPUs that ranks may use.
fn least_free(gpus: &[FoundGpu], shown: Option<&str>) -> Option<u64> {
    visible(gpus, shown).gpus.into_iter().map(|gpu| gpu.free.0).min()
}

#[cfg(test)]
mod tests {
    use zeropilot_units::Bytes;

    use super::*;

    #[test]
    fn the_fullest_gpu_that_ranks_may_use_decides() {
        let gpu = |index: u64, used: u64| FoundGpu {
            name: "NVIDIA L40S".to_owned(),
            uuid: format!("GPU-{index}"),
            memory: Bytes(46068 << 20),
            free: Bytes((46068 - used) << 20),
        };
        let gpus = [gpu(0, 4), gpu(1, 20_000), gpu(2, 300)];
        assert_eq!(least_free(&gpus, None), Some((46068 - 20_000) << 20));
        assert_eq!(least_free(&gpus, Some("0,2")), Some((46068 - 300) << 20));
        assert_eq!(least_free(&gpus, Some("")), None);
    }
}
