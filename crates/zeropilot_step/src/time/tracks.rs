//! The streams of a rank, each as the time at which it is free.

use zeropilot_cluster::Fabric;

use super::cause::Cause;
use super::machine::Machine;
use super::observer::{Observer, Span, Stream, What};
use crate::program::{Manners, MicroOps, Op};
use crate::tape::Work;
use crate::zero::{Collective, CollectiveKind, Direction, HostCopy, Place, Wrapper};

/// Reductions of stage 3 that are under way when the host waits for the oldest: more than `max_param_reduce_events`, which is 2
/// (`stage3.py`, `__reduce_and_partition_ipg_grads`).
const PENDING_REDUCTIONS: usize = 3;

/// What a stretch of a step took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    /// From its beginning to its end.
    pub(super) seconds: f64,
    /// From its beginning to the loss.
    pub(super) forward: f64,
    /// Work of each stream.
    pub(super) busy: [f64; Stream::ALL.len()],
    /// Waits of the kernels, by cause.
    pub(super) waits: [f64; Cause::ALL.len()],
    /// What kernels did.
    pub(super) work: Work,
}

/// Which pass runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Forward,
    Backward,
    Step,
}

/// The streams.
pub(super) struct Tracks<'a, O> {
    manners: Manners,
    machine: &'a Machine,
    /// Between the ranks that ZeRO shards over.
    links: &'a Fabric,
    observer: &'a mut O,
    begin: f64,
    phase: Phase,
    module: Option<u32>,
    /// When the host can start the next thing.
    host: f64,
    /// Until when it waits for something before that, and for what.
    held: (f64, Cause),
    /// When kernels are done.
    compute: f64,
    /// When the side stream of gathers is.
    gathers: f64,
    /// When the side stream of reductions is.
    reductions: f64,
    /// When the communicator's queue is; that of secondary groups is another.
    queue: f64,
    near_queue: f64,
    to_device: f64,
    to_host: f64,
    /// When each asynchronous gather of this pass is complete.
    landed: Vec<f64>,
    /// When the latest reductions are.
    pending: [f64; PENDING_REDUCTIONS],
    ranks: u64,
    taken: Taken,
}

impl<'a, O: Observer> Tracks<'a, O> {
    pub(super) fn new(
        manners: Manners,
        machine: &'a Machine,
        links: &'a Fabric,
        begin: f64,
        observer: &'a mut O,
    ) -> Self {
        Self {
            manners,
            machine,
            links,
            observer,
            begin,
            phase: Phase::Forward,
            module: None,
            host: begin,
            held: (begin, Cause::Host),
            compute: begin,
            gathers: begin,
            reductions: begin,
            queue: begin,
            near_queue: begin,
            to_device: begin,
            to_host: begin,
            landed: Vec::new(),
            pending: [begin; PENDING_REDUCTIONS],
            ranks: 0,
            taken: Taken::default(),
        }
    }

    pub(super) fn end(self) -> Taken {
        let seconds = self.compute - self.begin;
        Taken { seconds, ..self.taken }
    }

    fn is_sharded(&self) -> bool {
        self.manners.wrapper == Wrapper::Sharded
    }

    fn note(&mut self, stream: Stream, begin: f64, end: f64, what: What) {
        self.taken.busy[stream as usize] += end - begin;
        self.observer.span(Span { stream, begin, end, what });
    }

    /// Kernels wait until a moment.
    fn wait(&mut self, until: f64, cause: Cause) {
        if until > self.compute {
            self.taken.waits[cause as usize] += until - self.compute;
            let what = What::Wait(cause);
            let span = Span { stream: Stream::Compute, begin: self.compute, end: until, what };
            self.observer.span(span);
            self.compute = until;
        }
    }

    /// Kernels wait for the host, and for what it waits for itself.
    fn wait_for_host(&mut self) {
        let (until, cause) = self.held;
        self.wait(until.min(self.host), cause);
        self.wait(self.host, Cause::Host);
    }

    pub(super) fn micro_step(&mut self, micro: &MicroOps) {
        self.host += self.machine.pace.micro_step;
        self.follow(&micro.forward);
        self.taken.forward = self.compute - self.begin;
        self.phase = Phase::Backward;
        self.module = None;
        self.follow(&micro.backward);
        self.end_backward();
    }

    fn end_backward(&mut self) {
        self.wait(self.reductions, Cause::Reduction);
        self.wait(self.to_host.max(self.to_device), Cause::ToHost);
        // The device is synchronised: gathers nobody needed end, and the host knows.
        self.wait(self.queue.max(self.near_queue), Cause::Gather);
        self.wait_for_host();
        self.host = self.compute;
    }

