"""Convert the JSON answers to frozen dataclasses with the same fields."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


_known: dict[Any, list[tuple[str, str, Any]]] = {}


def _fields(cls: Any) -> list[tuple[str, str, Any]]:
    """Return the attributes with their JSON keys and types."""
    if cls not in _known:
        hints = get_type_hints(cls)
        _known[cls] = [
            (field.name, field.metadata.get("key", field.name), hints[field.name])
            for field in dataclasses.fields(cls)
        ]
    return _known[cls]


def shaped(cls: type[T], data: Mapping[str, Any], **more: Any) -> T:
    """Return an instance of ``cls``. Keys without an attribute are available through ``to_dict``."""
    values = {
        name: _value(kind, data[key]) for name, key, kind in _fields(cls) if key in data
    }
    return cls(**values, **more)


def _value(kind: Any, data: Any) -> Any:
    if data is None:
        return None
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Union:
        return _value(next(one for one in arguments if one is not type(None)), data)
    if origin is tuple:
        return tuple(_value(arguments[0], item) for item in data)
    if origin is dict:
        return {key: _value(arguments[1], value) for key, value in data.items()}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return shaped(kind, data)
    return data
