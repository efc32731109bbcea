//! What PyTorch's allocator holds, where a program prints it: DeepSpeed's `see_memory_usage`, ms-swift and axolotl.

/// The most that was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Allocator {
    /// Bytes of tensors.
    pub(crate) allocated: Option<u64>,
    /// Bytes taken from the driver.
    pub(crate) reserved: Option<u64>,
}

/// Texts behind which the bytes of tensors stand. All count in GiB, DeepSpeed under the name of GB.
const ALLOCATED: [&str; 3] =
    ["Max_MA ", "memory/max_allocated (GiB)", "memory/max_mem_allocated(gib)"];
/// The same for what is reserved. DeepSpeed rounds its `Max_CA` to whole GiB, so that what is reserved at the moment is
/// read in its place.
const RESERVED: [&str; 4] =
    [" CA ", "memory(GiB)", "memory/device_reserved (GiB)", "memory/device_mem_reserved(gib)"];

/// Reads a line.
pub(crate) fn read(line: &str) -> Option<Allocator> {
    let found = Allocator {
        allocated: behind(line, &ALLOCATED),
        // ` CA ` alone may be anything.
        reserved: behind(line, if line.contains("Max_MA ") { &RESERVED } else { &RESERVED[1..] }),
    };
    (found != Allocator::default()).then_some(found)
}

impl Allocator {
    /// Takes what is more; says whether anything was.
    pub(crate) fn grow(&mut self, by: Self) -> bool {
        let before = *self;
        self.allocated = self.allocated.max(by.allocated);
        self.reserved = self.reserved.max(by.reserved);
        *self != before
    }
}

/// The number behind the first of these texts, in bytes.
fn behind(line: &str, texts: &[&str]) -> Option<u64> {
    let rest = texts.iter().find_map(|text| Some(line.split_once(text)?.1))?;
    let rest = rest.trim_start_matches(['\'', '"', ':', '=', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let gib: f64 = rest[..end].parse().ok()?;
    let bytes = gib * (1_u64 << 30) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "digits and a point"
    )]
    (bytes.is_finite() && bytes > 0.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_lines_of_three_programs_are_read() {
        let deepspeed = "MA 3.5 GB         Max_MA 4.25 GB         CA 4.5 GB         Max_CA 5 GB ";
        let swift = "{'loss': 1.0, 'memory(GiB)': 43.5, 'train_speed(iter/s)': 0.06}";
        let axolotl = "{'loss': '0.9', 'memory/max_allocated (GiB)': '14.25', 'memory/device_reserved (GiB)': '14.5'}";
        let both = |allocated, reserved| Some(Allocator { allocated, reserved });
        assert_eq!(read(deepspeed), both(Some(17 * GIB / 4), Some(9 * GIB / 2)));
        assert_eq!(read(swift), both(None, Some(87 * GIB / 2)));
        assert_eq!(read(axolotl), both(Some(57 * GIB / 4), Some(29 * GIB / 2)));
        for other in ["loss 0.3, CA 17 residents", "Max_MA", "memory(GiB): none"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
