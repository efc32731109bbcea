//! The model of PyTorch's CUDA allocator: worked examples, a plain re-telling of its rules, and the constants of an
//! installed PyTorch.

use zeropilot_oracle::Random;
use zeropilot_step::cuda::{Allocation, Allocator, Settings, block_size, segment_size};
use zeropilot_step::cuda::{
    LARGE_SEGMENT, MIN_BLOCK, OWN_SEGMENT, SEGMENT_STEP, SMALL_REQUEST, SMALL_SEGMENT,
};
use zeropilot_units::Bytes;

const MIB: u64 = 1 << 20;

fn mib(amount: u64) -> Bytes {
    Bytes(amount * MIB)
}

fn plain() -> Allocator {
    Allocator::new(Settings::default())
}

fn take(allocator: &mut Allocator, bytes: u64) -> Allocation {
    allocator.allocate(bytes).expect("no limit is set")
}

#[test]
fn small_tensors_share_a_segment_of_two_mebibytes() {
    let mut allocator = plain();
    for _ in 0..4 {
        take(&mut allocator, MIB / 2);
    }
    assert_eq!((allocator.allocated(), allocator.reserved()), (mib(2), mib(2)));
    take(&mut allocator, 1);
    assert_eq!((allocator.allocated().0, allocator.reserved()), (2 * MIB + 512, mib(4)));
}

#[test]
fn medium_tensors_share_a_segment_of_twenty_and_large_ones_do_not() {
    let mut allocator = plain();
    take(&mut allocator, 5 * MIB);
    take(&mut allocator, 9 * MIB);
    assert_eq!(allocator.reserved(), mib(20));
    // 6 MiB are left, less than asked for.
    take(&mut allocator, 9 * MIB);
    assert_eq!(allocator.reserved(), mib(40));
    take(&mut allocator, 101 * MIB);
    assert_eq!(allocator.reserved(), mib(142));
}

/// A remainder of a mebibyte or less stays with its block, and counts as allocated.
#[test]
fn a_large_block_keeps_a_small_remainder() {
    let mut allocator = plain();
    let first = take(&mut allocator, 12 * MIB);
    allocator.free(first);
    take(&mut allocator, 11 * MIB);
    assert_eq!((allocator.allocated(), allocator.reserved()), (mib(12), mib(12)));
}

#[test]
fn freed_neighbours_become_one_block_again() {
    let mut allocator = plain();
    let parts: Vec<Allocation> = (0..4).map(|_| take(&mut allocator, 5 * MIB)).collect();
    assert_eq!(allocator.reserved(), mib(20));
    for index in [1, 3, 0, 2] {
        allocator.free(parts[index]);
    }
    take(&mut allocator, 18 * MIB);
    assert_eq!(allocator.peak_reserved(), mib(20));
}

/// The well-known trap: what is free is too short, and only a segment that grows can lengthen it.
#[test]
fn a_hole_is_of_no_use_to_a_larger_tensor_unless_its_segment_grows() {
    for (expandable_segments, reserved) in [(false, mib(220)), (true, mib(120))] {
        let mut allocator = Allocator::new(Settings { expandable_segments, ..Settings::default() });
        let first = take(&mut allocator, 100 * MIB);
        allocator.free(first);
        take(&mut allocator, 120 * MIB);
        assert_eq!(allocator.peak_reserved(), reserved, "expandable: {expandable_segments}");
    }
}

/// A hole between tensors helps neither: 100 and 100 stay, 120 more are needed.
#[test]
fn a_hole_between_tensors_stays_a_hole() {
    for expandable_segments in [false, true] {
        let mut allocator = Allocator::new(Settings { expandable_segments, ..Settings::default() });
        let first = take(&mut allocator, 100 * MIB);
        take(&mut allocator, 100 * MIB);
        allocator.free(first);
        take(&mut allocator, 120 * MIB);
        assert_eq!(allocator.peak_reserved(), mib(320), "expandable: {expandable_segments}");
    }
}

