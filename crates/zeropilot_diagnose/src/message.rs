//! The numbers of an out-of-memory message, in all wordings of PyTorch's allocators for CUDA, ROCm, Ascend and CPUs.

/// What a message says, in bytes. A number that is not in the text is not here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The device as it is named: `GPU 0`, `NPU 2`.
    pub device: Option<String>,
    /// Asked for.
    pub tried: Option<u64>,
    /// Free on the device.
    pub free: Option<u64>,
    /// Memory of the device.
    pub capacity: Option<u64>,
    /// Everything that this process holds on the device.
    pub in_use: Option<u64>,
    /// Live tensors.
    pub allocated: Option<u64>,
    /// Held by PyTorch's cache and not in use.
    pub unallocated: Option<u64>,
    /// Live tensors and cache together, in the wording of PyTorch 1.
    pub reserved: Option<u64>,
    /// Processes that the message names by number; in a container this one is among them.
    pub processes: Vec<u64>,
}

/// More than this is an underflow of whoever counted.
const MOST: u64 = 1 << 50;

impl Message {
    /// Reads the first message of a text.
    pub fn read(text: &str) -> Self {
        let text = first(text);
        let device = ["GPU ", "NPU "].into_iter().find_map(|kind| device(text, kind));
        let in_use = behind(text, "this process has ").filter(|bytes| (1..MOST).contains(bytes));
        Self {
            device,
            tried: behind(text, TRIED),
            free: before(text, " is free").or_else(|| before(text, " free")),
            capacity: before(text, " total capacity")
                .or_else(|| behind(text, "total capacity of "))
                .or_else(|| behind(text, "total capacty of ")),
            in_use,
            allocated: before(text, " is allocated by PyTorch")
                .or_else(|| before(text, " already allocated")),
            unallocated: before(text, " is reserved by PyTorch")
                .or_else(|| before(text, " cached)")),
            reserved: before(text, " reserved in total"),
            processes: processes(text),
        }
    }

    /// Fills what is missing from another reading of the same message.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            device: self.device.or(other.device),
            tried: self.tried.or(other.tried),
            free: self.free.or(other.free),
            capacity: self.capacity.or(other.capacity),
            in_use: self.in_use.or(other.in_use),
            allocated: self.allocated.or(other.allocated),
            unallocated: self.unallocated.or(other.unallocated),
            reserved: self.reserved.or(other.reserved),
            processes: if self.processes.is_empty() { other.processes } else { self.processes },
        }
    }

    /// Whether no further line can belong to it.
    pub(crate) fn is_whole(&self) -> bool {
        self.unallocated.is_some() || self.reserved.is_some()
    }

    /// Whether it has any number.
    pub fn has_numbers(&self) -> bool {
        self.tried.is_some() || self.capacity.is_some()
    }

    /// What PyTorch holds and does not use.
    pub fn cached(&self) -> Option<u64> {
        let difference = || self.reserved?.checked_sub(self.allocated?);
        self.unallocated.or_else(difference)
    }

    /// What PyTorch holds.
    pub fn held(&self) -> Option<u64> {
        let sum = || self.allocated.map(|live| live.saturating_add(self.unallocated.unwrap_or(0)));
        self.reserved.or_else(sum)
    }

    /// What this process holds, with what is outside PyTorch where the message counts that.
    pub fn process(&self) -> Option<u64> {
        self.in_use.or_else(|| self.own().0).or_else(|| self.held())
    }

    /// What others hold on the device: as the message names them, else what neither PyTorch holds nor is free.
    pub fn others(&self) -> Option<u64> {
        if self.in_use.is_some() || self.processes.len() > 1 {
            return Some(self.own().1);
        }
        if self.processes.len() == 1 {
            return Some(0);
        }
        self.capacity?.checked_sub(self.free?)?.checked_sub(self.held()?)
    }

    /// Whether processes are named, so that what others hold is counted and not inferred.
    pub fn names_processes(&self) -> bool {
        self.in_use.is_some() || !self.processes.is_empty()
    }

    /// Of the processes that are named by number: this one, if it is among them, and the sum of the rest.
    fn own(&self) -> (Option<u64>, u64) {
        let all = self.processes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        if self.in_use.is_some() {
            return (None, all);
        }
        let held = self.held().unwrap_or(0);
        let own = self.processes.iter().copied().filter(|bytes| *bytes >= held).min();
        (own, all.saturating_sub(own.unwrap_or(0)))
    }
}

const TRIED: &str = "ried to allocate ";

/// Up to where the next message begins: ranks write into each other's lines.
fn first(text: &str) -> &str {
    let Some(start) = text.find(TRIED) else { return text };
    let rest = start + TRIED.len();
    text[rest..].find(TRIED).map_or(text, |next| &text[..rest + next])
}

fn device(text: &str, kind: &str) -> Option<String> {
    text.match_indices(kind).find_map(|(start, _)| {
        let rest = &text[start + kind.len()..];
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        (1..=3).contains(&digits).then(|| format!("{kind}{}", &rest[..digits]))
    })
}

