//! What a row measured: which kind of memory, and how many bytes.

use zeropilot_units::Bytes;

use crate::reading::READING;
use crate::row::Row;

/// Which kind of memory was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// What tensors held: `max_memory_allocated`, active bytes.
    Allocated,
    /// What PyTorch had taken from the driver: `max_memory_reserved`.
    Reserved,
    /// Not said; most likely a monitor. Judged against what the driver shows.
    Unstated,
}

/// A measured peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Of what.
    pub metric: Metric,
    /// How much.
    pub bytes: Bytes,
    /// Whether the unit was stated; if not, GiB is assumed.
    pub unit_stated: bool,
}

/// The peak of a row, if it has one.
pub fn measured(row: &Row) -> Option<Measured> {
    let unit = row.mem_unit.as_deref().unwrap_or("");
    let decimal = unit.starts_with("GB (1e9");
    let stated = decimal || unit.starts_with("GiB") || unit.contains("consistent with GiB");
    let unit = READING.units.get(row.prefix()).map_or(Bytes::GIB.0, |unit| unit.bytes);
    let scale = if decimal { 1e9 } else { unit as f64 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a printed amount")]
    let bytes = Bytes((row.peak_mem_gb? * scale).round() as u64);
    let words = row.mem_metric.as_deref().unwrap_or("").to_lowercase();
    let metric = if words.contains("reserved") {
        Metric::Reserved
    } else if words.contains("allocated") || words.contains("active") {
        Metric::Allocated
    } else {
        Metric::Unstated
    };
    Some(Measured { metric, bytes, unit_stated: stated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::rows;

    /// Allocated and active memory, reserved with the trainer's print-outs, and the rest.
    #[test]
    fn metrics_of_complete_rows_are_told_apart() {
        let of = |metric| {
            let complete = rows().iter().filter(|row| row.complete_memory);
            complete.filter_map(measured).filter(|seen| seen.metric == metric).count()
        };
        let counts = [of(Metric::Allocated), of(Metric::Reserved), of(Metric::Unstated)];
        assert_eq!(counts.iter().sum::<usize>(), 319);
        assert_eq!(counts, [73, 150, 96]);
    }

    #[test]
    fn units_are_taken_as_the_row_says() {
        let row = |id: &str| rows().iter().find(|row| row.id == id).unwrap();
        // 4.82 × 10^9
        let litgpt = measured(row("litgpt-001")).unwrap();
        assert_eq!((litgpt.bytes, litgpt.unit_stated), (Bytes(4_820_000_000), true));
        // 16.3 × 2^30 = 17,501,991,731.2
        assert_eq!(measured(row("mleng-001")).unwrap().bytes, Bytes(17_501_991_731));
        assert!(!measured(row("qwen-001")).unwrap().unit_stated);
    }
}
