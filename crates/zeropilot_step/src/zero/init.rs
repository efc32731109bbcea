//! `deepspeed.initialize`: how the engine builds its buffers, in the order in which it does.
//!
//! A model that is not built under `zero.Init` counts as the caller built it.

use zeropilot_config::settings::Stage;
use zeropilot_units::{Bytes, ElementSize};

use super::ledger::Ledger;
use super::optimizer_step::base_optimizer_per_tensor;
use super::precision::{Dtypes, Wrapper};
use super::rest::{Category, Place, RestStates};
use super::run::{Loading, Parameter, Run};
use super::sink::{Handle, Sink};
use super::stage3::{
    SubGroup, device_sub_groups, gathered, secondary_bytes, secondary_place, share, share_place,
    sub_groups,
};
use super::stage12::layouts;

/// The most bytes alive at once while `deepspeed.initialize` runs, host and device together.
pub fn init_peak(run: &Run<'_>, loading: Loading) -> Bytes {
    let mut ledger = Ledger::new();
    initialize(run, loading, &mut ledger);
    ledger.peak()
}

/// Reports what `deepspeed.initialize` allocates and frees.
pub fn initialize(run: &Run<'_>, loading: Loading, sink: &mut impl Sink) {
    let caller = match loading {
        Loading::Whole(element) | Loading::OnDevice(element) => element.bytes(),
        // Only stage 3 builds a model partitioned; with any other it is built in the default format.
        Loading::Partitioned => 4,
    };
    let place = match loading {
        Loading::OnDevice(_) => Place::Device,
        Loading::Whole(_) | Loading::Partitioned => Place::Host,
    };
    let mut builder = Builder { run, dtypes: Dtypes::of(run), caller, place, sink };
    if run.zero.stage == Stage::Three {
        let partitions = match loading {
            Loading::Partitioned => builder.partitions_only(),
            Loading::Whole(_) | Loading::OnDevice(_) => builder.cut_caller_model(),
        };
        builder.sharded(partitions);
        return;
    }
    let parameters = builder.cast_caller_model();
    match Wrapper::of(run) {
        Wrapper::Bare | Wrapper::Sharded => {}
        Wrapper::FlatMixed => builder.flat_mixed(parameters),
        Wrapper::PerTensorMixed => builder.per_tensor_mixed(),
        Wrapper::Bf16 | Wrapper::Partitioned => builder.partitioned(parameters),
    }
}

struct Builder<'a, S> {
    run: &'a Run<'a>,
    dtypes: Dtypes,
    /// Bytes of an element of the caller's model.
    caller: u64,
    /// Where the caller's model is.
    place: Place,
    sink: &'a mut S,
}