    pub(super) fn optimizer_step(&mut self, ops: &[Op]) {
        self.phase = Phase::Step;
        self.host += self.machine.pace.step;
        self.wait_for_host();
        self.follow(ops);
        self.wait(self.queue, Cause::Weights);
        self.wait(self.to_device, Cause::ToDevice);
    }

    fn follow(&mut self, ops: &[Op]) {
        for &op in ops {
            match op {
                Op::Compute(work) => self.run(work),
                Op::Enter(module) => {
                    self.module = Some(module);
                    self.host += self.machine.pace.hook;
                }
                Op::Launch(call, flight) => self.launch(call, flight),
                Op::Join(flight) => self.join(flight),
                Op::Call(call) => self.call(call),
                Op::Offload(copy) => self.offload(copy),
                Op::Exchange(call) => {
                    let seconds = self.machine.call(call).seconds;
                    let is_near = self.manners.tensor_ranks > 1 || self.is_of_some(call);
                    let over = self.queue(call, is_near, seconds, self.compute.max(self.host));
                    self.wait(over, Cause::Exchange);
                }
                Op::Copy(copy) => self.copy(copy),
                Op::Update { elements, place } => self.update(elements, place),
            }
            if self.machine.pace.is_host {
                self.join_all();
            }
        }
    }

    /// Where the host computes and communicates itself, it does one thing after the other.
    fn join_all(&mut self) {
        self.wait(self.queue.max(self.near_queue), Cause::Gather);
        self.wait(self.to_device.max(self.to_host), Cause::ToDevice);
        self.wait_for_host();
        let now = self.compute;
        self.host = now;
        (self.gathers, self.reductions) = (now, now);
        (self.queue, self.near_queue) = (now, now);
        (self.to_device, self.to_host) = (now, now);
    }

    /// Kernels start when they are started; a host that is slower than they are is what they wait for.
    fn run(&mut self, work: Work) {
        let starting = self.machine.start(work);
        let together = if self.machine.pace.is_host { starting } else { 0.0 };
        let is_backward = self.phase == Phase::Backward;
        let seconds = self.machine.compute(work, is_backward) + together;
        self.taken.work += work;
        self.wait_for_host();
        let begin = self.compute;
        self.host += starting;
        self.compute += seconds;
        let what = match self.phase {
            Phase::Forward => What::Forward(self.module),
            Phase::Backward => What::Backward(self.module),
            Phase::Step => What::Update,
        };
        self.note(Stream::Compute, begin, begin + seconds, what);
        self.wait_for_host();
    }

    /// A call of the ranks that ZeRO shards over; says when it is over.
    fn send(&mut self, call: Collective, ready: f64) -> f64 {
        let seconds = Machine::cost(self.links, call).seconds;
        let is_near = self.is_of_some(call);
        self.queue(call, is_near, seconds, ready)
    }

    /// Whether fewer ranks take part in a call than in others.
    fn is_of_some(&mut self, call: Collective) -> bool {
        self.ranks = self.ranks.max(call.ranks);
        call.ranks < self.ranks
    }

    /// A call takes its turn in the communicator's queue; says when it is over.
    fn queue(&mut self, call: Collective, is_near: bool, seconds: f64, ready: f64) -> f64 {
        let queue = if is_near { &mut self.near_queue } else { &mut self.queue };
        let begin = queue.max(ready);
        *queue = begin + seconds;
        let stream = if is_near { Stream::Nearby } else { Stream::Communication };
        self.note(stream, begin, begin + seconds, What::Call(call));
        begin + seconds
    }

    fn launch(&mut self, call: Collective, flight: u32) {
        let landed = self.send(call, self.host.max(self.gathers));
        let place = flight as usize;
        if self.landed.len() <= place {
            self.landed.resize(place + 1, self.begin);
        }
        self.landed[place] = landed;
    }

    fn join(&mut self, flight: u32) {
        if let Some(&landed) = self.landed.get(flight as usize) {
            self.gathers = self.gathers.max(landed);
            self.wait(landed, Cause::Gather);
        }
    }

    fn call(&mut self, call: Collective) {
        if self.phase == Phase::Step {
            let ready = self.compute.max(self.host);
            let is_small = call.kind == CollectiveKind::AllReduce;
            let over = self.send(call, ready);
            self.wait(over, if is_small { Cause::SmallCalls } else { Cause::Weights });
            // Flags and norms are read by the host.
            self.host = self.host.max(self.compute);
            return;
        }
        if !self.manners.overlap || !self.has_side_stream() {
            let over = self.send(call, self.compute.max(self.host));
            self.wait(over, Cause::Reduction);
            return;
        }
        if self.is_sharded() {
            let oldest = self.pending[0];
            self.host = self.host.max(oldest);
            let over = self.send(call, self.reductions.max(self.compute).max(self.host));
            self.reductions = over;
            self.pending.rotate_left(1);
            self.pending[PENDING_REDUCTIONS - 1] = over;
            return;
        }
        if self.manners.synchronous_reductions {
            self.host = self.host.max(self.compute).max(self.reductions);
        }
        // One reduction is under way at most: the other bucket is filled meanwhile.
        self.wait(self.reductions, Cause::Reduction);
        let ready = self.compute.max(self.host);
        self.reductions = self.send(call, ready);
    }