#[test]
fn a_stream_does_not_reuse_what_another_freed() {
    let mut allocator = plain();
    let block = allocator.allocate_on(1, 30 * MIB).unwrap();
    allocator.free(block);
    take(&mut allocator, 30 * MIB);
    assert_eq!(allocator.reserved(), mib(60));
}

#[test]
fn oversize_blocks_are_neither_split_nor_given_to_small_requests() {
    let settings = Settings { max_split_size: Some(64 * MIB), ..Settings::default() };
    let mut allocator = Allocator::new(settings);
    let large = take(&mut allocator, 100 * MIB);
    allocator.free(large);
    take(&mut allocator, 30 * MIB);
    assert_eq!(allocator.reserved(), mib(130));
    // Within 20 MiB the whole block is used.
    take(&mut allocator, 90 * MIB);
    assert_eq!((allocator.allocated(), allocator.reserved()), (mib(130), mib(130)));
}

#[test]
fn the_cache_is_given_back_before_a_request_fails() {
    let settings = Settings { limit: Some(mib(200)), ..Settings::default() };
    let mut allocator = Allocator::new(settings);
    let cached = take(&mut allocator, 150 * MIB);
    allocator.free(cached);
    take(&mut allocator, 160 * MIB);
    assert_eq!((allocator.reserved(), allocator.peak_reserved()), (mib(160), mib(160)));
    let error = allocator.allocate(60 * MIB).unwrap_err();
    assert_eq!((error.requested, error.allocated, error.reserved), (mib(60), mib(160), mib(160)));
}

/// With growing segments the free pages of a partly used segment can be given back, too.
#[test]
fn growing_segments_give_back_holes_before_a_request_fails() {
    let limit = Some(mib(240));
    let fits = |expandable_segments| {
        let settings = Settings { limit, expandable_segments, ..Settings::default() };
        let mut allocator = Allocator::new(settings);
        let whole = take(&mut allocator, 200 * MIB);
        allocator.free(whole);
        let head = take(&mut allocator, 100 * MIB);
        take(&mut allocator, 20 * MIB);
        allocator.free(head);
        allocator.allocate(160 * MIB).is_ok()
    };
    assert!(!fits(false));
    assert!(fits(true));
}

#[test]
fn nothing_is_taken_for_an_empty_tensor() {
    let mut allocator = plain();
    let empty = take(&mut allocator, 0);
    allocator.free(empty);
    assert_eq!(allocator.peak_reserved(), Bytes(0));
}

/// A sequence like a training step's: sizes over many orders, mostly freed in reverse.
fn events(seed: u64, count: usize) -> Vec<Result<u64, usize>> {
    let mut random = Random::new(seed);
    let (mut live, mut next) = (Vec::new(), 0);
    let mut events = Vec::with_capacity(count);
    for _ in 0..count {
        if live.is_empty() || random.chance(52) {
            let magnitude = random.between(6, 26);
            events.push(Ok(random.between(1 << magnitude, (2 << magnitude) - 1)));
            live.push(next);
            next += 1;
        } else {
            let from_end = random.below(live.len().min(8));
            events.push(Err(live.remove(live.len() - 1 - from_end)));
        }
    }
    events
}

/// Size and owner.
type Piece = (u64, Option<usize>);

/// The allocator's rules once more, as plainly as possible: every segment a list of pieces, every search a walk.
#[derive(Default)]
struct Retold {
    /// Whether it is of the small pool, and its pieces.
    segments: Vec<(bool, Vec<Piece>)>,
    reserved: u64,
    allocated: u64,
}

