//! What texts say of DeepSpeed where no run shows it: the lines they rest on are in the installed engine, in this order.

use zeropilot_oracle::engine_code;

/// What texts say, the file that shows it, and its lines without their indentation.
const STATEMENTS: [(&str, &str, &[&str]); 14] = [
    (
        "ZenFlow's `update_interval` replaces the accumulation steps, and `auto` makes them 0",
        "runtime/zenflow/engine.py",
        &[
            "if isinstance(zenflow_config.update_interval, str):",
            "engine.update_interval = 0",
            "engine.update_interval = int(zenflow_config.update_interval)",
            "engine._config.gradient_accumulation_steps = engine.update_interval",
        ],
    ),
    (
        "`backward` divides the loss by the accumulation steps",
        "runtime/engine.py",
        &["loss = loss / self.gradient_accumulation_steps() if scale_wrt_gas else loss"],
    ),
    (
        "`select_strategy` `auto` needs a loader that DeepSpeed built; with another, columns are chosen once",
        "runtime/zenflow/engine.py",
        &[
            "if select_strategy == 'epoch':",
            "if engine.training_dataloader is not None:",
            "engine.select_interval = 0",
        ],
    ),
    (
        "`stage3_max_live_parameters` limits prefetching",
        "runtime/zero/partitioned_param_coordinator.py",
        &[
            "max_params_to_prefetch = min(self.__max_n_available_params - self.__n_available_params,",
        ],
    ),
    (
        "`stage3_max_reuse_distance` keeps weights whatever that limit is",
        "runtime/zero/partitioned_param_coordinator.py",
        &[
            "def __params_to_release(self, submodule_to_release: Module, step_id: int) -> Set[int]:",
            "if params_traversed >= self.__max_reuse_dist_in_numel:",
            "params_to_release.discard(param.ds_id)",
            "return params_to_release",
        ],
    ),
    (
        "stages 1 and 2 divide gradients before they reduce them",
        "runtime/zero/stage_1_and_2.py",
        &[
            "tensor.div_(dist.get_world_size(group=self.dp_process_group) / float(self.sequence_parallel_size))",
        ],
    ),
    (
        "stage 3 divides gradients before it reduces them",
        "runtime/comm/coalesced_collectives.py",
        &[
            "tensor_partition_flat_buffer.div_(world_sz)",
            "_torch_reduce_scatter_fn(tensor_partition_flat_buffer,",
        ],
    ),
    (
        "weights are cast on the host, and then moved to the GPU",
        "runtime/engine.py",
        &[
            "def _configure_distributed_model(self, model):",
            "self._cast_module_mixed_precision(param_dtype, buffer_dtype, is_zero_init_model, keep_pattern)",
            "self.module.to(self.device)",
        ],
    ),
    (
        "with accumulation, stage 2 copies gradients to the host and back at each micro-step",
        "runtime/zero/stage_1_and_2.py",
        &[
            "dest_buffer.copy_(self.accumulated_grads_in_cpu[param_id].view(-1), non_blocking=True)",
            "self.accumulated_grads_in_cpu[param_id].data.copy_(grad_accum.data.view(-1), non_blocking=True)",
            "if self.micro_step_id > 0 or not self.is_gradient_accumulation_boundary():",
            "self.async_accumulate_grad_in_cpu_via_gpu(param)",
        ],
    ),
    (
        "stage 3 waits for the oldest reduction when more than two are under way",
        "runtime/zero/stage3.py",
        &[
            "self.max_param_reduce_events: int = 2",
            "if len(self.param_reduce_events) > self.max_param_reduce_events:",
            "self.param_reduce_events.popleft().synchronize()",
        ],
    ),
    (
        "sub-groups are made per parameter group, and `ratio` keeps the first ones on the GPU",
        "runtime/zero/stage3.py",
        &[
            "if i >= int((1 - self.partial_offload) * sub_group_size):",
            "self.subgroup_to_device[i] = 'cpu'",
            "def _create_fp16_sub_groups(self, params_group):",
            "params_group_numel = sum([param.partition_numel() for param in params_group])",
        ],
    ),
    (
        "frozen weights are quantized when weights are sharded; for those frozen later a script calls a function that takes fp16 only",
        "runtime/zero/stage3.py",
        &[
            "def quantize_nontrainable_params(self):",
            "quantize_dstensor() expects tensor.dtype == torch.float16",
        ],
    ),
    (
        "only `overlap_comm` synchronizes the GPU before each bucket of stages 1 and 2",
        "runtime/zero/stage_1_and_2.py",
        &[
            "if self.overlap_comm:",
            "get_accelerator().synchronize()",
            "stream = self.reduction_stream",
        ],
    ),
    (
        "of the NVMe directory, only the folder of the weights is emptied at the start",
        "runtime/swap_tensor/partitioned_param_swapper.py",
        &[
            "shutil.rmtree(self.swap_folder, ignore_errors=True)",
            "os.makedirs(self.swap_folder, exist_ok=True)",
        ],
    ),
];

#[test]
fn the_engine_has_the_lines_on_which_texts_rest() {
    let Some(engine) = engine_code() else { return };
    for (statement, file, lines) in STATEMENTS {
        let path = engine.join(file);
        let code = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut rest = code.as_str();
        for line in lines {
            let Some(at) = rest.find(line) else {
                panic!("{statement}: no `{line}` there in {file}")
            };
            rest = &rest[at + line.len()..];
        }
    }
}

#[test]
fn the_engine_leaves_the_optimizer_files_on_nvme() {
    let Some(engine) = engine_code() else { return };
    let path = engine.join("runtime/swap_tensor/optimizer_utils.py");
    let code = std::fs::read_to_string(path).expect("a file of the engine");
    assert!(code.contains("os.makedirs(self.swap_folder, exist_ok=True)"));
    assert!(!code.contains("rmtree"));
}
