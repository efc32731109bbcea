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

/// Ranks that own equally much of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerRun {
    /// The first of them.
    pub first: u64,
    /// The one after the last of them.
    pub end: u64,
    /// Elements each of them owns.
    pub each: u64,
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

    /// Positions in the group of parameters that reach into a rank's partition, with the elements inside.
    pub fn positions(&self, rank: u64) -> impl Iterator<Item = (usize, u64)> {
        let (start, end) = self.range(rank);
        let cut = self.slots.iter().map(move |slot| (slot.position, slot.inside(start, end)));
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
        self.runs(position).flat_map(|run| (run.first..run.end).map(move |rank| (rank, run.each)))
    }

    /// The same, ranks with equal parts together: only the first and the last may own less than a partition.
    pub fn runs(&self, position: usize) -> impl Iterator<Item = OwnerRun> {
        let slot = self.slots[self.placed[position]];
        let (first, last) =
            (slot.offset / self.partition, (slot.offset + slot.size - 1) / self.partition);
        let borders = [first, first + 1, last.max(first + 1), last + 1];
        let runs = borders.into_iter().zip(borders.into_iter().skip(1));
        runs.filter(|(first, end)| first < end).map(move |(first, end)| OwnerRun {
            first,
            end,
            each: slot.inside(first * self.partition, (first + 1) * self.partition),
        })
    }

    /// Elements a rank owns of a parameter.
    pub fn part(&self, position: usize, rank: u64) -> u64 {
        let (start, end) = self.range(rank);
        self.slots[self.placed[position]].inside(start, end)
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
    fn ranks_between_the_first_and_the_last_own_a_partition_each() {
        // 3 + 12 + 1 = 16 for eight ranks of 2: the 12 lie from 3 to 15.
        let layout = FlatLayout::new(&[3, 12, 1], 8, false, None);
        let runs: Vec<_> = layout.runs(1).map(|run| (run.first, run.end, run.each)).collect();
        assert_eq!(runs, [(1, 2, 1), (2, 7, 2), (7, 8, 1)]);
        assert_eq!((layout.part(1, 0), layout.part(1, 1), layout.part(1, 6)), (0, 1, 2));
    }

    #[test]
    fn round_robin_deals_parameters_out_in_turn() {
        assert_eq!(round_robin_order(5, 2), [0, 2, 4, 1, 3]);
    }
}
