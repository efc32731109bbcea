//! Whatever a text holds: reading it never fails, and every number of the answer stands in it.

use proptest::prelude::*;
use zeropilot_diagnose::{Message, Reader, diagnose};

/// Pieces of real messages, so that random texts get far.
const PIECES: [&str; 26] = [
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "Tried to allocate ",
    "79.35 GiB",
    " total capacity",
    "total capacity of ",
    " of which 12.50 MiB is free",
    " already allocated; ",
    " reserved in total by PyTorch)",
    "Process 77 has 9.94 GiB memory in use. ",
    "this process has 0 bytes memory in use",
    "17179869184.00 GiB",
    " is allocated by PyTorch, and ",
    " is reserved by PyTorch but unallocated",
    "99999999999999999999999 GiB",
    "1e300 GiB",
    "-3.00 MiB",
    "[rank3]: ",
    "Traceback (most recent call last)",
    "OutOfMemoryError",
    "  File \"x.py\", line 3, in backward",
    "exits with return code = -9",
    "99999999999999999MiB / 3MiB",
    "\u{1b}[31m",
    "\r",
    "\n",
    "中文 é",
];

/// Sizes as they stand in a text, found without the code under test.
fn sizes(text: &str) -> Vec<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for pair in words.windows(2) {
        // A point in front may end a sentence or begin a fraction.
        let digits = pair[0].trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let fraction =
            pair[0].trim_start_matches(|letter: char| letter != '.' && !letter.is_ascii_digit());
        for (unit, shift) in [("bytes", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30)] {
            let numbers =
                [digits, fraction].into_iter().filter_map(|text| text.parse::<f64>().ok());
            let bytes = numbers.map(|number| (number * f64::from(1_u32 << shift)) as u64);
            found.extend(bytes.filter(|_| pair[1].starts_with(unit)));
        }
    }
    found
}

fn numbers(message: &Message) -> Vec<u64> {
    let Message { tried, free, capacity, in_use, allocated, unallocated, reserved, .. } = message;
    let single = [tried, free, capacity, in_use, allocated, unallocated, reserved];
    single.into_iter().flatten().chain(&message.processes).copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_number_of_a_message_stands_in_the_text(
        picks in prop::collection::vec((0..PIECES.len(), ".{0,6}"), 0..24)
    ) {
        let text: String = picks.iter().map(|(pick, other)| format!("{}{other}", PIECES[*pick])).collect();
        let line = text.replace(['\n', '\r'], " ");
        let there = sizes(&line);
        for number in numbers(&Message::read(&line)) {
            prop_assert!(there.contains(&number), "{number} is not in {line:?}");
        }
    }

    #[test]
    fn where_a_log_is_cut_into_pieces_does_not_matter(
        picks in prop::collection::vec((0..PIECES.len(), ".{0,6}"), 0..24),
        size in 1_usize..40,
    ) {
        let text: String = picks.iter().map(|(pick, other)| format!("{}{other}", PIECES[*pick])).collect();
        let mut reader = Reader::default();
        text.as_bytes().chunks(size).for_each(|piece| reader.feed(piece));
        prop_assert_eq!(reader.finish(), diagnose(&text));
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut reader = Reader::default();
        reader.feed(&bytes);
        reader.finish();
    }
}
