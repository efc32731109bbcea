"""What type checkers make of the module: this file must pass `mypy --strict`, ignored lines included."""

from __future__ import annotations

from typing import Any, Optional

import zeropilot as zp

cfg = zp.ZeroConfig(micro_batch_size=2, gradient_accumulation=32, offload=True, reduce_bucket_size=5e8)
config: dict[str, Any] = zp.build_config(cfg)
zp.save_config(config, cfg.output_path)

answer: zp.Memory = zp.memory("qwen3-8b", gpus="8xA100-80G", config=config, grad_checkpointing=True)
expected: int = answer.device.expected
verdict: Optional[str] = answer.device.verdict
largest: str = max(answer.device.at_peak, key=lambda part: answer.device.at_peak[part])

planned: zp.Plan = zp.plan("qwen3-8b", gpus="5x44GB", target="hf-trainer")
if planned.recommended is not None:
    stage: int = planned.recommended.strategy.stage
over: list[int] = [rejected.over_by for rejected in planned.rejected]

found: zp.Check = zp.check("ds.json", per_device_train_batch_size=2, bf16=True)
lines: list[int] = [finding.span.line for finding in found.diagnostics]
batch: Optional[int] = zp.resolve(config, world_size=4).train_batch_size

page: zp.Explanation = zp.explain("zero3")
if isinstance(page, zp.Key):
    unit: Optional[str] = page.unit

zp.ZeroConfig(micro_batch_size="2")  # type: ignore[arg-type]
zp.memory("qwen3-8b")  # type: ignore[call-arg]
zp.memory(3, gpus="8")  # type: ignore[arg-type]
zp.check("ds.json", per_device_batch=2)  # type: ignore[call-arg]
answer.stage = 2  # type: ignore[misc]
answer.nothing  # type: ignore[attr-defined]
