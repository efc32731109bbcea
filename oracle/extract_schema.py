"""Writes `knowledge/schema/<version>.json`: what the installed engine reads from a config file.

Nothing is typed by hand. Pydantic sections are walked field by field. The sections that the engine reads
with plain dictionary code are found by letting its loader read dictionaries that remember every question
put to them, and the place where a value ends up is found by planting a value and looking for it.

    python extract_schema.py OUTPUT.json
"""

import contextlib
import enum
import json
import pathlib
import sys
import types
import typing

import torch

import engine
from deepspeed.runtime import config_utils

BASE = {"train_batch_size": 8}
WORLD_SIZE = 8
MARKER = "zeropilot_marker"
MODEL_BASE = config_utils.DeepSpeedConfigModel

# Values that open a door in hand-written reader code: behind `enabled` or a `type`, more keys are read.
DOORS = [
    {},
    {"enabled": True},
    {"type": "Adam"},
    {"mode": "dense"}, {"mode": "fixed"}, {"mode": "variable"}, {"mode": "bigbird"}, {"mode": "bslongformer"},
    {"method": "snip_momentum"},
    {"enabled": True, "initial_scale_power": 1},
    {"start_bits": 8, "target_bits": 4},
    {"*": {}},
    {"enabled": True, "max_train_batch_size": 8, "micro_batch_sizes": [1], "version": 0.1,
     "ignore_non_elastic_batch_info": True},
    {"enabled": True, "metrics": {}},
]
# What must stand beside a key for the loader to look at it.
COMPANY = {
    "optimizer": {"type": "Adam"},
    "scheduler": {"type": "WarmupLR"},
    **{technique: {"different_groups": {}} for technique in (
        "weight_quantization", "activation_quantization", "sparse_pruning", "row_pruning", "head_pruning",
        "channel_pruning")},
}
# One value of each kind JSON has; a key that lets all of them through unchanged has no type.
PROBES = [None, True, 7919, 0.7919, "zeropilot-7919", [7919], {"zeropilot": 7919}]


class Reads:
    """The questions a loader asked, by the path of the dictionary it asked."""

    def __init__(self):
        self.keys = {}  # path -> {key: default or MISSING}
        self.open = set()  # paths whose members are walked, whatever they are called
        self.models = {}  # path -> model class


MISSING = object()


class Listener(dict):
    """A dictionary that remembers what was asked of it."""

    def __init__(self, content, path, reads):
        super().__init__()
        self._path, self._reads = path, reads
        for key in list(dict.keys(content)):
            value = dict.__getitem__(content, key)
            if isinstance(value, dict):
                value = Listener(value, path + (key,), reads)
            super().__setitem__(key, value)

    def _asked(self, key, default=MISSING):
        asked = self._reads.keys.setdefault(self._path, {})
        if asked.get(key, MISSING) is MISSING:
            asked[key] = default

    def get(self, key, default=None):
        self._asked(key, default)
        return super().get(key, default)

    def __contains__(self, key):
        self._asked(key)
        return super().__contains__(key)

    def __getitem__(self, key):
        self._asked(key)
        return super().__getitem__(key)

    def keys(self):
        listener = self

        class Keys(list):

            def __contains__(self, key):
                return key in listener

        return Keys(super().keys())

    def items(self):
        self._reads.open.add(self._path)
        return super().items()

    def __copy__(self):
        return Listener(self, self._path, self._reads)

    def __deepcopy__(self, memo):
        return self


def listen(config):
    """Lets the loader read `config`; returns what it asked, however it ended."""
    reads = Reads()
    with listening_models(reads):
        try:
            engine.load(Listener(config, (), reads), WORLD_SIZE)
        except Exception:
            pass
    return reads


@contextlib.contextmanager
def listening_models(reads):
    """Notes which model class is built from a section that carries a marker."""
    originals = {base: base.__init__ for base in (MODEL_BASE, *engine.MODEL_BASES)}

    def listening(original):

        def init(self, *args, **data):
            for key in data:
                if isinstance(key, str) and key.startswith(MARKER):
                    reads.models[tuple(key[len(MARKER):].split("/")[1:])] = type(self)
            original(self, *args, **data)

        return init

    for base, original in originals.items():
        base.__init__ = listening(original)
    try:
        yield
    finally:
        for base, original in originals.items():
            base.__init__ = original


