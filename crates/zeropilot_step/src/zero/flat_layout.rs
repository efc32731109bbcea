//! How stages 1 and 2 lay one parameter group out in a flat buffer and cut it among the ranks.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    offset: u64,
    size: u64,
    position: usize,
}

impl Slot {
    /// Elements that lie between two offsets.
    fn inside(self, start: u64, end: u64) -> u64 {
        (self.offset + self.size).min(end).saturating_sub(self.offset.max(start))
    }
}

/// One group in one flat buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlatLayout {
    /// Elements of the buffer, padding included.
    pub total: u64,
    /// Elements of one rank's partition.
    pub partition: u64,
    /// Offset, size and position in the group of each parameter, in buffer order.
    slots: Vec<Slot>,
    /// Index into `slots` by position in the group.
    placed: Vec<usize>,
}

impl FlatLayout {
    /// Lays out parameters of these sizes among `world` ranks.
    pub fn new(sizes: &[u64], world: u64, round_robin: bool, alignment: Option<u64>) -> Self {
        let order = if round_robin {
            round_robin_order(sizes.len(), world)
        } else {
            (0..sizes.len()).collect()
        };
        let mut slots = Vec::with_capacity(order.len());
        let mut placed = vec![0; order.len()];
        let mut offset = 0;
        for (index, &position) in order.iter().enumerate() {
            placed[position] = index;
            slots.push(Slot { offset, size: sizes[position], position });
            offset += sizes[position];
            if let Some(alignment) = alignment.filter(|_| index + 1 < order.len()) {
                offset = offset.next_multiple_of(alignment);
            }
        }
        // Each partition must start at an even element, for 16-bit vector loads.
        let total = offset.next_multiple_of(2 * world);
        Self { total, partition: total / world, slots, placed }
    }

    fn range(&self, rank: u64) -> (u64, u64) {
        (rank * self.partition, (rank + 1) * self.partition)
    }

    /// Parameters that reach into a rank's partition: (full size, elements inside).
    pub fn fragments(&self, rank: u64) -> impl Iterator<Item = (u64, u64)> {
        let (start, end) = self.range(rank);
        let cut = self.slots.iter().map(move |slot| (slot.size, slot.inside(start, end)));
        cut.filter(|(_, inside)| *inside > 0)
    }

    /// Full sizes of all parameters that reach into a rank's partition; one cut by the border counts on both sides.
    pub fn owned(&self, rank: u64) -> u64 {
        self.fragments(rank).map(|(size, _)| size).sum()
    }

    /// Elements of the partition that hold no parameter.
    pub fn padding(&self, rank: u64) -> u64 {
        self.partition - self.fragments(rank).map(|(_, inside)| inside).sum::<u64>()
    }

    /// The ranks a parameter belongs to and the elements each of them owns of it, in buffer order.
    pub fn owners(&self, position: usize) -> impl Iterator<Item = (u64, u64)> {
        let slot = self.slots[self.placed[position]];
        let (first, last) =
            (slot.offset / self.partition, (slot.offset + slot.size - 1) / self.partition);
        (first..=last).map(move |rank| {
            (rank, slot.inside(rank * self.partition, (rank + 1) * self.partition))
        })
    }

    /// Positions in the group of the parameters that do not reach into a rank's partition, in buffer order.
    pub fn foreign(&self, rank: u64) -> impl Iterator<Item = usize> {
        let (start, end) = self.range(rank);
        self.slots.iter().filter(move |slot| slot.inside(start, end) == 0).map(|slot| slot.position)
    }
}

/// Parameters dealt out to the ranks in turn.
fn round_robin_order(count: usize, world: u64) -> Vec<usize> {
    let step = usize::try_from(world).unwrap_or(usize::MAX);
    (0..step.min(count)).flat_map(|first| (first..count).step_by(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_cut_by_a_border_counts_on_both_ranks() {
        // 5 + 6 + 3 = 14, padded to 16 for two ranks of 8; the 6 lies across the border at 8.
        let layout = FlatLayout::new(&[5, 6, 3], 2, false, None);
        assert_eq!((layout.total, layout.partition), (16, 8));
        assert_eq!((layout.owned(0), layout.owned(1)), (11, 9));
        assert_eq!((layout.padding(0), layout.padding(1)), (0, 2));
    }

    #[test]
    fn owners_of_a_cut_parameter_share_it() {
        let layout = FlatLayout::new(&[5, 6, 3], 2, false, None);
        assert_eq!(layout.owners(1).collect::<Vec<_>>(), [(0, 3), (1, 3)]);
        assert_eq!(layout.owners(2).collect::<Vec<_>>(), [(1, 3)]);
    }

    #[test]
    fn round_robin_deals_parameters_out_in_turn() {
        assert_eq!(round_robin_order(5, 2), [0, 2, 4, 1, 3]);
    }
}
