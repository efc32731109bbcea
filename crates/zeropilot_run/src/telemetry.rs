//! What is measured while a run goes on, beside what the supervisor itself needs: how fast it goes, and its GPUs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use zeropilot_cluster::gauge::{Gauge, Reading};
use zeropilot_record::{GpuProcess, GpuUse, RunEvent};

use crate::attempt::{Status, spacing};

/// Measurements are no closer than this.
const PACE: Duration = Duration::from_secs(5);
/// In the record they are no closer than this, and in a long run no closer than the second.
const RECORD: [Duration; 2] = [PACE, Duration::from_secs(60)];

/// The GPUs with the ranks that compute on them, found by their processes.
pub fn gpu_uses(readings: Vec<Reading>, ranks: &BTreeMap<u32, u32>) -> Vec<GpuUse> {
    let processes = |reading: &Reading| {
        let process = |tenant: &zeropilot_cluster::gauge::Tenant| GpuProcess {
            pid: tenant.pid,
            rank: ranks.get(&tenant.pid).copied(),
            used: tenant.used.map(|bytes| bytes.0),
        };
        reading.tenants.iter().map(process).collect()
    };
    readings
        .into_iter()
        .map(|reading| GpuUse {
            index: reading.index,
            processes: processes(&reading),
            used: reading.used.0,
            total: reading.total.0,
            utilization: reading.utilization,
            watts: reading.watts,
            celsius: reading.celsius,
            name: reading.name,
        })
        .collect()
}

/// How long a run is and on how much it trains, as far as it shows before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrainingLength {
    /// Optimizer steps.
    pub total_steps: Option<u64>,
    /// Tokens of an optimizer step over all ranks, if every sequence is full.
    pub tokens_per_step: Option<u64>,
}

/// Measures now and then.
pub struct Telemetry {
    gauge: Option<Box<dyn Gauge>>,
    length: TrainingLength,
    /// Ranks by their processes.
    ranks: BTreeMap<u32, u32>,
    measured: Option<Instant>,
    recorded: Option<Instant>,
    /// The step at the last measurement: when nothing moves there is no pace.
    step: Option<u64>,
    gpus: Vec<GpuUse>,
}

impl Telemetry {
    /// Without a gauge GPUs are not measured.
    pub fn new(gauge: Option<Box<dyn Gauge>>, length: TrainingLength) -> Self {
        Self {
            gauge,
            length,
            ranks: BTreeMap::new(),
            measured: None,
            recorded: None,
            step: None,
            gpus: Vec::new(),
        }
    }

    /// Learns which processes are ranks.
    pub fn saw(&mut self, happening: &RunEvent) {
        match happening {
            RunEvent::RankSeen { rank, pid } => {
                self.ranks.insert(*pid, *rank);
            }
            RunEvent::AttemptStarted { .. } => self.ranks.clear(),
            _ => {}
        }
    }

    /// Tokens in a second: as the log has it, else as steps go.
    pub fn tokens_per_second(&self, status: &Status) -> Option<f64> {
        let by_steps = || Some(self.length.tokens_per_step? as f64 * status.rate?);
        status.tokens_per_second.or_else(by_steps)
    }

    /// Steps there will be: as the log has it, else as the command.
    pub fn total_steps(&self, status: &Status) -> Option<u64> {
        status.total_steps.or(self.length.total_steps)
    }

    /// What belongs into the record by now.
    pub fn due(&mut self, status: &Status) -> Vec<RunEvent> {
        if self.measured.is_some_and(|last| last.elapsed() < PACE) {
            return Vec::new();
        }
        self.measured = Some(Instant::now());
        // A driver that answered once and no more is no reason to stop a run.
        let readings = self.gauge.as_ref().and_then(|gauge| gauge.read().ok());
        self.gpus = gpu_uses(readings.unwrap_or_default(), &self.ranks);
        let between = spacing(RECORD, status.elapsed);
        if self.recorded.is_some_and(|last| last.elapsed() < between) {
            return Vec::new();
        }
        self.recorded = self.measured;
        let has_moved = std::mem::replace(&mut self.step, status.step) != status.step;
        let pace = status.rate.filter(|_| has_moved).map(|rate| RunEvent::Pace {
            steps_per_second: rate,
            tokens_per_second: self.tokens_per_second(status),
            total_steps: self.total_steps(status),
        });
        let gpus = (!self.gpus.is_empty()).then(|| RunEvent::Gpus { gpus: self.gpus.clone() });
        pace.into_iter().chain(gpus).collect()
    }

    /// What the rank that holds most of a GPU held of it when that was last measured.
    pub fn largest_on_gpu(&self) -> Option<u64> {
        let ranks = self.ranks.values();
        ranks.flat_map(|rank| self.gpus.iter().filter_map(|gpu| gpu.of_rank(*rank))).max()
    }
}

#[cfg(test)]
mod tests {
    use zeropilot_cluster::discovery::NoDriver;
    use zeropilot_cluster::gauge::Tenant;
    use zeropilot_units::Bytes;

    use super::*;

    /// One card, as a driver counts it.
    struct Card;

    impl Gauge for Card {
        fn read(&self) -> Result<Vec<Reading>, NoDriver> {
            Ok(vec![Reading {
                index: 0,
                name: "NVIDIA A100-SXM4-80GB".to_owned(),
                used: Bytes(40 << 30),
                total: Bytes(80 << 30),
                utilization: Some(97),
                watts: Some(311.5),
                celsius: None,
                tenants: vec![
                    Tenant { pid: 71, used: Some(Bytes(38 << 30)) },
                    Tenant { pid: 99, used: None },
                ],
            }])
        }
    }

    #[test]
    fn processes_on_gpus_are_known_as_ranks() {
        let length = TrainingLength { tokens_per_step: Some(4096), total_steps: None };
        let mut telemetry = Telemetry::new(Some(Box::new(Card)), length);
        telemetry.saw(&RunEvent::RankSeen { rank: 3, pid: 71 });
        let status =
            Status { step: Some(3), rate: Some(0.5), total_steps: Some(10), ..Status::default() };
        let measured = telemetry.due(&status);
        let [RunEvent::Pace { tokens_per_second, .. }, RunEvent::Gpus { gpus }] = &measured[..]
        else {
            panic!("{measured:?}")
        };
        assert_eq!(*tokens_per_second, Some(2048.0));
        assert_eq!((gpus[0].of_rank(3), gpus[0].processes[1].rank), (Some(38 << 30), None));
        assert_eq!(telemetry.largest_on_gpu(), Some(38 << 30));
        assert!(telemetry.due(&status).is_empty(), "not again at once");
        (telemetry.measured, telemetry.recorded) = (None, None);
        let measured = telemetry.due(&status);
        assert!(matches!(measured[..], [RunEvent::Gpus { .. }]), "no pace where nothing moved");
    }
}
