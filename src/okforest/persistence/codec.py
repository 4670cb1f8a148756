"""Models, kernels and decoders as JSON and arrays, and back.

None, booleans, whole numbers, finite floats, text and lists are themselves in JSON. Everything else
is an object whose ``"type"`` says what it is: one of :data:`RESTORERS`, or a class of
:data:`okforest.persistence.registry.CLASSES` with its constructor's parameters and its fitted
attributes. Arrays are kept apart, and named by their position.
"""

from collections.abc import Callable
from dataclasses import fields
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest.engine import Trees
from okforest.kernels import OutputKernel
from okforest.persistence.container import writable_dtype
from okforest.persistence.registry import CLASSES, NAMES

Array = npt.NDArray[Any]

MAX_CHARACTER = 0x10FFFF  # the last code point of Unicode


class Encoder:
    """Turns a value into JSON and :attr:`arrays`, or says what in it cannot be saved."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._positions: dict[int, int] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return a value as JSON; ``path`` is its name in error messages."""
        if isinstance(value, np.bool_ | np.integer | np.floating | np.str_):
            value = value.item()  # unchanged where Python has no such number
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if isfinite(value) else {"type": "float", "value": repr(value)}
        if kind is list or kind is tuple:
            items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value)]
            return items if kind is list else {"type": "tuple", "items": items}
        if kind is dict:
            pairs = [
                [self.encode(key, f"a key of {path}"), self.encode(item, f"{path}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"type": "dict", "items": pairs}
        if kind is np.ndarray or kind is np.memmap:
            return self._encode_array(value, path)
        if kind is sp.csr_array:
            return {"type": "csr", "shape": list(value.shape)} | {
                name: self.encode(getattr(value, name), f"{path}.{name}")
                for name in ("data", "indices", "indptr")
            }
        if kind is Trees:
            names = [field.name for field in fields(value)]
            return {"type": "trees", "fields": self._encode_members(value, names, path)}
        if kind in NAMES:
            fitted = [name for name in vars(value) if is_fitted_name(name)]
            return {
                "type": NAMES[kind],
                "params": self._encode_members(value, value.get_params(deep=False), path),
                "fitted": self._encode_members(value, fitted, path),
            }
        raise TypeError(_refusal(value, path))

    def _encode_members(self, value: Any, names: Any, path: str) -> dict[str, Any]:
        return {name: self.encode(getattr(value, name), f"{path}.{name}") for name in names}

    def _encode_array(self, array: Array, path: str) -> dict[str, Any]:
        if array.dtype == object:
            items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(array.flat)]
            return {"type": "objects", "shape": list(array.shape), "items": items}
        if not writable_dtype(array.dtype):
            raise TypeError(_refusal(array, path))
        # Once, however often it is met: the kernel of a model and of its fit share a Gram matrix.
        # self.arrays keeps it alive, and so its id its own.
        if id(array) not in self._positions:
            self._positions[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return {"type": "array", "position": self._positions[id(array)]}


def is_fitted_name(name: str) -> bool:
    """Return whether an attribute of this name is learnt by fitting."""
    return name.endswith("_") and not name.startswith("_")


def decode(value: Any, arrays: list[Array]) -> Any:
    """Return the value that was encoded.

    Bad JSON, which only a file made on purpose can have, gives an error of any type.
    """
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind in RESTORERS:
        return RESTORERS[kind](value, arrays)
    if kind in CLASSES:
        return _restore_object(CLASSES[kind], value, arrays)
    raise ValueError(f"unknown type {kind!r}")


def _restore_object(cls: Any, value: dict[str, Any], arrays: list[Array]) -> Any:
    restored = cls(**{name: decode(item, arrays) for name, item in value["params"].items()})
    for name, item in value["fitted"].items():
        if not is_fitted_name(name) or hasattr(cls, name):
            raise ValueError(f"{name!r} is no fitted attribute of {cls.__name__}")
        setattr(restored, name, decode(item, arrays))
    return restored


def _restore_array(value: dict[str, Any], arrays: list[Array]) -> Array:
    array = arrays[range(len(arrays))[value["position"]]]
    # Compiled code trusts these: Python's that characters exist, NumPy's that booleans are 0 or 1.
    flat = array.reshape(-1, order="A")
    if array.dtype.kind == "U":
        codes = flat.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max(initial=0) > MAX_CHARACTER:
            raise ValueError("an array of text has characters that do not exist")
    if array.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array of booleans has values other than 0 and 1")
    return array


def _restore_objects(value: dict[str, Any], arrays: list[Array]) -> Array:
    items = value["items"]
    if prod(value["shape"]) != len(items):
        raise ValueError(f"{len(items)} objects do not fill the shape {value['shape']}")
    flat = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # assigned whole, NumPy would unpack lists of lists
        flat[i] = decode(item, arrays)
    return flat.reshape(value["shape"])


def _restore_csr(value: dict[str, Any], arrays: list[Array]) -> sp.csr_array:
    parts = tuple(decode(value[name], arrays) for name in ("data", "indices", "indptr"))
    matrix = sp.csr_array(parts, shape=tuple(value["shape"]))
    matrix.check_format(full_check=True)  # SciPy's compiled code trusts the indices
    return matrix


RESTORERS: dict[str, Callable[[dict[str, Any], list[Array]], Any]] = {
    "array": _restore_array,
    "csr": _restore_csr,
    "dict": lambda value, arrays: {
        decode(key, arrays): decode(item, arrays) for key, item in value["items"]
    },
    "float": lambda value, arrays: float(value["value"]),
    "objects": _restore_objects,
    "trees": lambda value, arrays: Trees(
        **{name: decode(item, arrays) for name, item in value["fields"].items()}
    ),
    "tuple": lambda value, arrays: tuple(decode(value["items"], arrays)),
}


def _refusal(value: Any, path: str) -> str:
    """Say that a value cannot be saved, and what to do."""
    kind = type(value)
    what = f"a {kind.__module__}.{kind.__qualname__}".replace("a builtins.", "a ")
    if isinstance(value, np.ndarray):
        what = f"an array of type {value.dtype} ({what})"
    advice = "Use pickle or joblib instead."
    if isinstance(value, np.random.RandomState | np.random.Generator):
        advice = "A fitted model does not need it: call model.set_params(random_state=None) first."
    elif path.endswith(".graph"):
        advice = "Save model.compact() instead, whose kernel holds the graph as arrays."
    elif isinstance(value, OutputKernel) or (callable(value) and "kernel" in path):
        advice = (
            "Fit with kernel=Precomputed(K), where K is the kernel's Gram matrix, or use pickle or "
            "joblib instead."
        )
    return (
        f"{path} is {what}; okforest.save writes numbers, text, arrays and okforest's own objects, "
        f"never code. {advice}"
    )