def planted(path, value):
    """BASE with `value` at `path`."""
    config = dict(BASE)
    node = config
    for key in path[:-1]:
        node[key] = dict(COMPANY.get(key, {}))
        node = node[key]
    node[path[-1]] = value
    return config


def discover():
    """All key paths the loader asks for, with the default it names, and the sections it hands to a model."""
    defaults, models = {}, {}
    queue, seen = [()], set()

    def named(path, open_paths):
        """The path with `*` for names that the user chooses."""
        return tuple("*" if path[:i] in open_paths else part for i, part in enumerate(path))

    def merge(reads):
        for path, keys in reads.keys.items():
            for key, default in keys.items():
                if not isinstance(key, str) or key.startswith(MARKER):
                    continue
                full = named(path + (key,), reads.open)
                if full not in defaults or defaults[full] is MISSING:
                    defaults[full] = default
                if full not in seen:
                    seen.add(full)
                    queue.append(full)
        for path in reads.open:
            defaults.setdefault(named(path, reads.open) + ("*",), MISSING)

    while queue:
        path = queue.pop()
        if len(path) > 6:
            continue
        if not path:
            merge(listen(BASE))
            continue
        reads = listen(planted(path, {MARKER + "/" + "/".join(path): 1}))
        for section, model in reads.models.items():
            models[section] = model
        if path in models:
            continue
        for door in DOORS:
            merge(listen(planted(path, dict(door))))
    return defaults, models


def find(tree, needle, path=()):
    """Where `needle` stands in the resolved values."""
    if type(tree) is type(needle) and tree == needle:
        return [path]
    found = []
    if isinstance(tree, dict):
        for key, value in tree.items():
            found += find(value, needle, path + (key,))
    return found


def follow(path):
    """(places in the resolved values, kinds accepted) for a hand-read key."""
    places, accepted = None, []
    for probe in PROBES:
        try:
            resolved = engine.resolved(engine.load(planted(path, probe), WORLD_SIZE))
        except Exception:
            continue
        accepted.append(kind_of(probe))
        if isinstance(probe, (bool, type(None))):
            continue
        here = set(find(resolved, probe))
        places = here if places is None else places & here
    return sorted(".".join(place) for place in places or ()), accepted


def words():
    """Every text constant of the engine's modules that name config keys and values."""
    found = set()

    def take(value, depth=0):
        if isinstance(value, str) and 0 < len(value) < 40 and not value[0].isdigit():
            found.add(value)
        elif isinstance(value, dict) and depth < 2:
            for key, item in value.items():
                take(key, depth + 1)
                take(item, depth + 1)
        elif isinstance(value, (list, tuple, set)) and depth < 2:
            for item in value:
                take(item, depth + 1)
        elif isinstance(value, type) and issubclass(value, enum.Enum):
            take([key for key in value._value2member_map_ if isinstance(key, str)])
        elif isinstance(value, type) and depth < 1:
            take([item for name, item in vars(value).items() if not name.startswith("__")], depth + 1)

    for name, module in sorted(sys.modules.items()):
        if name.startswith("deepspeed.") and name.rsplit(".", 1)[-1] in ("config", "constants", "utils"):
            for key, value in vars(module).items():
                if not key.startswith("__"):
                    take(value)
    return sorted(found)


def choices(path, candidates, base):
    """Which words a key takes, each with the value it becomes where that is another one."""
    accepted = {}
    for word in candidates:
        try:
            resolved = engine.resolved(engine.load(planted(path, word), WORLD_SIZE))
        except Exception:
            continue
        changed = [key for key in resolved if resolved[key] != base[key]]
        becomes = resolved[changed[0]] if len(changed) == 1 else None
        accepted[word] = becomes if isinstance(becomes, str) else None
    return accepted


def accepted(config):
    try:
        engine.load({**BASE, **config}, WORLD_SIZE)
    except Exception:
        return False
    return True


def master_weight_stages(section):
    key = f"{section}_master_weights_and_grads"
    on = {section: {"enabled": True, key: True}}
    return [stage for stage in range(4) if accepted({**on, "zero_optimization": {"stage": stage}})]


