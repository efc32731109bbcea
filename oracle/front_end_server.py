"""Answers, for a config and a set of arguments, what the real front ends hand to the engine.

The protocol is `json_lines`'s. A request:

    {"id": 1, "front_end": "hf-trainer" | "accelerate", "config": "<the config file's text>",
     "arguments": {...}, "model": {...}, "world_size": 8}

and its answer:

    {"id": 1, "ok": true, "config": "<encoded value>", "mismatches": []}
    {"id": 1, "ok": false, "stage": "prepare", "error": "ValueError: ...", "mismatches": ["gradient_clipping"]}

`mismatches` are the keys the Trainer's config object had recorded when the run ended, however it ended.

The config is written to a file and its path given to the real classes, as a user would. For the Trainer
the whole way is walked: `TrainingArguments(deepspeed=path)`, `Trainer(...)`, then the training loop up
to `deepspeed.initialize`. For accelerate: `DeepSpeedPlugin(hf_ds_config=path)`, `Accelerator(...)`,
`prepare(...)`. Only what needs a machine that is not here is replaced, each replacement with its reason
below, all in `replace_what_needs_a_cluster`.

The config is encoded by `json_lines.encoded`, in the order the engine will iterate it.
"""

import contextlib
import functools
import gc
import importlib.metadata
import os
import tempfile
import types
import warnings

import json_lines

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
for name in [name for name in os.environ if name.startswith("ACCELERATE_")]:
    del os.environ[name]

# Libraries print on import and while they work.
OUTPUT = json_lines.claim_output()

import logging  # noqa: E402

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

import accelerate  # noqa: E402
import accelerate.accelerator  # noqa: E402
import accelerate.data_loader  # noqa: E402
import accelerate.state  # noqa: E402
import accelerate.utils.dataclasses  # noqa: E402
import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed.device_mesh  # noqa: E402
import transformers  # noqa: E402
import transformers.training_args  # noqa: E402
from accelerate.utils import DataLoaderConfiguration, DeepSpeedPlugin, DummyOptim, DummyScheduler  # noqa: E402

PLUGIN_ENVIRONMENT = {
    "gradient_accumulation_steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
    "gradient_clipping": "ACCELERATE_GRADIENT_CLIPPING",
    "zero_stage": "ACCELERATE_DEEPSPEED_ZERO_STAGE",
    "offload_optimizer_device": "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE",
    "offload_param_device": "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE",
    "offload_optimizer_nvme_path": "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH",
    "offload_param_nvme_path": "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH",
    "zero3_save_16bit_model": "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL",
}


class EngineReached(BaseException):
    """Carries what `deepspeed.initialize` was called with.

    Not an `Exception`, so that no handler on the way takes it for a failure.
    """

    def __init__(self, config):
        self.config = config


class Machine:
    """The facts about the machine the current request asks for."""

    world_size = 1
    rocm = False


class Refused(Exception):
    """A front end raised; `stage` says where."""

    def __init__(self, stage, error, mismatches):
        super().__init__(stage)
        self.stage = stage
        self.error = error
        self.mismatches = mismatches


class DeviceMesh:
    """Stands in for the mesh that tensor parallelism builds over a process group."""

    mesh_dim_names = ()

    def __init__(self, *args, **kwargs):
        pass


def replace_what_needs_a_cluster():
    def initialize(**kwargs):
        raise EngineReached(kwargs["config_params"])

    deepspeed.initialize = initialize

    # The number of processes comes from the process group; there is none here.
    real_init = accelerate.state.PartialState.__init__

    def init(self, *args, **kwargs):
        real_init(self, *args, **kwargs)
        self.num_processes = Machine.world_size

    accelerate.state.PartialState.__init__ = init

    # bf16 is refused on a machine without a GPU before the config is looked at.
    transformers.training_args.is_torch_bf16_gpu_available = lambda *args, **kwargs: True
    accelerate.utils.dataclasses.is_rocm_available = lambda: Machine.rocm

    # fp8 needs one of three libraries; pretend one is there and leave the model alone.
    accelerate.state.is_fp8_available = lambda: True
    accelerate.accelerator.is_torchao_available = lambda: True
    accelerate.accelerator.AORecipeKwargs = lambda: types.SimpleNamespace(backend="AO")
    accelerate.accelerator.Accelerator._prepare_ao = lambda self, *args: args

    # The engine's CPU optimizers are compiled on first use.
    accelerate.accelerator.map_pytorch_optim_to_deepspeed = lambda optimizer: optimizer

    # Tensor parallelism sets up process groups and changes the model, not the config.
    torch.distributed.device_mesh.init_device_mesh = DeviceMesh
    deepspeed.tp_model_init = lambda model, **kwargs: model


def make_repetition_cheap():
    """The same versions are looked up in every run, and every run collects garbage."""
    importlib.metadata.version = functools.lru_cache(maxsize=None)(importlib.metadata.version)
    importlib.metadata.metadata = functools.lru_cache(maxsize=None)(importlib.metadata.metadata)
    # What the imports built stays for good; there is no use in walking it again each time.
    gc.collect()
    gc.freeze()


class TinyModel(torch.nn.Module):
    def __init__(self, facts):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        if facts is None:
            return
        self.config = types.SimpleNamespace()
        for name in ("hidden_size", "hidden_sizes"):
            if facts.get(name) is not None:
                setattr(self.config, name, facts[name])
        if facts.get("text_config") is not None:
            self.config.text_config = types.SimpleNamespace(
                **{name: value for name, value in facts["text_config"].items() if value is not None}
            )

    def forward(self, input_ids=None, labels=None):
        return self.weight


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"input_ids": torch.zeros(1)}