impl Retold {
    fn allocate(&mut self, id: usize, bytes: u64) {
        let size = block_size(bytes);
        let small = size <= SMALL_REQUEST;
        let free = self.segments.iter().enumerate().flat_map(|(segment, (is_small, pieces))| {
            let fits = move |(_, (piece, owner)): &(usize, &Piece)| {
                *is_small == small && owner.is_none() && *piece >= size
            };
            let place = move |(at, (piece, _)): (usize, &Piece)| (*piece, segment, at);
            pieces.iter().enumerate().filter(fits).map(place)
        });
        let (segment, at) = match free.min() {
            Some((_, segment, at)) => (segment, at),
            None => {
                self.segments.push((small, vec![(segment_size(size), None)]));
                self.reserved += segment_size(size);
                (self.segments.len() - 1, 0)
            }
        };
        let pieces = &mut self.segments[segment].1;
        let rest = pieces[at].0 - size;
        if (small && rest >= MIN_BLOCK) || (!small && rest > SMALL_REQUEST) {
            pieces[at].0 = size;
            pieces.insert(at + 1, (rest, None));
        }
        pieces[at].1 = Some(id);
        self.allocated += pieces[at].0;
    }

    fn free(&mut self, id: usize) {
        for (_, pieces) in &mut self.segments {
            let Some(at) = pieces.iter().position(|(_, owner)| *owner == Some(id)) else {
                continue;
            };
            self.allocated -= pieces[at].0;
            pieces[at].1 = None;
            if pieces.get(at + 1).is_some_and(|(_, owner)| owner.is_none()) {
                pieces[at].0 += pieces.remove(at + 1).0;
            }
            if at > 0 && pieces[at - 1].1.is_none() {
                pieces[at - 1].0 += pieces.remove(at).0;
            }
            return;
        }
        panic!("{id} is not alive");
    }
}

#[test]
fn the_model_agrees_with_a_plain_retelling_after_every_event() {
    for seed in 1..=40 {
        let mut retold = Retold::default();
        let mut allocator = plain();
        let mut handles = Vec::new();
        for (at, event) in events(seed, 1500).into_iter().enumerate() {
            match event {
                Ok(bytes) => {
                    retold.allocate(handles.len(), bytes);
                    handles.push(take(&mut allocator, bytes));
                }
                Err(index) => {
                    retold.free(index);
                    allocator.free(handles[index]);
                }
            }
            let model = (allocator.allocated().0, allocator.reserved().0);
            assert_eq!(model, (retold.allocated, retold.reserved), "seed {seed}, event {at}");
        }
    }
}

/// Growing segments never hold more than a page per pool beyond what tensors and holes take.
#[test]
fn growing_segments_reserve_no_more_than_separate_ones_plus_a_page() {
    for seed in 1..=20 {
        let run = |expandable_segments| {
            let settings = Settings { expandable_segments, ..Settings::default() };
            let mut allocator = Allocator::new(settings);
            let mut handles = Vec::new();
            for event in events(seed, 3000) {
                match event {
                    Ok(bytes) => handles.push(take(&mut allocator, bytes)),
                    Err(index) => allocator.free(handles[index]),
                }
            }
            assert!(allocator.peak_reserved() >= allocator.peak_allocated());
            allocator.peak_reserved().0 as f64 / allocator.peak_allocated().0 as f64
        };
        let (separate, growing) = (run(false), run(true));
        assert!(growing <= separate * 1.1, "seed {seed}: {growing} against {separate}");
    }
}

#[test]
fn the_constants_are_those_of_the_installed_pytorch() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let libraries = std::fs::read_dir(home.join("engine/lib")).expect("the engine is installed");
    let header = libraries
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("site-packages/torch/include/c10/core/AllocatorConfig.h"))
        .find(|path| path.exists())
        .expect("PyTorch installs its headers");
    let text = std::fs::read_to_string(header).expect("the header can be read");
    let constant = |name: &str| -> u64 {
        let after = text.split(&format!("{name} = ")).nth(1);
        let after = after.or_else(|| text.split(&format!("{name}{{")).nth(1)).expect(name);
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect(name)
    };
    assert_eq!(constant("kSmallBuffer"), SMALL_SEGMENT);
    assert_eq!(constant("kMinBlockSize"), MIN_BLOCK);
    assert_eq!(constant("kSmallSize"), SMALL_REQUEST);
    assert_eq!(constant("kMinLargeAlloc"), OWN_SEGMENT);
    assert_eq!(constant("kRoundLarge"), SEGMENT_STEP);
    assert_eq!(constant("large_segment_size_"), LARGE_SEGMENT);
}