def behaviours():
    """Answers to questions that no single key shows."""
    adam = {"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1.0}}}
    loaded = engine.load({**BASE, **adam}, WORLD_SIZE)
    found = {
        "fp16_master_weights_stages": master_weight_stages("fp16"),
        "bf16_master_weights_stages": master_weight_stages("bf16"),
        "zeroes_max_grad_norm_in_fp32": loaded.optimizer_params["max_grad_norm"] == 0.0,
    }
    partial = {"zero_optimization": {"stage": 2, "offload_optimizer": {"ratio": 0.5}}}
    found["partial_offload_needs_stage_3"] = not accepted(partial)
    zenflow = {"zero_optimization": {"zenflow": {"update_interval": -1}}}
    found["zenflow_update_interval_at_least_one"] = not accepted(zenflow)
    sampling = {"data_efficiency": {"data_sampling": {"zeropilot": 1}}}
    efficiency = engine.load({**BASE, **sampling}, WORLD_SIZE).data_efficiency_config
    found["keeps_unknown_data_sampling_keys"] = "zeropilot" in efficiency["data_sampling"]
    modes = {}
    for mode in ("dense", "fixed", "variable", "bigbird", "bslongformer"):
        config = {**BASE, "sparse_attention": {"mode": mode}}
        if accepted(config):
            modes[mode] = engine.resolved(engine.load(config, WORLD_SIZE))["sparse_attention"]
    found["sparse_attention_modes"] = modes
    return found


def kind_of(value):
    names = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", list: "list", dict: "dict"}
    return names[type(value)]


def describe_type(annotation):
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        rest = [arg for arg in args if arg is not type(None)]
        inner = describe_type(rest[0]) if len(rest) == 1 else {"kind": "union", "of": [describe_type(a) for a in rest]}
        return {"kind": "optional", "of": inner} if len(rest) < len(args) else inner
    if origin is typing.Literal:
        return {"kind": "literal", "values": list(args)}
    if origin is list:
        return {"kind": "list", "of": describe_type(args[0]) if args else {"kind": "any"}}
    if origin is dict or annotation is dict or annotation is typing.Dict:
        return {"kind": "dict"}
    if annotation is tuple or origin is tuple:
        return {"kind": "tuple"}
    if annotation is list:
        return {"kind": "list", "of": {"kind": "any"}}
    simple = {bool: "bool", int: "int", float: "float", str: "str", pathlib.Path: "path", torch.dtype: "dtype"}
    if annotation in simple:
        return {"kind": simple[annotation]}
    for base in (int, float, str):
        # pydantic 1 turns a bounded field into a subclass of its type; the bounds are listed beside it.
        if isinstance(annotation, type) and issubclass(annotation, base) and "Constrained" in annotation.__name__:
            return {"kind": simple[base]}
    if annotation is object or annotation is typing.Any:
        return {"kind": "any"}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        values = list(dict.fromkeys(member.value for member in annotation))
        return {"kind": "enum", "values": values}
    if isinstance(annotation, type) and issubclass(annotation, engine.MODEL_BASES):
        return {"kind": "model", "name": annotation.__name__}
    raise SystemExit(f"no description for the type {annotation!r}")


def bounds_v2(field):
    names = ("gt", "ge", "lt", "le")
    return {name: getattr(item, name) for item in field.metadata for name in names if getattr(item, name, None) is not None}


def default_of(field):
    value = field.get_default(call_default_factory=True) if hasattr(field, "get_default") and not is_v1(field) \
        else field.get_default()
    return engine.plain(value)


def is_v1(field):
    return hasattr(field, "field_info")


def describe_field(name, field):
    if is_v1(field):
        info = field.field_info
        annotation, extra = field.annotation, info.extra
        bounds = {key: getattr(info, key) for key in ("gt", "ge", "lt", "le") if getattr(info, key) is not None}
        alias = field.alias if field.alias != name else None
        described = describe_type(annotation)
        if field.allow_none and described["kind"] != "optional" and described["kind"] != "any":
            described = {"kind": "optional", "of": described}
    else:
        annotation, extra, bounds, alias = field.annotation, field.json_schema_extra or {}, bounds_v2(field), field.alias
        described = describe_type(annotation)
    entry = {"name": name}
    if alias and alias != name:
        entry["alias"] = alias
    entry["type"] = described
    entry["default"] = default_of(field)
    if bounds:
        entry["bounds"] = bounds
    if not is_v1(field) and field.exclude:
        entry["excluded"] = True
    if extra.get("deprecated"):
        entry["deprecated"] = {
            "new": extra.get("new_param", ""),
            "moves": bool(extra.get("new_param")) and extra.get("set_new_param", True),
            "converts": "new_param_fn" in extra,
            "message": extra.get("deprecated_msg", ""),
        }
    return entry


def describe_model(model):
    if hasattr(model, "model_fields"):
        fields, decorators = model.model_fields, model.__pydantic_decorators__
        validators = sorted(set(decorators.field_validators) | set(decorators.model_validators) |
                            set(decorators.validators) | set(decorators.root_validators))
    else:
        fields = model.__fields__
        validators = sorted({v.func.__name__ for field in fields.values() for v in (field.class_validators or {}).values()} |
                            {v.__name__ for _, v in model.__post_root_validators__} |
                            {v.__name__ for v in model.__pre_root_validators__})
    return {
        "drops_auto": issubclass(model, MODEL_BASE),
        "validators": validators,
        "fields": [describe_field(name, field) for name, field in fields.items()],
    }


def collect_models(sections):
    described, queue = {}, list(dict.fromkeys(sections.values()))
    while queue:
        model = queue.pop(0)
        if model.__name__ in described:
            continue
        described[model.__name__] = describe_model(model)
        for field in (getattr(model, "model_fields", None) or model.__fields__).values():
            queue += nested_models(field.annotation)
    return dict(sorted(described.items()))


def nested_models(annotation):
    if isinstance(annotation, type) and issubclass(annotation, engine.MODEL_BASES):
        return [annotation]
    return [model for arg in typing.get_args(annotation) for model in nested_models(arg)]


def removed_keys():
    """Keys whose mere presence ends the run, by asking with a value no reader would mind."""
    tables = [("", "_REMOVED_TOP_LEVEL_CONFIG_KEYS"), ("zero_optimization.", "_REMOVED_ZERO_CONFIG_KEYS")]
    removed = []
    for prefix, name in tables:
        for key, message in getattr(engine.ds_config, name, {}).items():
            path = prefix + key
            try:
                engine.load(planted(tuple(path.split(".")), {}), WORLD_SIZE)
            except engine.ds_config.DeepSpeedConfigError:
                removed.append({"path": path, "message": message.strip()})
            else:
                raise SystemExit(f"{path} is listed as removed but accepted")
    return removed


def schema():
    defaults, models = discover()
    # A section a model reads is described by the model; what the model's own code asks of it is not a key.
    raw = {path: d for path, d in defaults.items()
           if path not in models and not any(path[:len(section)] == section for section in models)}
    removed = removed_keys()
    gone = {entry["path"] for entry in removed}
    base = engine.resolved(engine.load(dict(BASE), WORLD_SIZE))
    candidates = words()
    keys = []
    for path in sorted(raw):
        name = ".".join(path)
        if name in gone or path[0] in gone:
            continue
        attributes, accepts = follow(path)
        entry = {"path": name}
        if raw[path] is not MISSING and not isinstance(raw[path], dict):
            entry["default"] = engine.plain(raw[path])
        if attributes:
            entry["attributes"] = attributes
        if len(accepts) < len(PROBES):
            entry["accepts"] = accepts
            if "str" not in accepts and "*" not in path:
                found = choices(path, candidates, base)
                if found:
                    entry["choices"] = found
        keys.append(entry)
    return {
        "deepspeed": engine.VERSION,
        "dialect": "pydantic2" if hasattr(MODEL_BASE, "model_fields") else "pydantic1",
        "reads_file_first": engine.READS_FILE_FIRST,
        "sections": {".".join(path): model.__name__ for path, model in sorted(models.items())},
        "models": collect_models(models),
        "keys": keys,
        "rejected_when_present": removed,
        "behaviours": behaviours(),
        "optimizers": sorted(engine.ds_config.DEEPSPEED_OPTIMIZERS),
        "resolved_defaults": {key: base[key] for key in sorted(base) if key not in ("world_size", )},
    }


def main():
    text = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    pathlib.Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