    fn has_side_stream(&self) -> bool {
        matches!(self.manners.wrapper, Wrapper::Partitioned | Wrapper::Sharded)
    }

    fn copy(&mut self, copy: HostCopy) {
        let pace = &self.machine.pace;
        let share = if self.manners.pinned { 1.0 } else { pace.pageable };
        let (stream, rate) = match copy.direction {
            Direction::ToDevice => (Stream::ToDevice, pace.to_device * share),
            Direction::ToHost => (Stream::ToHost, pace.to_host * share),
        };
        let seconds = copy.bytes as f64 / rate;
        let is_to_device = copy.direction == Direction::ToDevice;
        let free = if is_to_device { self.to_device } else { self.to_host };
        let ready = match self.phase {
            Phase::Step => self.compute,
            // A share is sent to the device before it is gathered; gradients follow their reduction.
            Phase::Forward => self.gathers.max(self.host),
            Phase::Backward if is_to_device && self.manners.parameters_on_host => {
                self.gathers.max(self.host)
            }
            Phase::Backward => self.reductions.max(self.host),
        };
        let begin = free.max(ready);
        let mut end = begin + seconds;
        self.note(stream, begin, end, What::Copy(copy));
        let is_on_disk = self.manners.parameters_on_disk && is_to_device;
        if is_on_disk && self.phase != Phase::Step {
            end = self.disk(copy.bytes, 0, end);
        }
        let cause = if is_on_disk { Cause::Disk } else { Cause::ToDevice };
        if is_to_device {
            self.to_device = end
        } else {
            self.to_host = end
        }
        match self.phase {
            Phase::Step => {
                self.wait(end, if is_to_device { Cause::ToDevice } else { Cause::ToHost })
            }
            Phase::Forward => self.hold_gathers(end, cause),
            Phase::Backward if is_to_device && self.manners.parameters_on_host => {
                self.hold_gathers(end, cause);
            }
            Phase::Backward if self.manners.overlap && self.has_side_stream() => {
                self.reductions = self.reductions.max(end);
            }
            Phase::Backward => self.wait(end, Cause::ToHost),
        }
    }

    /// The copy is made by the compute stream and waits for nothing else.
    fn offload(&mut self, copy: HostCopy) {
        let pace = &self.machine.pace;
        let (stream, rate, cause) = match copy.direction {
            Direction::ToDevice => (Stream::ToDevice, pace.to_device, Cause::ToDevice),
            Direction::ToHost => (Stream::ToHost, pace.to_host, Cause::ToHost),
        };
        let begin = self.compute.max(self.host);
        let end = begin + copy.bytes as f64 / (rate * pace.pageable);
        self.note(stream, begin, end, What::Copy(copy));
        self.wait(end, cause);
    }

    /// What is gathered comes from the host first, and the host waits for the copy.
    fn hold_gathers(&mut self, until: f64, cause: Cause) {
        self.gathers = self.gathers.max(until);
        if until > self.host {
            self.host = until;
            self.held = (until, cause);
        }
    }

    fn disk(&mut self, read: u64, write: u64, ready: f64) -> f64 {
        let pace = &self.machine.pace;
        let (read, write) = (read as f64 / pace.disk_read, write as f64 / pace.disk_write);
        let seconds = if self.manners.pipelined { read.max(write) } else { read + write };
        self.note(Stream::Disk, ready, ready + seconds, What::Disk);
        ready + seconds
    }

    fn update(&mut self, elements: u64, place: Place) {
        let Manners { dtypes, optimizer, .. } = self.manners;
        if place == Place::Device {
            let seconds = self.machine.update(elements, dtypes, optimizer);
            let begin = self.compute;
            self.compute += seconds;
            self.note(Stream::Compute, begin, begin + seconds, What::Update);
            return;
        }
        let seconds = elements as f64 / self.machine.pace.host_updates;
        let begin = self.compute.max(self.host);
        let end = begin + seconds;
        self.note(Stream::Host, begin, end, What::Update);
        if self.manners.states_on_disk {
            let bytes = elements * Machine::disk_bytes(dtypes, optimizer);
            let ready = if self.manners.pipelined { begin } else { end };
            let over = self.disk(bytes, bytes, ready);
            self.wait(end, Cause::HostUpdate);
            self.wait(over, Cause::Disk);
        } else {
            self.wait(end, Cause::HostUpdate);
        }
        self.host = self.host.max(self.compute);
    }
}
