"""Training that changes what is alive: DeepSpeed's own activation checkpointing, a teacher beside the student."""

import deepspeed
import torch
import torch.nn.functional as F

from measure import case as cases
from measure.rank import Rank


class TensorParallel:
    """What the engine and its checkpointing ask a tensor-parallel program: all ranks share one replica."""

    def __init__(self, rank, world):
        self._rank, self._world = rank, world
        self._shared = deepspeed.comm.new_group(list(range(world)))
        alone = [deepspeed.comm.new_group([other]) for other in range(world)]
        self._alone = alone[rank]

    def get_model_parallel_rank(self):
        return self._rank

    def get_model_parallel_world_size(self):
        return self._world

    def get_model_parallel_group(self):
        return self._shared

    def get_data_parallel_rank(self):
        return 0

    def get_data_parallel_world_size(self):
        return 1

    def get_data_parallel_group(self):
        return self._alone


class AfterForward(Rank):
    """Also says what is alive between the passes: everything saved for backward."""

    def forward(self, batch):
        loss = super().forward(batch)
        self.result["after_forward"] = self.recorder.total
        return loss


class Checkpointing(AfterForward):
    """Every layer through `deepspeed.checkpointing.checkpoint`; "api" false: only the section in the config."""

    def initialize(self, model):
        mpu = TensorParallel(self.rank, self.case["world"]) if self.case.get("tensor_parallel") else None
        if self.case["api"]:
            layers = model.config.num_hidden_layers
            config = deepspeed.runtime.config.DeepSpeedConfig(self.case["config"], mpu=mpu)
            section = config.activation_checkpointing_config
            deepspeed.checkpointing.configure(
                mpu,
                partition_activations=section.partition_activations,
                contiguous_checkpointing=section.contiguous_memory_optimization,
                num_checkpoints=layers,
                checkpoint_in_cpu=section.cpu_checkpointing,
            )
            model._set_gradient_checkpointing(True, deepspeed.checkpointing.checkpoint)
        groups = cases.parameter_groups(self.case, model)
        return deepspeed.initialize(model=model, model_parameters=groups, mpu=mpu, config=self.case["config"])[0]


class Teacher(AfterForward):
    """A frozen teacher's logits under `no_grad`, then the student's; the loss is the divergence in fp32."""

    def build_teacher(self):
        case = self.case["teacher"]
        model = cases.build_model(case).eval().requires_grad_(False)
        if not case.get("zero_init"):
            return model.to(torch.bfloat16)
        teacher = deepspeed.initialize(model=model, config=case["config"])[0]
        teacher.eval()
        return teacher

    def train(self):
        before = self.recorder.total
        self.teacher = self.phase("teacher_init", self.build_teacher)
        self.result["teacher_init"] = self.recorder.total - before
        super().train()
        # Persistent and kept parameters of a teacher that is itself partitioned come with its first use.
        parameters = list(self.teacher.parameters())
        storages = {t.untyped_storage()._cdata for p in parameters for t in (p.data, getattr(p, "ds_tensor", p.data))}
        self.result["teacher_after_step"] = sum(self.recorder.live.get(key, 0) for key in storages)

    def forward(self, batch):
        ids = batch["input_ids"]
        with torch.no_grad():
            theirs = self.phase("teacher_forward", lambda: self.teacher(input_ids=ids).logits)
        self.result["after_teacher"] = self.recorder.total
        self.recorder.restart()
        ours = self.engine(input_ids=ids).logits
        ours, theirs = F.log_softmax(ours.float(), -1), F.log_softmax(theirs.float(), -1)
        loss = F.kl_div(ours, theirs, reduction="batchmean", log_target=True)
        del ours, theirs
        self.result["after_forward"] = self.recorder.total
        return loss
