"""From estimators to JSON and arrays.

None, booleans, integers, finite floats, text and lists are stored as in JSON. Everything else is an
object with a ``"type"``: one of those in :data:`okforest.persistence.decoding.RESTORERS`, or the
name of a class, ``module:qualname``, with the parameters of its constructor and what it has learnt.
Arrays are stored apart, and JSON refers to them by position.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest.engine import Trees
from okforest.persistence.classes import class_name
from okforest.persistence.container import writable_dtype
from okforest.persistence.refusals import refusal

Array = npt.NDArray[Any]

# What estimators take as dtype=.
SCALAR_TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
        *(np.bool_, np.str_, np.object_),
    )
}
SPARSE = {cls.__name__: cls for cls in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)}


class Encoder:
    """Turns values into JSON and :attr:`arrays`; raises a TypeError naming what it cannot store."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._positions: dict[int, int] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return a value as JSON; ``path`` names it in error messages."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if isfinite(value) else {"type": "float", "value": repr(value)}
        if kind is list:
            return self._encode_items(value, path)
        if kind is tuple:
            return {"type": "tuple", "items": self._encode_items(value, path)}
        if kind in (set, frozenset):
            items = [self.encode(item, f"an item of {path}") for item in value]
            return {"type": kind.__name__, "items": sorted(items, key=json.dumps)}
        if kind is dict:
            return {"type": "dict", "items": self._encode_pairs(value, path)}
        if kind is slice:
            ends = [value.start, value.stop, value.step]
            return {"type": "slice", "items": self._encode_items(ends, path)}
        return self._encode_data(value, path)

    def _encode_data(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is np.ndarray or kind is np.memmap:
            return self._encode_array(value, path)
        if isinstance(value, np.generic) and writable_dtype(value.dtype):
            return {"type": "scalar", "value": self._encode_array(np.asarray(value), path)}
        if isinstance(value, np.dtype) and (writable_dtype(value) or value.kind == "O"):
            return {"type": "dtype", "value": value.str}
        if kind is type and value in SCALAR_TYPES.values():
            return {"type": "scalar type", "value": value.__name__}
        if kind in SPARSE.values():
            return self._encode_sparse(value, path)
        if kind is Trees:
            arrays = {field.name: getattr(value, field.name) for field in fields(value)}
            return {"type": "trees", "fields": self._encode_members(arrays, path)}
        if isinstance(value, BaseEstimator):
            params = value.get_params(deep=False)
            learnt = _learnt(value, params, path)
            if learnt and hasattr(value, "check_state"):
                value.check_state()  # what load would refuse is not written
            return {
                "type": class_name(kind),
                "params": self._encode_members(params, path),
                "fitted": self._encode_members(learnt, path),
            }
        raise TypeError(refusal(value, path))

    def _encode_items(self, items: Iterable[Any], path: str) -> list[Any]:
        return [self.encode(item, f"{path}[{i}]") for i, item in enumerate(items)]

    def _encode_pairs(self, pairs: Mapping[Any, Any], path: str) -> list[list[Any]]:
        return [
            [self.encode(key, f"a key of {path}"), self.encode(item, f"{path}[{key!r}]")]
            for key, item in pairs.items()
        ]

    def _encode_members(self, members: Mapping[str, Any], path: str) -> dict[str, Any]:
        return {name: self.encode(value, f"{path}.{name}") for name, value in members.items()}

    def _encode_array(self, array: Array, path: str) -> dict[str, Any]:
        if array.dtype == object:
            items = self._encode_items(array.flat, path)
            return {"type": "objects", "shape": list(array.shape), "items": items}
        if not writable_dtype(array.dtype):
            raise TypeError(refusal(array, path))
        # An array is stored once: the kernel of a model and of its fit share a Gram matrix.
        # self.arrays keeps it alive, so that no other array gets its id.
        if id(array) not in self._positions:
            self._positions[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return {"type": "array", "position": self._positions[id(array)]}

    def _encode_sparse(self, matrix: Any, path: str) -> dict[str, Any]:
        n_entries = int(matrix.indptr[-1])
        parts = {
            "data": matrix.data[:n_entries],  # SciPy allows unused entries at the end
            "indices": matrix.indices[:n_entries],
            "indptr": matrix.indptr,
        }
        shape = list(map(int, matrix.shape))
        return {"type": type(matrix).__name__, "shape": shape} | self._encode_members(parts, path)


def follows_contract(cls: type) -> bool:
    """Return whether a class keeps what it learns in attributes with names like ``coef_``.

    Classes of okforest do, and so do their subclasses; their other attributes are derived.
    """
    return any(base.__module__.startswith("okforest.") for base in cls.__mro__)


def is_learnt(cls: type, name: str) -> bool:
    """Return whether an attribute of this name is part of what an estimator has learnt."""
    if follows_contract(cls) and (name.startswith("_") or not name.endswith("_")):
        return False
    return not _is_computed(cls, name)


def _is_computed(cls: type, name: str) -> bool:
    """Return whether a name is a method or a property; values of cached ones are derived."""
    return any(hasattr(type(vars(base).get(name)), "__get__") for base in cls.__mro__)


def _learnt(estimator: Any, params: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the attributes that are not parameters, as pickle would store them."""
    state = estimator.__getstate__()
    if not isinstance(state, dict):
        kind = type(state).__name__
        raise TypeError(f"{path}.__getstate__() returns a {kind}; okforest.save needs a dict.")
    cls = type(estimator)
    learnt = {k: v for k, v in state.items() if k not in params and is_learnt(cls, k)}
    _refuse_lost(cls, params, state.keys() - learnt.keys() - params.keys(), path)
    return learnt


def _refuse_lost(cls: type, params: Mapping[str, Any], dropped: Iterable[str], path: str) -> None:
    """Raise an error if a public attribute is neither stored nor set or computed again."""
    lost = {k for k in dropped if not k.startswith("_") and not _is_computed(cls, k)}
    if not lost or not (lost := lost - vars(cls(**params)).keys()):
        return
    name = min(lost)
    raise TypeError(
        f"{path}.{name} would not be saved: of classes that derive from okforest, only attributes "
        f"whose names end in an underscore are stored. Rename it to {name}_, or to _{name} if the "
        "model works without it."
    )