@contextlib.contextmanager
def environment(values):
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def environment_of(plugin):
    values = {}
    for name, variable in PLUGIN_ENVIRONMENT.items():
        if plugin.get(name) is not None:
            values[variable] = str(plugin[name])
    if plugin.get("accelerate_config_fields"):
        values["ACCELERATE_CONFIG_DS_FIELDS"] = ",".join(plugin["accelerate_config_fields"])
    return values


def mismatched_keys(config_object):
    """The keys out of the recorded sentences, which read `- ds <key>=<value> vs hf ...`."""
    return [line[len("- ds ") : line.index("=")] for line in getattr(config_object, "mismatches", [])]


def run_hf_trainer(path, arguments, model):
    arguments = dict(arguments)
    plugin = arguments.pop("plugin", {})
    variables = environment_of(plugin)
    mixed_precision = arguments.pop("environment_mixed_precision", None)
    if mixed_precision is not None:
        variables["ACCELERATE_MIXED_PRECISION"] = mixed_precision
    arguments["max_steps"] = arguments.pop("num_training_steps")
    with environment(variables):
        built = []
        real = transformers.integrations.deepspeed.HfTrainerDeepSpeedConfig

        class Recording(real):
            def __init__(self, config):
                built.append(self)
                self.mismatches = []
                super().__init__(config)

        transformers.integrations.deepspeed.HfTrainerDeepSpeedConfig = Recording
        stage = "arguments"
        try:
            args = transformers.TrainingArguments(
                output_dir=os.path.dirname(path), report_to=[], disable_tqdm=True, deepspeed=path, **arguments
            )
            stage = "trainer"
            trainer = transformers.Trainer(model=TinyModel(model), args=args, train_dataset=Rows())
            stage = "training"
            trainer._inner_training_loop(batch_size=trainer._train_batch_size, args=args)
        except EngineReached as reached:
            return reached.config, mismatched_keys(built[-1])
        except Exception as error:
            raise Refused(stage, error, mismatched_keys(built[-1]) if built else []) from error
        finally:
            transformers.integrations.deepspeed.HfTrainerDeepSpeedConfig = real
    raise RuntimeError("the engine was never reached")


def in_code(arguments, parameters):
    """The optimizer, scheduler and loaders a training script would give to `prepare`."""
    objects = []
    optimizer = None
    described = arguments.get("optimizer")
    if described is not None:
        if described["kind"] == "dummy":
            optimizer = DummyOptim(parameters, lr=described["lr"], weight_decay=described["weight_decay"])
        else:
            optimizer = torch.optim.SGD(parameters, lr=described["lr"])
        objects.append(optimizer)
    described = arguments.get("scheduler")
    if described is not None:
        if described["kind"] == "dummy":
            scheduler = DummyScheduler(
                optimizer,
                total_num_steps=described["total_num_steps"],
                warmup_num_steps=described["warmup_num_steps"],
                lr_scheduler_callable=(lambda optimizer: None) if described["callable"] else None,
            )
        else:
            stand_in = optimizer if isinstance(optimizer, torch.optim.Optimizer) else torch.optim.SGD(parameters, lr=0.1)
            scheduler = torch.optim.lr_scheduler.LambdaLR(stand_in, lambda step: 1.0)
        objects.append(scheduler)
    for batch_size in arguments["dataloader_batch_sizes"]:
        objects.append(torch.utils.data.DataLoader(Rows(), batch_size=batch_size))
    return objects


def run_accelerate(path, arguments, model):
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()
    plugin = dict(arguments["plugin"])
    fields = plugin.pop("accelerate_config_fields", None)
    variables = {"ACCELERATE_CONFIG_DS_FIELDS": ",".join(fields)} if fields else {}
    stage = "plugin"
    with environment(variables):
        try:
            plugin = DeepSpeedPlugin(hf_ds_config=path, **plugin)
            stage = "accelerator"
            accelerator = accelerate.Accelerator(
                mixed_precision=arguments["mixed_precision"],
                gradient_accumulation_steps=arguments["gradient_accumulation_steps"],
                deepspeed_plugin=plugin,
                dataloader_config=DataLoaderConfiguration(split_batches=arguments["split_batches"]),
            )
            stage = "prepare"
            module = TinyModel(model)
            accelerator.prepare(module, *in_code(arguments, list(module.parameters())))
        except EngineReached as reached:
            return reached.config, []
        except Exception as error:
            raise Refused(stage, error, []) from error
    raise RuntimeError("the engine was never reached")


RUNNERS = {"hf-trainer": run_hf_trainer, "accelerate": run_accelerate}


def answer(request, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(request["config"])
    Machine.world_size = request["world_size"]
    Machine.rocm = request["arguments"].get("plugin", {}).pop("rocm", None) is True
    try:
        config, mismatches = RUNNERS[request["front_end"]](path, request["arguments"], request["model"])
    except Refused as refused:
        kind = type(refused.error).__name__
        return {
            "ok": False,
            "stage": refused.stage,
            "error": f"{kind}: {refused.error}",
            "mismatches": refused.mismatches,
        }
    return {"ok": True, "config": json_lines.encoded(config), "mismatches": mismatches}


def main():
    replace_what_needs_a_cluster()
    make_repetition_cheap()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "ds_config.json")
        greeting = {"transformers": transformers.__version__, "accelerate": accelerate.__version__}
        json_lines.serve(lambda request: answer(request, path), greeting, OUTPUT)


if __name__ == "__main__":
    main()
