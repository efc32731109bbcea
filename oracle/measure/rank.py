"""One rank: build, initialize, train some steps, and say what was alive when.

Rest points: after `initialize`; after the backward pass at the accumulation boundary and after the step, both of the
last step. Peaks are the highest points inside building, `initialize` and, of the last step, the last forward pass,
the last backward pass and the optimizer step.
"""

import deepspeed

from measure import calls, case as cases, rest
from measure.recorder import Recorder

STEPS = 3


class Rank:
    def __init__(self, case, rank):
        self.case = case
        self.rank = rank
        self.calls = calls.listen()
        self.pinned = rest.Pinned()
        self.recorder = Recorder()
        self.result = {"rank": rank, "peak": {}, "placed": {}}
        self.traffic = {}

    def phase(self, name, work):
        self.recorder.restart()
        value = work()
        self.result["peak"][name] = self.recorder.peak
        return value

    def note_rest(self, moment):
        by_category, placed, misc = rest.at_rest(self.engine, self.recorder, self.pinned)
        self.result[moment] = by_category
        if placed:
            self.result["placed"][moment] = placed
        return misc

    def initialize(self, model):
        groups = cases.parameter_groups(self.case, model)
        engine, *_ = deepspeed.initialize(
            model=model,
            model_parameters=groups,
            optimizer=cases.client_optimizer(self.case, groups),
            config=self.case["config"],
        )
        return engine

    def forward(self, batch):
        return self.engine(**batch).loss

    def micro_step(self, batch, name, step, last):
        """One forward and backward pass, and the engine's step, which is one only at the boundary."""
        loss = self.phase("forward", lambda: self.forward(batch))
        step[name] = {"forward": self.calls.take()}
        self.phase("backward", lambda: self.engine.backward(loss))
        step[name]["backward"] = self.calls.take()
        del loss
        if last:
            self.result["misc"] = self.note_rest("after_backward")
        self.phase("step", self.engine.step)
        if taken := self.calls.take():
            step[name]["step"] = taken

    def train(self):
        batch = cases.batch(self.case, self.rank)
        for tensor in batch.values():
            self.recorder.see(tensor)
        accumulation = self.engine.gradient_accumulation_steps()
        for number in range(STEPS):
            step = {}
            for micro in range(accumulation):
                self.micro_step(batch, f"micro{micro}", step, micro + 1 == accumulation)
            self.traffic[("first_step", "second_step", "steady_step")[number]] = step
        self.result["misc_after_step"] = self.note_rest("after_step")

    def run(self):
        with self.recorder:
            model = self.phase("build", lambda: cases.build(self.case))
            self.traffic["build"] = self.calls.take()
            self.engine = self.phase("init", lambda: self.initialize(model))
            del model
            self.traffic["init"] = self.calls.take()
            self.result["misc_init"] = self.note_rest("init")
            self.train()
        if self.engine.skipped_steps:
            self.result["skipped_steps"] = self.engine.skipped_steps
        return {"result": self.result, "traffic": self.traffic, **self.facts()}

    def facts(self):
        optimizer = self.engine.optimizer
        base = vars(optimizer).get("optimizer", optimizer)
        parameters = list(self.engine.module.named_parameters())
        size = lambda p: getattr(p, "ds_numel", p.numel())
        return {
            "optimizer_class": type(optimizer).__name__,
            "base_optimizer": type(base).__name__,
            "elements": sum(size(p) for _, p in parameters),
            "trainable_elements": sum(size(p) for _, p in parameters if p.requires_grad),
            "parameters": [[name, size(p), int(p.requires_grad)] for name, p in parameters],
        }
