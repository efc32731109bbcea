//! Checkpoints of the engine on disk: which is the last complete one, and what may go on from it.
//!
//! The engine writes one directory a step, every rank its own part, and names the last in a file `latest` once all are
//! done. A part that was cut off lacks the end of its archive. Nothing here is ever deleted or changed.

mod owner;
mod parts;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use self::owner::Before;
use self::parts::{archives, has_partitioned_weights, shape};

/// What a checkpoint can be loaded into: the engine refuses another number of ranks, and another kind of stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Whether weights are partitioned: stage 3. Stages 1 and 2 read each other's.
    pub partitions_weights: bool,
    /// How many ranks wrote optimizer states; 0 without ZeRO.
    pub world: usize,
}

/// A checkpoint that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// What a program is told to go on from.
    pub path: PathBuf,
    /// The directory with the parts.
    pub parts: PathBuf,
    /// Its step; 0 if neither its name nor that of its directory tells.
    pub step: u64,
    /// What it can be loaded into.
    pub shape: Shape,
    /// Whether the file `latest` beside it names it.
    pub is_latest: bool,
    /// When its last part was written.
    written: Option<SystemTime>,
}

/// One writing of a checkpoint: the same directory may be written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    parts: PathBuf,
    written: Option<SystemTime>,
}

impl Shape {
    /// Whether a run of this stage and number of ranks can go on from it.
    pub fn suits(self, stage: u64, world: Option<usize>) -> bool {
        let same_world = world.is_none_or(|world| self.world == 0 || world == self.world);
        same_world && (stage == 3) == self.partitions_weights && (stage == 0) == (self.world == 0)
    }
}

/// The last complete checkpoint in a directory, whoever wrote it.
pub fn last_complete(root: &Path) -> Option<Checkpoint> {
    last(root, |_| true)
}

/// The last complete checkpoint in a directory among those that may be used: what `latest` names, else the highest step.
pub fn last(root: &Path, may_use: impl Fn(&Checkpoint) -> bool) -> Option<Checkpoint> {
    let found: Vec<Checkpoint> = complete(root).into_iter().filter(|one| may_use(one)).collect();
    let named = found.iter().find(|one| one.is_latest && one.path == root).cloned();
    named.or_else(|| found.into_iter().max_by_key(|one| (one.step, one.written)))
}

/// Every complete checkpoint in a directory: of the engine, whatever its tag, and of programs that give each a directory
/// of its own, as the HF Trainer (`checkpoint-*`) and accelerate (`checkpoint_*`) do.
pub fn complete(root: &Path) -> Vec<Checkpoint> {
    let mut found = complete_in(root);
    for directory in directories(root) {
        // The Trainer's own saving on SIGTERM marks what it has not finished.
        let is_marked = directory.join("checkpoint-is-incomplete.txt").exists();
        let is_whole = !is_of_trainer(&directory)
            || (directory.join("trainer_state.json").is_file() && !is_marked);
        if is_whole && (latest(&directory).is_some() || is_of_trainer(&directory)) {
            found.extend(complete_in(&directory));
        }
    }
    found
}

/// Whether anything in a directory is a checkpoint, complete or not, that a run of this stage would spoil.
pub fn holds_others(root: &Path, stage: u64, world: Option<usize>) -> bool {
    let nested = directories(root).into_iter().flat_map(|directory| {
        let inner = directories(&directory);
        std::iter::once(directory).chain(inner)
    });
    let spoils = |parts: PathBuf| match shape(&parts) {
        Some(shape) => !archives(&parts).is_empty() && !shape.suits(stage, world),
        // What is torn may still be written over with parts of its own kind.
        None => {
            has_partitioned_weights(&parts).is_some_and(|partitioned| partitioned != (stage == 3))
        }
    };
    nested.into_iter().any(spoils)
}

fn complete_in(root: &Path) -> Vec<Checkpoint> {
    let latest = latest(root);
    let one = |parts: PathBuf| {
        let step = number(&parts).or_else(|| number(root)).unwrap_or(0);
        let name = parts.file_name()?;
        let is_latest = latest.as_deref().is_some_and(|latest| name == latest);
        let written = archives(&parts).iter().filter_map(|part| part.1.written).max();
        let shape = shape(&parts)?;
        Some(Checkpoint { path: root.to_owned(), shape, parts, step, is_latest, written })
    };
    directories(root).into_iter().filter_map(one).collect()
}

/// What the file `latest` in a directory names.
fn latest(root: &Path) -> Option<String> {
    Some(fs::read_to_string(root.join("latest")).ok()?.trim().to_owned())
}

