//! The parts of one checkpoint, by the names of the engine's files.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Shape;

/// What tells one writing of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    file: u64,
    bytes: u64,
    pub(super) written: Option<SystemTime>,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self { file: metadata.ino(), bytes: metadata.len(), written: metadata.modified().ok() }
    }
}

/// The archives in a directory that are parts of a checkpoint.
pub(super) fn archives(parts: &Path) -> Vec<(PathBuf, Stamp)> {
    let Ok(entries) = fs::read_dir(parts) else { return Vec::new() };
    let is_part = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| {
            name.ends_with("_model_states.pt")
                || name.ends_with("_optim_states.pt")
                || name.ends_with("-model_states.pt")
        })
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(is_part);
    let stamped = paths.filter_map(|path| {
        let stamp = Stamp::from(&fs::metadata(&path).ok()?);
        Some((path, stamp))
    });
    stamped.collect()
}

/// The shape of a complete checkpoint; none if a part is missing or cut off.
pub(super) fn shape(parts: &Path) -> Option<Shape> {
    let files: Vec<PathBuf> = archives(parts).into_iter().map(|(path, _)| path).collect();
    let names: Vec<&str> = files.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let world = ranks(&names, "_optim_states.pt")?;
    let partitioned = ranks(&names, "_model_states.pt")?;
    let is_whole = names.iter().any(|name| is_whole_model(name));
    let has_weights = if partitioned > 0 { partitioned == world } else { is_whole };
    let all_end = files.iter().all(|path| is_whole_archive(path));
    (has_weights && all_end).then_some(Shape { partitions_weights: partitioned > 0, world })
}

/// Whether stage 3 wrote what is there, complete or not; none if there is nothing.
pub(super) fn has_partitioned_weights(parts: &Path) -> Option<bool> {
    let files = archives(parts);
    let names = files.iter().filter_map(|(path, _)| path.file_name()?.to_str());
    let is_partition = |name: &str| rank(name, "_model_states.pt").is_some();
    (!files.is_empty()).then(|| names.into_iter().any(is_partition))
}

/// `mp_rank_00_model_states.pt`, one of each part of a model that is split over ranks.
fn is_whole_model(name: &str) -> bool {
    name.starts_with("mp_rank_") && name.ends_with("_model_states.pt")
}

/// How many ranks wrote such parts; none if one between them is missing.
fn ranks(names: &[&str], end: &str) -> Option<usize> {
    let found: BTreeSet<(usize, usize)> = names.iter().filter_map(|name| rank(name, end)).collect();
    let data: BTreeSet<usize> = found.iter().map(|(data, _)| *data).collect();
    let model: BTreeSet<usize> = found.iter().map(|(_, model)| *model).collect();
    let is_range = |ranks: &BTreeSet<usize>| ranks.iter().copied().eq(0..ranks.len());
    let is_complete =
        is_range(&data) && is_range(&model) && found.len() == data.len() * model.len();
    is_complete.then_some(found.len())
}

/// The ranks in `bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt`: among those with other data, and among those with other
/// parts of the model. Experts are named `expp_rank_`.
fn rank(name: &str, end: &str) -> Option<(usize, usize)> {
    let name = name.strip_suffix(end)?;
    let (_, rest) = name.split_once("zero_pp_rank_").or_else(|| name.split_once("expp_rank_"))?;
    let (data, model) = rest.split_once("_mp_rank_")?;
    Some((data.parse().ok()?, model.parse().ok()?))
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
