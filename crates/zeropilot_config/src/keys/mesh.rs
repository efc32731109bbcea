//! Two keys that `deepspeed.initialize` itself reads, which the schemas of the config loader do not show.

use crate::schema::EngineVersion;
use crate::syntax::Node;

/// The ranks that have samples of their own. It has no text: that of [`SEQUENCE`] explains both.
pub(super) const DATA: &str = "data_parallel_size";
/// The ranks that share a sequence.
pub(super) const SEQUENCE: &str = "sequence_parallel_size";

/// Whether the engine reads a top-level key to build the mesh of sequence parallelism: from 0.15 on and only if both
/// are there.
pub fn builds_mesh(root: &Node, key: &str, version: EngineVersion) -> bool {
    let keys = [DATA, SEQUENCE];
    keys.contains(&key)
        && keys.iter().all(|key| root.get(key).is_some())
        && version >= EngineVersion::V0_15
}