impl<S: Sink> Builder<'_, S> {
    fn device(&mut self, category: Category, bytes: u64) -> Handle {
        self.sink.allocate(category, Place::Device, bytes)
    }

    fn touch(&mut self, category: Category, bytes: u64) {
        self.sink.touch(category, Place::Device, bytes);
    }

    fn free(&mut self, handles: impl IntoIterator<Item = Handle>) {
        handles.into_iter().for_each(|handle| self.sink.free(handle));
    }

    /// The caller's model is cast and moved parameter by parameter.
    fn cast_caller_model(&mut self) -> Vec<Handle> {
        // Packed weights are no floats: nobody casts them.
        let packed = |p: &Parameter| (p.element == Some(ElementSize::One)).then_some(1);
        let sizes: Vec<(u64, u64)> = (self.run.parameters.iter())
            .map(|p| {
                let (before, after) = (self.caller, self.dtypes.model);
                let of = |bytes| p.elements.0 * packed(p).unwrap_or(bytes);
                (of(before), of(after))
            })
            .collect();
        let whole = |(p, (before, _)): (&Parameter, &(u64, u64))| before * p.parts;
        let wholes: Vec<u64> = self.run.parameters.iter().zip(&sizes).map(whole).collect();
        let mut handles: Vec<Handle> = wholes
            .iter()
            .map(|bytes| self.sink.allocate(Category::CallerParameters, self.place, *bytes))
            .collect();
        for ((handle, whole), (before, _)) in handles.iter_mut().zip(wholes).zip(&sizes) {
            if whole != *before {
                let part = self.device(Category::CallerParameters, *before);
                self.sink.free(std::mem::replace(handle, part));
            }
        }
        for (handle, (before, after)) in handles.iter_mut().zip(sizes) {
            if before == after {
                // Nothing to cast: where host and device are one it stays where it is.
                self.sink.free(*handle);
                *handle = self.device(Category::Parameters, after);
            } else {
                let cast = self.device(Category::Parameters, after);
                self.sink.free(std::mem::replace(handle, cast));
            }
        }
        handles
    }

    /// The caller's model is cast, then every parameter is replaced by this rank's share.
    fn cut_caller_model(&mut self) -> Vec<Handle> {
        let whole = self.cast_caller_model();
        let mut partitions = Vec::with_capacity(whole.len());
        for (index, whole) in whole.into_iter().enumerate() {
            partitions.push(self.partition(index));
            self.sink.free(whole);
        }
        partitions
    }

    /// Under `zero.Init` the model never existed whole.
    fn partitions_only(&mut self) -> Vec<Handle> {
        (0..self.run.parameters.len()).map(|index| self.partition(index)).collect()
    }

    /// A share, and with hpZ the secondary copy.
    fn partition(&mut self, index: usize) -> Handle {
        let secondary = secondary_bytes(self.run, index);
        self.sink.allocate(Category::SecondaryPartitions, secondary_place(self.run), secondary);
        let elements = share(self.run.parameters[index].elements.0, self.run.world);
        self.sink.allocate(
            Category::FlatParameters,
            share_place(self.run),
            elements * self.run.element(index),
        )
    }

    fn flat_mixed(&mut self, parameters: Vec<Handle>) {
        for group in 0..self.run.groups() {
            let size: u64 = self.run.group(group).sum();
            let copies = self.device(Category::BuildCopies, size * self.dtypes.model);
            self.device(Category::FlatParameters, size * self.dtypes.model);
            self.sink.free(copies);
            self.free(
                self.run.group_indices(group).map(|index| parameters[index]).collect::<Vec<_>>(),
            );
            let copy = self.device(Category::BuildCopies, size * self.dtypes.model);
            self.device(Category::Master, size * 4);
            self.sink.free(copy);
        }
        // One step with zero gradients makes the moments.
        let trained: u64 = self.run.trainable().sum();
        let gradients = self.device(Category::OptimizerGradients, trained * 4);
        for (category, bytes) in self.run.optimizer.states(trained, 4) {
            self.device(category, bytes);
        }
        self.sink.free(gradients);
    }

    fn per_tensor_mixed(&mut self) {
        let sizes: Vec<u64> = self.run.trainable().collect();
        for size in &sizes {
            let copy = self.device(Category::BuildCopies, size * self.dtypes.model);
            self.device(Category::Master, size * 4);
            self.sink.free(copy);
        }
        // One step with zero gradients, of the parameters too, makes the moments.
        let trained: u64 = sizes.iter().sum();
        let gradients = [
            self.device(Category::ParameterGradients, trained * self.dtypes.model),
            self.device(Category::OptimizerGradients, trained * 4),
        ];
        for (category, bytes) in self.run.optimizer.states(trained, 4) {
            self.device(category, bytes);
        }
        let tensors = sizes.len() as u64;
        let abandoned = self.run.optimizer.abandoned(trained * self.dtypes.model, tensors);
        self.device(Category::SecondMoment, abandoned);
        self.device(Category::StepCounters, tensors * 4);
        base_optimizer_per_tensor(self.run, self.sink);
        self.free(gradients);
    }

    /// An optimizer that is built with its states has them before it gets its first gradients.
    fn first_states(&mut self) {
        if !self.run.optimizer.begins_with_states() {
            return;
        }
        let made = RestStates::of(self.run).after_init;
        for category in [Category::SecondMoment, Category::StepCounters] {
            for place in Place::ALL {
                self.sink.allocate(category, place, made.of_at(category, place).0);
            }
        }
    }

    /// Parameters move into one buffer. It is made beside them on the device, or on the host and then moved.
    fn flatten(&mut self, members: &[usize], whole: Vec<Handle>, bytes: u64) {
        // The bf16 optimizer joins them where they are.
        if self.run.flattens_on_device() || Wrapper::of(self.run) == Wrapper::Bf16 {
            self.device(Category::FlatParameters, bytes);
            self.free(whole);
            return;
        }
        let mut on_host = Vec::new();
        for (index, handle) in members.iter().zip(whole) {
            let size = self.run.parameters[*index].elements.0 * self.run.element(*index);
            self.sink.free(handle);
            on_host.push(self.sink.allocate(Category::BuildCopies, Place::Host, size));
        }
        let flat = self.sink.allocate(Category::BuildCopies, Place::Host, bytes);
        self.free(on_host);
        self.sink.free(flat);
        self.device(Category::FlatParameters, bytes);
    }

    fn partitioned(&mut self, parameters: Vec<Handle>) {
        let Dtypes { model, master, .. } = self.dtypes;
        let offload = self.run.zero.offload_optimizer.is_some();
        let bf16 = Wrapper::of(self.run) == Wrapper::Bf16;
        let staging = self.run.staging_place();
        let layouts = layouts(self.run, self.dtypes);
        for (group, layout) in layouts.iter().enumerate() {
            let members: Vec<usize> = self.run.group_indices(group).collect();
            let whole = members.iter().map(|index| parameters[*index]).collect::<Vec<_>>();
            self.flatten(&members, whole, layout.total * model);
            if master == model {
                self.sink.allocate(Category::Master, staging, layout.partition * master);
            } else {
                let copy = self.device(Category::BuildCopies, layout.partition * model);
                self.sink.allocate(Category::Master, staging, layout.partition * master);
                self.sink.free(copy);
            }
            if offload && self.run.stages_on_host() {
                self.sink.allocate(Category::HostStaging, staging, layout.partition * model);
            }
            if bf16 {
                self.device(Category::FullGradients, layout.total * 4);
            }
        }
        self.first_states();
        if offload {
            let largest = self.run.trainable().max().unwrap_or(0);
            self.sink.allocate(Category::TemporaryGradientHost, staging, largest * model);
            self.device(Category::TemporaryGradientDevice, largest * model);
        }
        if !bf16 {
            // Zero gradients, which stay when the optimizer is offloaded.
            let bytes = layouts.iter().map(|layout| layout.partition * master).sum();
            let gradients = self.sink.allocate(Category::MasterGradients, staging, bytes);
            if !offload {
                self.sink.free(gradients);
            }
        }
    }

    fn sharded(&mut self, partitions: Vec<Handle>) {
        self.join_partitions(partitions);
        self.masters();
        self.first_states();
        let Dtypes { accumulation, communication, master, .. } = self.dtypes;
        let trained: u64 = self.run.trainable().map(|size| share(size, self.run.world)).sum();
        // A gradient of the largest sub-group to start the optimizer with; offloaded sub-groups get their own to keep.
        let sub_groups = sub_groups(self.run).into_iter().map(|group| group.elements);
        let largest = sub_groups.max().unwrap_or(0);
        let offloads = self.run.zero.offload_optimizer.is_some();
        let host = if offloads { Place::Host } else { Place::Device };
        let staging = self.run.staging_place();
        let start = self.sink.allocate(Category::BuildCopies, host, largest * master);
        if self.run.zero.offload_optimizer.is_some() {
            self.sink.allocate(Category::MasterGradients, staging, trained * master);
        }
        self.sink.free(start);
        if self.run.zero.contiguous_gradients {
            self.device(Category::ReduceBucket, self.run.zero.reduce_bucket.0 * communication);
        }
        self.sink.allocate(Category::GradientPartitions, staging, trained * accumulation);
        // Each trained parameter is gathered once to attach its hook, with one rank too.
        let copies = if self.run.gathers_twice() { 2 } else { 1 };
        for group in 0..self.run.groups() {
            for index in self.run.group_indices(group) {
                let size = gathered(self.run.parameters[index].elements.0, self.run.world);
                self.touch(Category::GatheredParameters, copies * size * self.run.element(index));
            }
        }
    }

    /// Shares of trained parameters move into flat buffers; on the way both exist.
    fn join_partitions(&mut self, partitions: Vec<Handle>) {
        let bytes = self.run.bytes_of(true, |size| share(size, self.run.world));
        let offload = self.run.zero.offload_param.is_some();
        // Without offload they meet on the host, so as not to scatter the device's memory.
        let (category, place) = if offload {
            (Category::FlatParameters, share_place(self.run))
        } else {
            (Category::BuildCopies, Place::Host)
        };
        let flat = self.sink.allocate(category, place, bytes);
        let parameters = self.run.parameters.iter().zip(partitions);
        self.free(
            parameters.filter(|(parameter, _)| parameter.trainable).map(|(_, handle)| handle),
        );
        if !offload {
            self.device(Category::FlatParameters, bytes);
            self.sink.free(flat);
        }
    }

    /// The copies the optimizer updates: cast, then cloned; a cast lives until the next one replaces it.
    fn masters(&mut self) {
        let master = self.dtypes.master;
        let mut own = (0..self.run.parameters.len()).filter(|&p| self.run.parameters[p].trainable);
        let trained = own.next().map_or(self.dtypes.model, |p| self.run.element(p));
        let mut before: Option<Handle> = None;
        let sub_groups = sub_groups(self.run);
        let on_device = device_sub_groups(self.run, sub_groups.len());
        for (index, SubGroup { elements, .. }) in sub_groups.into_iter().enumerate() {
            let place = if index < on_device { Place::Device } else { Place::Host };
            if master != trained {
                let cast = self.sink.allocate(Category::BuildCopies, place, elements * master);
                self.free(before.replace(cast));
            }
            self.sink.allocate(Category::Master, place, elements * master);
        }
        self.free(before);
    }
}
