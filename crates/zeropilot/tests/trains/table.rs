//! `docs/presets.md`: what was tried and how it ended.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::combination::{Combination, PRECISIONS, PRESETS, PROGRAMS};

/// How far a config got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The engine's loader accepts it; the machine cannot run it.
    Loads,
    /// Two ranks made three optimizer steps.
    Trains,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Loads => "loads",
            Self::Trains => "trains",
        }
    }
}

type Outcomes = [(Combination, Outcome)];

const HEAD: &str = "\
# Presets tested with DeepSpeed

`zeropilot new PRESET --for PROGRAM` writes the configs in this table.
We ran these configs with real DeepSpeed (0.19.8 with transformers 5.22 and accelerate 1.15) on two CPU ranks, with the programs in `examples/`.

- **trains**: both ranks completed three optimizer steps with a finite loss.
- **loads**: the program ran on both ranks until DeepSpeed had read and accepted the config.
  To train, `zero3_nvme` needs libaio and a disk, which the test machine does not have.

`ZEROPILOT_THOROUGH=1 ZEROPILOT_UPDATE_PRESETS=1 cargo test -p zeropilot --test trains` writes the table.
Each build tests a dozen rows again.

";

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/presets.md")
}

fn row(preset: &str, precision: &str, outcomes: &Outcomes) -> String {
    let mut row = format!("| `{preset}` | {precision} |");
    for program in PROGRAMS {
        let outcome = outcomes.iter().find(|(combination, _)| {
            (combination.preset, combination.precision, combination.program)
                == (preset, precision, program)
        });
        // Writing to a string cannot fail.
        let _ = write!(row, " {} |", outcome.map_or("not tried", |(_, outcome)| outcome.word()));
    }
    row
}

fn text(outcomes: &Outcomes) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("| preset | precision |");
    PROGRAMS.iter().for_each(|program| text.push_str(&format!(" {} |", program.name())));
    text.push_str("\n| --- | --- | --- | --- | --- |\n");
    for preset in PRESETS {
        for precision in PRECISIONS {
            text.push_str(&row(preset, precision, outcomes));
            text.push('\n');
        }
    }
    text
}

/// Writes the table if that is asked for.
pub(crate) fn update(outcomes: &Outcomes) {
    if std::env::var_os("ZEROPILOT_UPDATE_PRESETS").is_some() {
        std::fs::write(path(), text(outcomes)).expect("the table can be written");
    }
}

/// What the table says of these combinations is no more than what happened.
pub(crate) fn assert_claims_hold(outcomes: &Outcomes) {
    let table = std::fs::read_to_string(path()).expect("docs/presets.md");
    for (combination, outcome) in outcomes {
        let start = format!("| `{}` | {} |", combination.preset, combination.precision);
        let row = table.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("no row for {combination}"));
        let column = PROGRAMS.iter().position(|program| *program == combination.program);
        let claim = row.split('|').nth(3 + column.expect("a program")).expect("a column").trim();
        let claimed =
            [Outcome::Loads, Outcome::Trains].into_iter().find(|known| known.word() == claim);
        let claimed = claimed.unwrap_or_else(|| panic!("{combination}: `{claim}` is no outcome"));
        assert!(
            claimed <= *outcome,
            "{combination}: docs/presets.md says {claim}, but it {}",
            outcome.word()
        );
    }
}
