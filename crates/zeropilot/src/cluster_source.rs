//! The machines a user means by `--gpus` and `--host-ram`.

use zeropilot_cluster::{Cluster, Gpus};
use zeropilot_lint::Language;
use zeropilot_units::Bytes;
use zeropilot_view::gpus;

/// Reads them.
pub(crate) fn open(
    text: &str,
    host_ram: Option<Bytes>,
    language: Language,
) -> Result<Cluster, String> {
    let gpus: Gpus = text.parse().map_err(|error| gpus::gpus_error(text, &error, language))?;
    let mut cluster = Cluster::new(gpus);
    cluster.host.ram = host_ram;
    Ok(cluster)
}
