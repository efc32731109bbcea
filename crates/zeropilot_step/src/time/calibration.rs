//! From measured steps to the speeds of a machine.
//!
//! Where a host does one thing after the other, a step is a sum: so many operations, bytes, kernels and hooks, each at its
//! price. The amounts are those that the simulator counts, so that a fit and a prediction cannot disagree about
//! them; the prices are those that leave the least behind, none of them negative.

use zeropilot_cluster::{Fabric, MeasuredRates, Pace, Spread};

use super::{Machine, StepTime, simulate};
use crate::program::StepProgram;

/// A step as it was measured, in seconds.
#[derive(Debug, Clone)]
pub struct MeasuredStep {
    /// What it does.
    pub program: StepProgram,
    /// All forward passes.
    pub forward: f64,
    /// All backward passes.
    pub backward: f64,
    /// The optimizer step.
    pub step: f64,
}

/// What has a price: each makes one of something take a second. The order is that of [`fit`].
const PRICED: [fn(&mut Pace); 10] = [
    |pace| pace.products = 1.0,
    |pace| pace.backward_products = 1.0,
    |pace| pace.attention = 1.0,
    |pace| (pace.memory, pace.to_device, pace.to_host) = (1.0, 1.0, 1.0),
    |pace| pace.update = 1.0,
    |pace| pace.host_updates = 1.0,
    |pace| pace.kernel = 1.0,
    |pace| pace.hook = 1.0,
    |pace| pace.micro_step = 1.0,
    |pace| pace.step = 1.0,
];
type Prices = [f64; PRICED.len()];

/// No price is smaller, so that every rate is a number.
const LEAST_PRICE: f64 = 1e-18;

/// A machine on which everything is free.
fn free() -> Pace {
    let never = f64::INFINITY;
    Pace {
        products: never,
        backward_products: never,
        attention: never,
        peak: never,
        memory: never,
        update: never,
        kernel: 0.0,
        is_host: true,
        last_wave: 0.0,
        hook: 0.0,
        micro_step: 0.0,
        step: 0.0,
        to_device: never,
        to_host: never,
        pageable: 1.0,
        host_updates: never,
        disk_read: never,
        disk_write: never,
    }
}

/// One phase of a measured step: amounts by price, what calls between ranks take, what was measured, and the measured step
/// it is a part of.
#[derive(Debug, Clone, Copy)]
struct Row {
    amounts: Prices,
    calls: f64,
    seconds: f64,
    whole: f64,
}

fn rows(step: &MeasuredStep, fabric: &Fabric) -> [Row; 3] {
    let run =
        |pace, fabric: &Fabric| simulate(&step.program, &Machine { pace, fabric: fabric.clone() });
    let calls = run(free(), fabric);
    let amounts = PRICED.map(|price| {
        let mut pace = free();
        price(&mut pace);
        run(pace, &Fabric::free())
    });
    let whole = step.forward + step.backward + step.step;
    let row = |of: fn(&StepTime) -> f64, seconds| Row {
        amounts: amounts.each_ref().map(of),
        calls: of(&calls),
        seconds,
        whole,
    };
    [
        row(|time| time.forward, step.forward),
        row(|time| time.backward, step.backward),
        row(|time| time.step, step.step),
    ]
}

/// The prices that leave the least behind, every row relative to its step. Absolute differences count, not squares: a
/// step that something else slowed down has little say.
fn least_deviations(rows: &[Row]) -> Prices {
    let mut prices = [0.0; PRICED.len()];
    let mut left: Vec<f64> = rows.iter().map(|row| (row.seconds - row.calls) / row.whole).collect();
    let mut weights = vec![1.0; rows.len()];
    for _ in 0..REWEIGHTED {
        for _ in 0..SWEEPS {
            for (which, price) in prices.iter_mut().enumerate() {
                let amount = |row: &Row| row.amounts[which] / row.whole;
                let weighed = || rows.iter().zip(&weights);
                let square: f64 = weighed().map(|(row, weight)| weight * amount(row).powi(2)).sum();
                if square == 0.0 {
                    continue;
                }
                let slope =
                    weighed().zip(&left).map(|((row, weight), left)| weight * amount(row) * left);
                let moved = (*price + slope.sum::<f64>() / square).max(0.0) - *price;
                *price += moved;
                for (left, row) in left.iter_mut().zip(rows) {
                    *left -= moved * amount(row);
                }
            }
        }
        for (weight, left) in weights.iter_mut().zip(&left) {
            *weight = 1.0 / left.abs().max(SMALLEST_DIFFERENCE);
        }
    }
    prices
}

/// Rounds over all prices between two weighings of the rows, and weighings.
const SWEEPS: usize = 400;
const REWEIGHTED: usize = 12;
/// A share of a step; smaller differences weigh alike.
const SMALLEST_DIFFERENCE: f64 = 0.01;

fn predicted(rows: &[Row; 3], prices: &Prices) -> f64 {
    let of = |row: &Row| {
        row.calls
            + row.amounts.iter().zip(prices).map(|(amount, price)| amount * price).sum::<f64>()
    };
    rows.iter().map(of).sum()
}

/// The speeds at which a host that computes itself would have taken these times; nothing without at least three steps. The
/// spread is that of steps which the fit did not see.
#[must_use]
pub fn fit(steps: &[MeasuredStep], fabric: &Fabric) -> Option<MeasuredRates> {
    let by_step: Vec<[Row; 3]> = steps.iter().map(|step| rows(step, fabric)).collect();
    if by_step.len() < 3 {
        return None;
    }
    let of_all_but = |left_out: usize| -> Vec<Row> {
        let kept = by_step.iter().enumerate().filter(|(place, _)| *place != left_out);
        kept.flat_map(|(_, rows)| *rows).collect()
    };
    let ratios = by_step.iter().enumerate().map(|(place, rows)| {
        let prices = least_deviations(&of_all_but(place));
        rows[0].whole / predicted(rows, &prices)
    });
    let (low, high) =
        ratios.fold((1.0_f64, 1.0_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    let prices = least_deviations(&of_all_but(usize::MAX));
    let [
        products,
        backward,
        attention,
        memory,
        update,
        host_updates,
        kernel,
        hook,
        micro_step,
        step,
    ] = prices;
    let rate = |price: f64| 1.0 / price.max(LEAST_PRICE);
    Some(MeasuredRates {
        products_per_s: rate(products),
        backward_products_per_s: rate(backward),
        attention_per_s: rate(attention),
        memory_bytes_per_s: rate(memory),
        update_bytes_per_s: rate(update),
        host_updates_per_s: rate(host_updates),
        kernel_s: kernel,
        hook_s: hook,
        micro_step_s: micro_step,
        step_s: step,
        spread: Spread { low, high, steps: by_step.len() as u64 },
    })
}
