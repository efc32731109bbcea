//! Checkpoints of the engine on disk: which is the last complete one, and what may go on from it.
//!
//! The engine writes one directory a step, every rank its own part, and names the last in a file `latest` once all are
//! done. A part that was cut off lacks the end of its archive. Nothing here is ever deleted or changed.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

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
    /// Its step.
    pub step: u64,
    /// What it can be loaded into.
    pub shape: Shape,
}

impl Shape {
    /// Whether a run of this stage and number of ranks can go on from it.
    pub fn suits(self, stage: u64, world: Option<usize>) -> bool {
        let same_world = world.is_none_or(|world| self.world == 0 || world == self.world);
        same_world && (stage == 3) == self.partitions_weights && (stage == 0) == (self.world == 0)
    }
}

/// The last complete checkpoint below a directory: `global_step*` of the engine, or `checkpoint-*` of the HF Trainer.
pub fn last_complete(root: &Path) -> Option<Checkpoint> {
    let mut found: Vec<Checkpoint> = complete_in(root);
    for directory in directories(root, "checkpoint-") {
        found.extend(complete_in(&directory));
    }
    found.into_iter().max_by_key(|checkpoint| checkpoint.step)
}

fn complete_in(root: &Path) -> Vec<Checkpoint> {
    let one = |parts: PathBuf| {
        let step = number(&parts, "global_step")?;
        Some(Checkpoint { path: root.to_owned(), shape: shape(&parts)?, parts, step })
    };
    directories(root, "global_step").into_iter().filter_map(one).collect()
}

fn directories(root: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| number(path, prefix).is_some() && path.is_dir())
        .collect()
}

fn number(path: &Path, prefix: &str) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

/// The shape of a complete checkpoint; none if a part is missing or cut off.
fn shape(parts: &Path) -> Option<Shape> {
    let files: Vec<PathBuf> =
        fs::read_dir(parts).ok()?.flatten().map(|entry| entry.path()).collect();
    let names: Vec<&str> = files.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let ranks = |end: &str| {
        let mut ranks: Vec<usize> = names.iter().filter_map(|name| rank(name, end)).collect();
        ranks.sort_unstable();
        (ranks.iter().copied().eq(0..ranks.len())).then_some(ranks.len())
    };
    let world = ranks("_optim_states.pt")?;
    let partitioned = ranks("_model_states.pt")?;
    let is_whole = names.contains(&"mp_rank_00_model_states.pt");
    let has_weights = if partitioned > 0 { partitioned == world } else { is_whole };
    let archives = files.iter().filter(|path| path.extension().is_some_and(|end| end == "pt"));
    let all_end = archives.into_iter().all(|path| is_whole_archive(path));
    (has_weights && all_end).then_some(Shape { partitions_weights: partitioned > 0, world })
}

/// The rank in `bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt`.
fn rank(name: &str, end: &str) -> Option<usize> {
    let name = name.strip_suffix(end)?;
    let (_, rest) = name.split_once("zero_pp_rank_")?;
    rest.split('_').next()?.parse().ok()
}

/// Whether the file has the end of a ZIP archive, which is what PyTorch writes. Its comment is empty there.
fn is_whole_archive(path: &Path) -> bool {
    const END: usize = 22;
    let tail = || -> std::io::Result<[u8; END]> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-(END as i64)))?;
        let mut tail = [0; END];
        file.read_exact(&mut tail)?;
        Ok(tail)
    };
    tail().is_ok_and(|tail| tail.starts_with(b"PK\x05\x06"))
}

impl Checkpoint {
    /// What the program is told: the directory itself if its `latest` names this checkpoint, else a directory of links
    /// made at `aside`, so that nothing of the user's is changed.
    ///
    /// # Errors
    /// If the links cannot be made.
    pub fn path_for_program(&self, aside: &Path) -> std::io::Result<PathBuf> {
        let name = self.parts.file_name().unwrap_or_default();
        let latest = fs::read_to_string(self.path.join("latest")).unwrap_or_default();
        if latest.trim() == name.to_string_lossy() {
            return Ok(self.path.clone());
        }
        fs::create_dir_all(aside)?;
        let link = aside.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(fs::canonicalize(&self.parts)?, &link)?;
        }
        fs::write(aside.join("latest"), name.as_encoded_bytes())?;
        Ok(aside.to_owned())
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
        let aside = root.join("aside");
        assert_eq!(last.path_for_program(&aside).expect("links"), aside);
        assert_eq!(fs::read_to_string(aside.join("latest")).expect("a file"), "global_step10");
        assert!(aside.join("global_step10").join(STAGE_2[0]).is_file());
        assert_eq!(fs::read_to_string(root.join("latest")).expect("a file"), "global_step30");
    }
}
