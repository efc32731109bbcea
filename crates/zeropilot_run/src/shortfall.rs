//! How much memory was asked for and how much there was, as PyTorch's messages say it.

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shortfall {
    /// Bytes that were asked for.
    pub(crate) wanted: Option<u64>,
    /// Bytes that the process had on the GPU.
    pub(crate) in_use: Option<u64>,
}

/// Reads the message of a CPU or CUDA allocator.
pub(crate) fn read(line: &str) -> Shortfall {
    let wanted = behind(line, "Tried to allocate ").or_else(|| behind(line, "tried to allocate "));
    let in_use = behind(line, "this process has ").or_else(|| {
        let allocated = before(line, " is allocated by PyTorch")?;
        Some(allocated + before(line, " is reserved by PyTorch").unwrap_or(0))
    });
    Shortfall { wanted, in_use }
}

/// The size behind a text: `2.00 GiB` or `8388608 bytes`.
fn behind(line: &str, text: &str) -> Option<u64> {
    let (_, rest) = line.split_once(text)?;
    let mut words = rest.split(' ');
    size(words.next()?, words.next()?)
}

/// The size before a text.
fn before(line: &str, text: &str) -> Option<u64> {
    let (rest, _) = line.split_once(text)?;
    let mut words = rest.rsplit(' ');
    let (unit, number) = (words.next()?, words.next()?);
    size(number, unit)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of memory")]
fn size(number: &str, unit: &str) -> Option<u64> {
    let shift = match unit.trim_end_matches(|c: char| !c.is_ascii_alphabetic()) {
        "bytes" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some((number * (1_u64 << shift) as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_pytorch_says_is_read() {
        let cpu = read(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:127] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8388608 bytes. Error code 12 (Cannot allocate memory)",
        );
        assert_eq!(cpu, Shortfall { wanted: Some(8_388_608), in_use: None });
        let cuda = read(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.50 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert_eq!(cuda.wanted, Some(2 * GIB));
        assert_eq!(cuda.in_use, Some(77 * GIB + GIB / 2));
        let older = read(
            "CUDA out of memory. Tried to allocate 512.00 MiB. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert_eq!((older.wanted, older.in_use), (Some(GIB / 2), Some(76 * GIB)));
        assert_eq!(read("step 3 loss 2.0"), Shortfall::default());
    }
}