fn is_of_trainer(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix("checkpoint-"));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

fn directories(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The number at the end of a name.
fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.len() - name.trim_end_matches(|last: char| last.is_ascii_digit()).len();
    name[name.len() - digits..].parse().ok()
}

impl Checkpoint {
    /// When its last part was written, in seconds since 1970.
    pub fn written_at(&self) -> Option<f64> {
        Some(self.written?.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
    }

    /// What tells it from another one in the same place.
    pub(crate) fn mark(&self) -> Mark {
        Mark { parts: self.parts.clone(), written: self.written }
    }

    /// What the program is told: the directory itself if its `latest` names this checkpoint, else a directory of links
    /// made at `aside`, so that nothing of the user's is changed.
    ///
    /// # Errors
    /// If the links cannot be made.
    pub fn path_for_program(&self, aside: &Path) -> std::io::Result<PathBuf> {
        if self.is_latest {
            return Ok(self.path.clone());
        }
        fs::create_dir_all(aside)?;
        // A program may look at the name of the directory too, as the HF Trainer does for its step.
        let aside = match self.path.file_name().filter(|_| is_of_trainer(&self.path)) {
            Some(name) => aside.join(name),
            None => aside.to_owned(),
        };
        fs::create_dir_all(&aside)?;
        let name = self.parts.file_name().unwrap_or_default();
        link(&self.parts, &aside.join(name))?;
        if is_of_trainer(&self.path) {
            // The state of the Trainer, the generators and the tokenizer stand beside the parts.
            for entry in fs::read_dir(&self.path)?.flatten() {
                if entry.path().is_file() && entry.file_name() != "latest" {
                    link(&entry.path(), &aside.join(entry.file_name()))?;
                }
            }
        }
        fs::write(aside.join("latest"), name.as_encoded_bytes())?;
        fs::canonicalize(aside)
    }
}

fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::os::unix::fs::symlink(fs::canonicalize(from)?, to) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"data PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    fn write(root: &Path, step: u64, names: &[&str]) {
        let parts = root.join(format!("global_step{step}"));
        fs::create_dir_all(&parts).expect("a directory");
        for name in names {
            fs::write(parts.join(name), WHOLE).expect("a file");
        }
        fs::write(root.join("latest"), format!("global_step{step}")).expect("a file");
    }

    const STAGE_2: [&str; 3] = [
        "mp_rank_00_model_states.pt",
        "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    ];
    const STAGE_3: [&str; 4] = [
        "zero_pp_rank_0_mp_rank_00_model_states.pt",
        "zero_pp_rank_1_mp_rank_00_model_states.pt",
        "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    ];

    #[test]
    fn stages_1_and_2_read_each_other_and_3_only_itself() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), 10, &STAGE_2);
        let shape = last_complete(directory.path()).expect("a checkpoint").shape;
        let suits = |stage| shape.suits(stage, Some(2));
        assert_eq!([0, 1, 2, 3].map(suits), [false, true, true, false]);
        assert!(!shape.suits(2, Some(4)));
        write(directory.path(), 20, &STAGE_3);
        let last = last_complete(directory.path()).expect("a checkpoint");
        assert_eq!(
            (last.step, last.shape.suits(3, None), last.shape.suits(2, None)),
            (20, true, false)
        );
    }

    #[test]
    fn a_checkpoint_that_lacks_a_part_or_its_end_is_passed_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        write(root, 10, &STAGE_2);
        write(root, 20, &STAGE_2[..2]);
        fs::remove_file(root.join("global_step20").join(STAGE_2[0])).expect("removed");
        write(root, 30, &STAGE_2);
        fs::write(root.join("global_step30").join(STAGE_2[2]), b"cut off").expect("a file");
        let last = last_complete(root).expect("a checkpoint");
        assert_eq!(last.step, 10);
        let aside = fs::canonicalize(root).expect("a path").join("aside");
        assert_eq!(last.path_for_program(&aside).expect("links"), aside);
        assert_eq!(fs::read_to_string(aside.join("latest")).expect("a file"), "global_step10");
        assert!(aside.join("global_step10").join(STAGE_2[0]).is_file());
        assert_eq!(fs::read_to_string(root.join("latest")).expect("a file"), "global_step30");
    }

    #[test]
    fn the_last_is_what_latest_names_whatever_else_is_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        write(root, 20, &STAGE_2);
        write(root, 5, &STAGE_2);
        assert_eq!(last_complete(root).map(|found| found.step), Some(5));
        fs::remove_file(root.join("latest")).expect("removed");
        assert_eq!(last_complete(root).map(|found| found.step), Some(20));
    }

    #[test]
    fn what_was_there_before_belongs_to_another_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        write(root, 20, &STAGE_2);
        write(root, 10, &STAGE_2);
        let before = Before::look(Some(root));
        let newer = || last(root, |found| before.is_newer(found)).map(|found| found.step);
        assert_eq!(newer(), None);
        write(root, 5, &STAGE_2);
        assert_eq!(newer(), Some(5));
        // A rank that had time to write over its part of the old one makes it nobody's.
        let parts = root.join("global_step20");
        fs::write(parts.join(STAGE_2[1]), [WHOLE, WHOLE].concat()).expect("a file");
        assert_eq!(newer(), Some(5));
        for name in STAGE_2 {
            fs::write(parts.join(name), [WHOLE, WHOLE, WHOLE].concat()).expect("a file");
        }
        fs::write(root.join("latest"), "global_step20").expect("a file");
        assert_eq!(newer(), Some(20));
    }

    #[test]
    fn tags_and_names_of_others_are_checkpoints_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let parts = |name: &str, names: &[&str]| {
            let parts = root.join(name);
            fs::create_dir_all(&parts).expect("a directory");
            names.iter().for_each(|name| fs::write(parts.join(name), WHOLE).expect("a file"));
        };
        parts("step_10", &STAGE_2);
        fs::write(root.join("latest"), "step_10\n").expect("a file");
        let last = last_complete(root).expect("a checkpoint");
        assert_eq!((last.step, last.path_for_program(root).ok()), (10, Some(root.to_owned())));
        let states = root.join("states");
        parts("states/checkpoint_3/pytorch_model", &STAGE_2);
        fs::write(states.join("checkpoint_3/latest"), "pytorch_model").expect("a file");
        let last = last_complete(&states).expect("a checkpoint");
        assert_eq!((last.step, last.path), (3, states.join("checkpoint_3")));
        let split = ["mp_rank_00_model_states.pt", "mp_rank_01_model_states.pt"];
        let split: Vec<String> = split
            .iter()
            .map(ToString::to_string)
            .chain([0, 1].into_iter().flat_map(|data| {
                [0, 1].map(|model| format!("zero_pp_rank_{data}_mp_rank_0{model}_optim_states.pt"))
            }))
            .collect();
        let split: Vec<&str> = split.iter().map(String::as_str).collect();
        parts("split/global_step7", &split);
        let shape = last_complete(&root.join("split")).expect("a checkpoint").shape;
        assert_eq!(shape, Shape { partitions_weights: false, world: 4 });
        parts("torn/global_step7", &split[..5]);
        assert_eq!(last_complete(&root.join("torn")), None);
    }

    #[test]
    fn a_checkpoint_of_the_trainer_needs_its_state_and_links_carry_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().join("out");
        for step in [5, 10] {
            write(&out.join(format!("checkpoint-{step}")), step, &STAGE_2);
        }
        assert_eq!(last_complete(&out), None);
        fs::write(out.join("checkpoint-5/trainer_state.json"), "{}").expect("a file");
        assert_eq!(last_complete(&out).map(|found| found.step), Some(5));
        fs::write(out.join("checkpoint-10/trainer_state.json"), "{}").expect("a file");
        fs::remove_file(out.join("checkpoint-10/latest")).expect("removed");
        let last = last_complete(&out).expect("a checkpoint");
        let told = last.path_for_program(&directory.path().join("aside")).expect("links");
        assert!(told.is_absolute() && told.ends_with("checkpoint-10"), "{told:?}");
        assert!(told.join("trainer_state.json").is_file() && told.join("latest").is_file());
    }

    #[test]
    fn a_directory_with_parts_of_another_stage_is_seen_even_if_they_are_torn() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        assert!(!holds_others(root, 3, Some(2)));
        write(root, 5, &STAGE_2);
        assert!(holds_others(root, 3, Some(2)) && !holds_others(root, 2, Some(2)));
        write(root, 10, &STAGE_2[..1]);
        fs::write(root.join("global_step10").join(STAGE_2[2]), b"cut off").expect("a file");
        assert!(!holds_others(root, 2, Some(2)));
        write(root, 15, &STAGE_3[..1]);
        fs::write(root.join("global_step15").join(STAGE_3[2]), b"cut off").expect("a file");
        assert!(holds_others(root, 2, Some(2)));
    }
}