/// `Process 179754 has 78.61 GiB memory in use.`
fn processes(text: &str) -> Vec<u64> {
    let named = text.split("Process ").skip(1).filter_map(|rest| {
        let (pid, rest) = rest.split_once(' ')?;
        pid.parse::<u64>().ok()?;
        let bytes = behind(rest, "has ")?;
        rest.trim_start().starts_with("has ").then_some(bytes)
    });
    // Where the driver does not tell, all have nothing.
    named.filter(|bytes| (1..MOST).contains(bytes)).collect()
}

/// The size behind a text: `2.00 GiB` or `8388608 bytes`.
fn behind(text: &str, before: &str) -> Option<u64> {
    let (_, rest) = text.split_once(before)?;
    let mut words = rest.split(' ');
    size(words.next()?, words.next()?)
}

/// The size before a text.
fn before(text: &str, behind: &str) -> Option<u64> {
    let (rest, _) = text.split_once(behind)?;
    let mut words = rest.rsplit(' ');
    let (unit, number) = (words.next()?, words.next()?);
    size(number, unit)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers are memory sizes"
)]
fn size(number: &str, unit: &str) -> Option<u64> {
    let shift = match unit.trim_end_matches(|c: char| !c.is_ascii_alphabetic()) {
        "bytes" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    let number = number.trim_start_matches('(');
    let is_plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = is_plain.then_some(number)?.parse().ok()?;
    Some((number * (1_u64 << shift) as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    #[test]
    fn what_pytorch_says_is_read() {
        let cpu = Message::read(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:127] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8388608 bytes. Error code 12 (Cannot allocate memory)",
        );
        assert_eq!(cpu, Message { tried: Some(8_388_608), ..Message::default() });
        let cuda = Message::read(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.50 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert_eq!((cuda.tried, cuda.free), (Some(2 * GIB), Some(GIB + GIB / 2)));
        assert_eq!(cuda.process(), Some(77 * GIB + GIB / 2));
        assert_eq!((cuda.cached(), cuda.others()), (Some(6 * GIB), Some(0)));
        let without = Message::read(
            "CUDA out of memory. Tried to allocate 512.00 MiB. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert_eq!((without.tried, without.process()), (Some(GIB / 2), Some(76 * GIB)));
        assert_eq!(Message::read("step 3 loss 2.0"), Message::default());
    }

    #[test]
    fn the_wordings_of_pytorch_1_and_of_other_devices_are_read() {
        let npu = Message::read(
            "RuntimeError: NPU out of memory. Tried to allocate 926.00 MiB (NPU 14; 60.00 GiB total capacity; 9.00 GiB already allocated; 9.00 GiB current active; 1.00 GiB free; 58.00 GiB reserved in total by PyTorch)",
        );
        assert_eq!(npu.device.as_deref(), Some("NPU 14"));
        assert_eq!((npu.tried, npu.capacity), (Some(926 * MIB), Some(60 * GIB)));
        assert_eq!((npu.cached(), npu.others()), (Some(49 * GIB), Some(GIB)));
        let oldest = Message::read(
            "CUDA out of memory. Tried to allocate 338.00 MiB (GPU 0; 4.00 GiB total capacity; 1.50 GiB already allocated; 23.00 MiB free; 512.00 MiB cached)",
        );
        assert_eq!((oldest.cached(), oldest.held()), (Some(GIB / 2), Some(2 * GIB)));
    }

    #[test]
    fn this_process_is_told_from_others_where_only_numbers_are_named() {
        let two = Message::read(
            "Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 95.00 GiB of which 51.00 GiB is free. Process 608946 has 15.00 GiB memory in use. Process 734147 has 29.00 GiB memory in use. Of the allocated memory 25.00 GiB is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert_eq!((two.process(), two.others()), (Some(29 * GIB), Some(15 * GIB)));
        let alone = Message::read(
            "Tried to allocate 8.00 GiB. Process 7 has 29.00 GiB memory in use. Of the allocated memory 25.00 GiB is allocated by PyTorch",
        );
        assert_eq!((alone.process(), alone.others()), (Some(29 * GIB), Some(0)));
    }

    #[test]
    fn processes_of_which_the_driver_tells_nothing_do_not_count() {
        let silent = Message::read(
            "Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free. Process 7 has 0 bytes memory in use. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 9.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
        );
        assert!(!silent.names_processes());
        assert_eq!(silent.others(), Some(69 * GIB));
    }

    #[test]
    fn of_two_messages_in_a_line_the_first_counts_and_an_underflow_does_not() {
        let both = Message::read(
            "Tried to allocate 1.00 GiB (GPU 3; 16.00 GiB total capacity) HIP out of memory. Tried to allocate 2.00 GiB (GPU 1; 8.00 GiB total capacity; 3.00 GiB already allocated)",
        );
        assert_eq!((both.tried, both.allocated), (Some(GIB), None));
        let wrapped = Message::read("this process has 17179869184.00 GiB memory in use");
        assert_eq!(wrapped.in_use, None);
    }
}
