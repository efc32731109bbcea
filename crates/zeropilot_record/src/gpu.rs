//! GPUs as they stood at one moment.

use serde::{Deserialize, Serialize};

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Its number.
    pub pid: u32,
    /// Which rank it is, if it is one of the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rank: Option<u32>,
    /// Bytes it holds of the GPU, if the driver says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub used: Option<u64>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuUse {
    /// Its number, in the driver's order.
    pub index: u32,
    /// Its name, such as `NVIDIA A100-SXM4-80GB`.
    pub name: String,
    /// Bytes that are taken.
    pub used: u64,
    /// Bytes in all.
    pub total: u64,
    /// Percent of the last moments in which a kernel ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub utilization: Option<u32>,
    /// Watts it draws.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub watts: Option<f64>,
    /// Its temperature in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub celsius: Option<u32>,
    /// Who computes on it.
    #[serde(default)]
    pub processes: Vec<GpuProcess>,
}

impl GpuUse {
    /// What a rank holds of it: what the driver says of its process, or everything if it does not say and the rank is
    /// alone.
    pub fn of_rank(&self, rank: u32) -> Option<u64> {
        let process = self.processes.iter().find(|process| process.rank == Some(rank))?;
        process.used.or((self.processes.len() == 1).then_some(self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_alone_holds_all_that_is_taken() {
        let process = |pid, rank, used| GpuProcess { pid, rank, used };
        let gpu = |processes| GpuUse {
            index: 0,
            name: String::new(),
            used: 100,
            total: 200,
            utilization: None,
            watts: None,
            celsius: None,
            processes,
        };
        assert_eq!(gpu(vec![process(7, Some(0), None)]).of_rank(0), Some(100));
        let two = gpu(vec![process(7, Some(0), None), process(8, None, Some(9))]);
        assert_eq!(two.of_rank(0), None);
        assert_eq!(gpu(vec![process(7, Some(0), Some(60))]).of_rank(0), Some(60));
        assert_eq!(gpu(vec![process(7, Some(0), Some(60))]).of_rank(1), None);
    }
}
