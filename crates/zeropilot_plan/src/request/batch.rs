//! Micro batch, accumulation and ranks, from those that were said.

use std::num::NonZeroU64;

use super::BatchRequest;
use crate::batch::Batch;
use crate::refusal::Refusal;

pub(super) fn resolve(request: &BatchRequest, refusals: &mut Vec<Refusal>) -> Option<Batch> {
    let micro = request.micro.unwrap_or(Batch::LEAST.micro);
    let accumulation = match request.global {
        None => request.accumulation.unwrap_or(Batch::LEAST.accumulation),
        Some(global) => match accumulation(request, micro, global) {
            Ok(accumulation) => accumulation,
            Err(refusal) => {
                refusals.push(refusal);
                return None;
            }
        },
    };
    let batch = Batch { micro, accumulation, world: request.world };
    if batch.world.is_some() && batch.global().is_none() {
        refusals.push(Refusal::BatchTooLarge);
        return None;
    }
    Some(batch)
}

/// The accumulation that a global batch leaves.
fn accumulation(
    request: &BatchRequest,
    micro: NonZeroU64,
    global: NonZeroU64,
) -> Result<NonZeroU64, Refusal> {
    if request.accumulation.is_some() {
        return Err(Refusal::GlobalBatchAndAccumulation);
    }
    let world = request.world.ok_or(Refusal::GlobalBatchWithoutWorld)?;
    let at_once = micro.checked_mul(world).ok_or(Refusal::BatchTooLarge)?;
    let whole = global.get().is_multiple_of(at_once.get());
    NonZeroU64::new(global.get() / at_once).filter(|_| whole).ok_or(
        Refusal::GlobalBatchDoesNotDivide {
            global: global.get(),
            micro: micro.get(),
            world: world.get(),
        },
    )
}
