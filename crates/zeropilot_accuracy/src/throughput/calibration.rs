//! Constants that no data sheet has, fitted to runs.
//!
//! The fit makes the middle of the absolute logarithmic errors small, every source counting the same, by going along one constant
//! after the other over a fixed grid, from its middle.

use std::collections::BTreeMap;

use zeropilot_cluster::{Outlook, Shares};

use super::run::Run;

/// One constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Calibration {
    /// Products on Ampere and Ada.
    AmpereProducts,
    /// Products on Hopper and newer.
    HopperProducts,
    /// Products on Volta.
    VoltaProducts,
    /// Attention on all, as a factor.
    Attention,
    /// Memory.
    Memory,
    /// Kernels of the host.
    Kernel,
    /// Elements of a product's result that are lost to its last wave.
    LastWave,
    /// Hooks of stage 3.
    Hook,
    /// Updates on the host.
    HostUpdates,
    /// What software from 2024 on reaches of rates, times what older software did.
    Recent,
}

impl Calibration {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::AmpereProducts,
        Self::HopperProducts,
        Self::VoltaProducts,
        Self::Attention,
        Self::Memory,
        Self::Kernel,
        Self::LastWave,
        Self::Hook,
        Self::HostUpdates,
        Self::Recent,
    ];

    /// Values that are tried: absolute shares, or factors of what is shipped.
    fn grid(self) -> &'static [f64] {
        match self {
            Self::AmpereProducts | Self::HopperProducts | Self::VoltaProducts => &[
                0.4, 0.425, 0.45, 0.475, 0.5, 0.525, 0.55, 0.575, 0.6, 0.625, 0.65, 0.675, 0.7,
                0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.975, 1.0,
            ],
            Self::Memory => &[0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
            Self::Attention => &[0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4],
            Self::Kernel => &[4e-6, 6e-6, 8e-6, 10e-6, 12e-6, 15e-6, 20e-6, 25e-6, 30e-6],
            Self::LastWave => &[0.0, 2.5e5, 5e5, 7.5e5, 1e6, 1.25e6, 1.5e6, 2e6, 3e6],
            Self::Hook => &[50e-6, 100e-6, 150e-6, 200e-6, 300e-6],
            Self::Recent => &[1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3],
            Self::HostUpdates => &[0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0],
        }
    }
}

/// A value for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Constants(BTreeMap<Calibration, f64>);

impl Constants {
    /// What is shipped.
    pub fn shipped() -> Self {
        let of = |architecture| Shares::of(architecture, Outlook::Expected);
        let ampere = of("Ampere");
        Self(BTreeMap::from([
            (Calibration::AmpereProducts, ampere.products),
            (Calibration::HopperProducts, of("Hopper").products),
            (Calibration::VoltaProducts, of("Volta").products),
            (Calibration::Attention, 1.0),
            (Calibration::Memory, ampere.memory),
            (Calibration::Kernel, ampere.kernel),
            (Calibration::LastWave, ampere.last_wave),
            (Calibration::Hook, ampere.hook),
            (Calibration::HostUpdates, ampere.host_updates),
            (Calibration::Recent, 1.0),
        ]))
    }

    /// The middle of every grid, which knows nothing of any run.
    fn middle() -> Self {
        let middle = |constant: Calibration| {
            let grid = constant.grid();
            (constant, grid[grid.len() / 2])
        };
        Self(Calibration::ALL.into_iter().map(middle).collect())
    }

    /// A value.
    pub fn get(&self, constant: Calibration) -> f64 {
        self.0.get(&constant).copied().unwrap_or(1.0)
    }

    fn with(&self, constant: Calibration, value: f64) -> Self {
        let mut changed = self.clone();
        changed.0.insert(constant, value);
        changed
    }

    /// Puts them in place of what is shipped.
    pub(super) fn apply(&self, architecture: &str, is_recent: bool, shares: &mut Shares) {
        shares.products = self.get(match architecture {
            "Volta" | "Turing" => Calibration::VoltaProducts,
            "Ampere" | "Ada" => Calibration::AmpereProducts,
            _ => Calibration::HopperProducts,
        });
        shares.attention *= self.get(Calibration::Attention);
        shares.memory = self.get(Calibration::Memory);
        shares.kernel = self.get(Calibration::Kernel);
        shares.last_wave = self.get(Calibration::LastWave);
        shares.hook = self.get(Calibration::Hook);
        shares.host_updates = self.get(Calibration::HostUpdates);
        if is_recent {
            let factor = self.get(Calibration::Recent);
            shares.products *= factor;
            shares.attention *= factor;
            shares.memory *= factor;
            shares.kernel /= factor;
        }
    }
}

/// Rounds over all constants.
const ROUNDS: usize = 3;

/// Constants fitted to some runs.
pub fn calibrate(runs: &[&Run]) -> Constants {
    let mut best = Constants::middle();
    let mut least = loss(runs, &best);
    for _ in 0..ROUNDS {
        for constant in Calibration::ALL {
            for &value in constant.grid() {
                let tried = best.with(constant, value);
                let loss = loss(runs, &tried);
                if loss < least - 1e-9 {
                    (best, least) = (tried, loss);
                }
            }
        }
    }
    best
}

/// The mean over sources of the mean absolute logarithmic error; a source counts as the square root of its rows.
fn loss(runs: &[&Run], constants: &Constants) -> f64 {
    let mut sources: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for run in runs {
        let error = (run.predict(constants) / run.measured).ln().abs();
        let source = sources.entry(run.source()).or_default();
        source.0 += error.min(1.0);
        source.1 += 1.0;
    }
    let weight = |rows: f64| rows.sqrt();
    let all: f64 = sources.values().map(|(_, rows)| weight(*rows)).sum();
    sources.values().map(|(errors, rows)| errors / rows * weight(*rows)).sum::<f64>() / all
}
