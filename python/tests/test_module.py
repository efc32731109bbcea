"""The module as a person uses it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import zeropilot as zp


def test_the_teaching_api(tmp_path: Path) -> None:
    cfg = zp.ZeroConfig(micro_batch_size=2, gradient_accumulation=32, offload=True)
    config = zp.build_config(cfg)
    assert config["zero_optimization"]["stage"] == 3
    assert config["zero_optimization"]["offload_param"]["device"] == "cpu"
    assert config["bf16"]["enabled"] is True
    zp.save_config(config, tmp_path / cfg.output_path)
    assert json.loads((tmp_path / "ds_zero3.json").read_text()) == config
    assert [path.name for path in tmp_path.iterdir()] == ["ds_zero3.json"]


def test_the_batch_includes_the_world_size() -> None:
    config = zp.build_config(zp.ZeroConfig(2, 32, world_size=4))
    assert config["train_batch_size"] == 2 * 32 * 4


@pytest.mark.parametrize(
    ("wish", "section"),
    [({}, "bf16"), ({"bf16": True}, "bf16"), ({"fp16": True}, "fp16"), ({"bf16": False}, None)],
)
def test_one_number_format_is_chosen(wish: dict[str, bool], section: str | None) -> None:
    config = zp.build_config(zp.ZeroConfig(1, 1, **wish))  # type: ignore[arg-type]
    on = [name for name in ("bf16", "fp16") if config.get(name, {}).get("enabled")]
    assert on == ([section] if section else [])


def test_every_fine_grained_key_can_be_wished_for(command: Callable[..., Any]) -> None:
    fields = {field.name for field in dataclasses.fields(zp.ZeroConfig)}
    help_text = command("new", "--help").out
    lines = help_text[help_text.index("Fine-grained keys") :].splitlines()[1:]
    # The next heading stands at the beginning of a line.
    end = next((at for at, line in enumerate(lines) if line[:1].strip()), len(lines))
    options = {
        line.split()[0][2:].replace("-", "_") for line in lines[:end] if line.strip().startswith("--")
    }
    assert len(options) > 25 and options <= fields


def test_answers_are_typed_frozen_and_equal() -> None:
    answer = zp.memory("gpt2", gpus="2x24GB")
    assert answer == zp.memory("gpt2", gpus="2x24GB")
    assert answer.device.low <= answer.device.expected <= answer.device.high
    assert answer.fits is True and zp.memory("gpt2", gpus="2").fits is None
    assert isinstance(answer.savings, tuple) and answer.tensors.after_step.device
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.stage = 2  # type: ignore[misc]


def _same(value: Any, data: Any, path: str) -> None:
    """Every key of the JSON is an attribute, with the same value."""
    if dataclasses.is_dataclass(value):
        keys = {field.metadata.get("key", field.name): field.name for field in dataclasses.fields(value)}
        for key, below in data.items():
            assert key in keys or (path, key) in LEFT_OUT, f"{path}.{key} has no attribute"
            if key in keys:
                _same(getattr(value, keys[key]), below, f"{path}.{key}")
    elif isinstance(value, tuple):
        assert len(value) == len(data), path
        for one, below in zip(value, data):
            _same(one, below, f"{path}[]")
    else:
        assert value == data, path


# Where a config went is known to whoever wrote it; who reads it was asked for.
LEFT_OUT = {("created", "path"), ("created", "for")}


def test_every_key_of_the_json_is_an_attribute(ds: Path, refused: Path) -> None:
    answers: dict[str, Any] = {
        "memory": zp.memory("gpt2", gpus="2x24GB", host_ram="64GiB"),
        "bare memory": zp.memory("gpt2", gpus="2"),
        "comparison": zp.compare("gpt2", gpus="2x24GB"),
        "plan": zp.plan("qwen3-0.6b", gpus="2x24GB"),
        "no plan": zp.plan("llama-3.1-70b", gpus="1x24GB"),
        "created": zp.create(zp.ZeroConfig(1, 1, world_size=2, model="gpt2", target="hf-trainer")),
        "check": zp.check(refused),
        "resolved": zp.resolve(ds, world_size=2),
        "index": zp.explain(),
        "key": zp.explain("stage3_max_live_parameters"),
        "names": zp.explain("enabled"),
        "concept": zp.explain("zero3"),
        "file": zp.explain(refused),
        "difference": zp.diff(ds, {"train_batch_size": 8}, world_size=1),
    }
    for name, answer in answers.items():
        _same(answer, answer.to_dict(), name)
        json.dumps(answer.to_dict())


def test_resolve_solves_the_batch_and_fills_defaults(ds: Path) -> None:
    resolved = zp.resolve(ds, world_size=4)
    assert resolved.train_batch_size == 2 * 8 * 4
    assert resolved.stage == 3 and resolved.precision == "bf16"
    assert resolved.zero_optimization["prefetch_bucket_size"] == 10_000_000
    # DeepSpeed's default: five hundred million elements.
    assert resolved.zero_optimization["reduce_bucket_size"] == 500_000_000


def test_explanations_are_of_their_kind(ds: Path) -> None:
    key = zp.explain("stage3_max_live_parameters")
    assert isinstance(key, zp.Key) and key.unit == "elements" and key.what
    assert isinstance(zp.explain("zero3"), zp.Concept)
    file = zp.explain(ds)
    assert isinstance(file, zp.ExplainedFile)
    assert {"bf16.enabled", "zero_optimization.stage"} <= {key.path for key in file.keys}


def test_notebooks_get_html_in_both_languages_without_foreign_markup(tmp_path: Path) -> None:
    bad = '<script>alert("x")</script>'
    (tmp_path / "odd").mkdir()
    answers = [
        zp.memory("gpt2", gpus="2x24GB", lang="zh"),
        zp.plan("qwen3-0.6b", gpus="2x24GB", lang="zh"),
        zp.check({"train_batch_size": 1, bad: bad}, lang="zh"),
        zp.explain({"train_batch_size": 1, bad: bad}, lang="zh"),
        zp.compare("gpt2", gpus="2x24GB", lang="zh"),
    ]
    for answer in answers:
        bundle = answer._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "text/html"}
        assert bundle["text/html"].startswith("<div")
        assert "<script" not in bundle["text/html"]
        assert any("\u4e00" <= letter <= "\u9fff" for letter in bundle["text/html"])
    assert "<svg" in answers[0]._repr_html_() and "显存" in str(answers[0])
    assert "&lt;script" in answers[2]._repr_html_()


def test_the_locale_chooses_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert "显存" in str(zp.memory("gpt2", gpus="2x24GB"))
    assert "GPU memory, rank" in str(zp.memory("gpt2", gpus="2x24GB", lang="en"))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_errors_have_the_words_of_the_command(command: Callable[..., Any], ds: Path, refused: Path, lang: str) -> None:
    base = ["--model", "gpt2", "--gpus", "2x24GB"]
    told: list[tuple[Callable[[], Any], list[str]]] = [
        (lambda: zp.memory("gpt22", gpus="2", lang=lang), ["memory", "--model", "gpt22", "--gpus", "2"]),
        (lambda: zp.memory("gpt2", gpus="banana", lang=lang), ["memory", "--model", "gpt2", "--gpus", "banana"]),
        (lambda: zp.memory("gpt2", gpus="2x24GB", rank=2, lang=lang), ["memory", *base, "--rank", "2"]),
        (lambda: zp.memory("gpt2", gpus="2x24GB", config=refused, lang=lang), ["memory", *base, "--config", str(refused)]),
        (
            lambda: zp.memory("gpt2", gpus="2x24GB", config=ds, grad_accum=4, lang=lang),
            ["memory", *base, "--config", str(ds), "--grad-accum", "4"],
        ),
        (lambda: zp.plan("gpt2", gpus="2", lang=lang), ["plan", "--model", "gpt2", "--gpus", "2"]),
        (lambda: zp.explain("stage_3_max_live", lang=lang), ["explain", "stage_3_max_live"]),
        (lambda: zp.build_config(zp.ZeroConfig(stage=2, offload_param="cpu"), lang=lang), ["new", "--stage", "2", "--offload-param", "cpu", "-o", "-"]),
    ]
    for ask, arguments in told:
        with pytest.raises(zp.ZeropilotError) as raised:
            ask()
        said = command(*arguments, "--lang", lang)
        assert said.code == 2
        assert said.err.strip().endswith(str(raised.value).strip()), arguments


def test_what_python_can_say_better_it_says(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        zp.check(tmp_path / "nowhere.json")
    with pytest.raises(ValueError, match=r"training\.method.*full.*lora.*qlora"):
        zp.memory("gpt2", gpus="2", method="loar")
    with pytest.raises(ValueError, match="seq_len"):
        zp.memory("gpt2", gpus="2", seq_len=0)
    with pytest.raises(ValueError, match="stage"):
        zp.memory("gpt2", gpus="2", stage=4)
    with pytest.raises(ValueError, match="lang"):
        zp.memory("gpt2", gpus="2", lang="fr")
    with pytest.raises(ValueError, match="script.per_device_batch"):
        zp.check({}, per_device_batch=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="torch.nn.Module"):
        zp.memory(3, gpus="2")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no attribute"):
        zp.nothing  # type: ignore[attr-defined]


def test_python_dash_m_is_the_command(command: Callable[..., Any]) -> None:
    done = subprocess.run([sys.executable, "-m", "zeropilot", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == command("--version").out == f"zeropilot {zp.__version__}\n"


def test_cost_chooses_among_numbers_of_gpus() -> None:
    plan = zp.plan(
        "qwen2.5-0.5b", gpus="2x8xA100-80G", network="1x10GbE", objective="cost", tokens="10B", cost="2.5/gpu-hour"
    )
    assert plan.by_gpu_count is not None and plan.cost_estimate is not None
    assert [offer.nodes * offer.gpus_per_node for offer in plan.by_gpu_count] == [1, 2, 4, 8, 16]
    assert plan.world_size < 16
    hours = [offer.cost_estimate.gpu_hours for offer in plan.by_gpu_count if offer.cost_estimate and offer.cost_estimate.gpu_hours]
    assert plan.cost_estimate.gpu_hours is not None and plan.cost_estimate.gpu_hours <= 1.05 * min(hours)
    assert plan.cost_estimate.cost == pytest.approx(2.5 * plan.cost_estimate.gpu_hours)


def test_a_job_is_asked_like_a_model(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}'
    )
    script = tmp_path / "train.sh"
    script.write_text(
        "torchrun --nproc_per_node 2 train.py --deepspeed ds.json --model_name_or_path gpt2 "
        "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --max_length 512 --bf16\n"
    )
    job = zp.Job.read(script)
    answer = zp.memory(job, gpus="2x24GB")
    said = zp.memory(
        "gpt2", gpus="2x24GB", config=tmp_path / "ds.json", micro_batch=4, grad_accum=2, seq_len=512, precision="bf16"
    )
    assert answer.device == said.device and answer.stage == 2
    origins = {value.name: value.origin for value in answer.provenance.values}
    assert origins["seq_len"].kind == "file" and origins["seq_len"].line == 1
    plan = zp.plan(job, gpus="2x24GB")
    assert plan.current is None or plan.current.stage == 2
    with pytest.raises(FileNotFoundError):
        zp.Job.read(tmp_path / "nothing.sh")
