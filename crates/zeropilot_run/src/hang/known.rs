//! What frames show: which collective a rank waits in, and what it was doing. The names are data (`knowledge/stacks`).

use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_record::Activity;

use crate::stacks::{Frame, Thread};

const DATA: &str = zeropilot_knowledge::text("stacks/frames.json");

#[derive(Deserialize)]
struct Data {
    collectives: Vec<Known>,
    activities: Vec<Known>,
    partitioned_weights: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    file: String,
    /// Any if it is empty.
    #[serde(default)]
    functions: Vec<String>,
    collective: Option<String>,
    activity: Option<Activity>,
    #[cfg(test)]
    source: String,
}

impl Known {
    fn is(&self, frame: &Frame) -> bool {
        let is_named = self.functions.is_empty() || self.functions.contains(&frame.function);
        is_named && frame.is_in(&self.file)
    }
}

static FRAMES: LazyLock<Data> =
    LazyLock::new(|| serde_json::from_str(DATA).expect("a test reads the frames"));

/// The collective that a thread waits in: the outermost function, as the program called it.
pub(super) fn collective(thread: &Thread) -> Option<String> {
    thread.frames.iter().rev().find_map(|frame| {
        let known = FRAMES.collectives.iter().find(|known| known.is(frame))?;
        Some(known.collective.clone().unwrap_or_else(|| frame.function.clone()))
    })
}

/// What a thread was doing: the innermost function that tells.
pub(super) fn activity(thread: &Thread) -> Option<Activity> {
    let known = |frame| FRAMES.activities.iter().find(|known| known.is(frame));
    thread.frames.iter().find_map(|frame| known(frame)?.activity)
}

/// Whether the weights are partitioned (stage 3), as far as a thread shows.
pub(super) fn partitions_weights(thread: &Thread) -> bool {
    let is_known = |frame| FRAMES.partitioned_weights.iter().any(|known| known.is(frame));
    thread.frames.iter().any(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_are_read_and_each_has_a_source() {
        let all = FRAMES.collectives.iter().chain(&FRAMES.activities);
        let all = all.chain(&FRAMES.partitioned_weights);
        assert!(all.clone().count() > 8);
        assert!(all.clone().all(|known| !known.source.is_empty() && known.file.ends_with(".py")));
        assert!(FRAMES.activities.iter().all(|known| known.activity.is_some()));
    }
}
