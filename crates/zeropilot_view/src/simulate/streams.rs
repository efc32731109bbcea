//! Streams of a step: a lane for every one, blocks for what happens in it, and colours for what they are.

use zeropilot_step::time::{Span, Stream, What};
use zeropilot_text::{Language, Text};

use super::human::seconds;
use super::words::{stream as stream_words, what};
use crate::page::{BlockWords, ColourWords, LaneWords, StreamsWords};

/// Blocks that are thinner than so many of a step's width are one where they look alike.
const FINE: f64 = 2000.0;

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Forward,
    Backward,
    Update,
    Call,
    Copy,
    Disk,
    Wait,
}

impl Sort {
    pub(super) const ALL: [Self; 7] = [
        Self::Forward,
        Self::Backward,
        Self::Update,
        Self::Call,
        Self::Copy,
        Self::Disk,
        Self::Wait,
    ];

    pub(super) fn of(what: What) -> Self {
        match what {
            What::Forward(_) => Self::Forward,
            What::Backward(_) => Self::Backward,
            What::Update => Self::Update,
            What::Call(_) => Self::Call,
            What::Copy(_) => Self::Copy,
            What::Disk => Self::Disk,
            What::Wait(_) => Self::Wait,
        }
    }

    /// After Paul Tol's muted colours, which people with any colour vision can tell apart; no part of memory has one of them.
    pub(super) fn colour(self) -> &'static str {
        match self {
            Self::Forward => "#6a5fd0",
            Self::Backward => "#b3a9ee",
            Self::Update => "#aa2e68",
            Self::Call => "#aaaa33",
            Self::Copy => "#44aa99",
            Self::Disk => "#cc6677",
            Self::Wait => "#dddddd",
        }
    }

    pub(super) fn words(self, language: Language) -> &'static str {
        match self {
            Self::Forward => Text::new("forward", "前向"),
            Self::Backward => Text::new("backward", "反向"),
            Self::Update => Text::new("optimizer", "参数更新"),
            Self::Call => Text::new("communication", "通信"),
            Self::Copy => Text::new("copies between host and GPU", "主机与 GPU 之间的拷贝"),
            Self::Disk => Text::new("NVMe", "NVMe 读写"),
            Self::Wait => Text::new("waiting", "等待"),
        }
        .get(language)
    }
}

/// A stream with what happens in it.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) stream: Stream,
    pub(super) blocks: Vec<Span>,
}

/// The end of a step.
pub(super) fn end(spans: &[Span]) -> f64 {
    spans.iter().map(|span| span.end).fold(f64::MIN_POSITIVE, f64::max)
}

/// Every stream in which something happens; what lies closer together than `1 / fine` of the step and looks alike is one block.
pub(super) fn lanes(spans: &[Span], fine: f64) -> Vec<Lane> {
    let thin = end(spans) / fine;
    let lane = |stream| Lane { stream, blocks: blocks(spans, stream, thin) };
    let lanes = Stream::ALL.into_iter().map(lane);
    lanes.filter(|lane| !lane.blocks.is_empty()).collect()
}

/// What there is in a step, in the order of the legend.
pub(super) fn sorts(spans: &[Span]) -> impl Iterator<Item = Sort> {
    let is_there = move |sort: &Sort| spans.iter().any(|span| Sort::of(span.what) == *sort);
    Sort::ALL.into_iter().filter(is_there)
}

fn blocks(spans: &[Span], stream: Stream, thin: f64) -> Vec<Span> {
    let mut blocks: Vec<Span> = Vec::new();
    for span in spans.iter().filter(|span| span.stream == stream) {
        match blocks.last_mut() {
            Some(last)
                if Sort::of(last.what) == Sort::of(span.what) && span.begin - last.end < thin =>
            {
                last.end = span.end;
            }
            _ => blocks.push(*span),
        }
    }
    blocks
}

/// The streams for pages, which draw them themselves.
pub fn streams(spans: &[Span], language: Language) -> StreamsWords {
    let block = |span: &Span| BlockWords {
        begin: span.begin,
        end: span.end,
        words: what(|_| None, span.what, language),
        time: seconds(span.end - span.begin),
        colour: Sort::of(span.what).colour(),
    };
    let lane = |lane: Lane| LaneWords {
        words: stream_words(lane.stream).get(language),
        blocks: lane.blocks.iter().map(block).collect(),
    };
    let colour = |sort: Sort| ColourWords { words: sort.words(language), colour: sort.colour() };
    let end = end(spans);
    StreamsWords {
        end,
        axis: (0..=4).map(|part| seconds(end * f64::from(part) / 4.0)).collect(),
        lanes: lanes(spans, FINE).into_iter().map(lane).collect(),
        colours: sorts(spans).map(colour).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    #[test]
    fn no_colour_of_the_streams_means_a_part_of_memory() {
        let parts = memory::legend(Language::English);
        for (place, sort) in Sort::ALL.into_iter().enumerate() {
            assert!(parts.iter().all(|(_, _, colour)| *colour != sort.colour()), "{sort:?}");
            assert!(Sort::ALL[..place].iter().all(|other| other.colour() != sort.colour()));
        }
    }
}
