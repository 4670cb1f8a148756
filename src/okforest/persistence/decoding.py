"""From JSON and arrays back to estimators; see :mod:`okforest.persistence.encoding`.

Compiled code trusts trees, sparse matrices, and arrays of text or booleans: each of them is checked
when it is restored. Estimators with a method ``check_state`` then check the rest themselves.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import check_compressed
from okforest.engine import Trees
from okforest.engine.trees import check_trees
from okforest.persistence.classes import ClassFinder
from okforest.persistence.container import writable_dtype
from okforest.persistence.encoding import SCALAR_TYPES, SPARSE, is_learnt

Array = npt.NDArray[Any]
Json = dict[str, Any]

MAX_CHARACTER = 0x10FFFF  # the last code point of Unicode


class Restorer:
    """Restores values that were encoded.

    Malformed JSON, which only a file made on purpose can hold, raises an error of any type.

    Parameters
    ----------
    arrays : list of ndarray
        The arrays of the file.
    classes : ClassFinder
        Finds the classes of estimators.
    """

    def __init__(self, arrays: list[Array], classes: ClassFinder):
        self._arrays = arrays
        self._classes = classes

    def restore(self, value: Any) -> Any:
        """Return the value that was encoded."""
        if isinstance(value, list):
            return [self.restore(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value["type"]
        if isinstance(kind, str) and ":" in kind:
            return self._restore_estimator(self._classes.find(kind), value)
        if not isinstance(kind, str) or kind not in RESTORERS:
            raise ValueError(f"unknown type {kind!r}")
        return RESTORERS[kind](self, value)

    def _restore_members(self, members: Json) -> dict[str, Any]:
        return {name: self.restore(item) for name, item in members.items()}

    def _restore_estimator(self, cls: Any, value: Json) -> Any:
        estimator = cls(**self._restore_members(value["params"]))
        learnt = self._restore_members(value["fitted"])
        for name in learnt:
            if not is_learnt(cls, name):
                raise ValueError(f"{name!r} is not a fitted attribute of {cls.__name__}")
        if not learnt:
            return estimator
        if hasattr(cls, "check_state"):
            vars(estimator).update(learnt)
            estimator.check_state()
        estimator.__setstate__(vars(estimator) | learnt)
        return estimator

    def _restore_array(self, value: Json) -> Array:
        array = self._arrays[range(len(self._arrays))[value["position"]]]
        flat = array.reshape(-1, order="A")
        # Python trusts that characters exist, NumPy that booleans are 0 or 1.
        if array.dtype.kind == "U":
            codes = flat.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
            if codes.max(initial=0) > MAX_CHARACTER:
                raise ValueError("an array of text has characters that do not exist")
        if array.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
            raise ValueError("an array of booleans has values other than 0 and 1")
        return array

    def _restore_objects(self, value: Json) -> Array:
        items = value["items"]
        if prod(value["shape"]) != len(items):
            raise ValueError(f"{len(items)} objects do not fill the shape {value['shape']}")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # assigned as a whole, NumPy would unpack lists of lists
            flat[i] = self.restore(item)
        return flat.reshape(value["shape"])

    def _restore_sparse(self, value: Json) -> Any:
        data, indices, indptr = (self.restore(value[k]) for k in ("data", "indices", "indptr"))
        rows, columns = (1, *value["shape"])[-2:]
        if value["type"].startswith("csc"):
            rows, columns = columns, rows
        check_compressed(data, indices, indptr, rows, columns)
        data = data.astype(data.dtype.newbyteorder("="), copy=False)
        return SPARSE[value["type"]]((data, indices, indptr), shape=tuple(value["shape"]))

    def _restore_dtype(self, value: Json) -> Any:
        dtype = np.dtype(value["value"])
        if not writable_dtype(dtype) and dtype.kind != "O":
            raise ValueError(f"unknown dtype {value['value']!r}")
        return dtype

    def _restore_scalar_type(self, value: Json) -> type:
        if value["value"] not in SCALAR_TYPES:
            raise ValueError(f"unknown scalar type {value['value']!r}")
        return SCALAR_TYPES[value["value"]]

    def _restore_trees(self, value: Json) -> Trees:
        trees = Trees(**self._restore_members(value["fields"]))
        check_trees(trees, len(trees.n_categories))
        return trees


RESTORERS: dict[str, Callable[[Restorer, Json], Any]] = {
    "array": Restorer._restore_array,
    "dict": lambda self, value: {
        self.restore(key): self.restore(item) for key, item in value["items"]
    },
    "dtype": Restorer._restore_dtype,
    "float": lambda self, value: float(value["value"]),
    "frozenset": lambda self, value: frozenset(self.restore(value["items"])),
    "objects": Restorer._restore_objects,
    "scalar": lambda self, value: self.restore(value["value"])[()],
    "scalar type": Restorer._restore_scalar_type,
    "set": lambda self, value: set(self.restore(value["items"])),
    "slice": lambda self, value: slice(*self.restore(value["items"])),
    "trees": Restorer._restore_trees,
    "tuple": lambda self, value: tuple(self.restore(value["items"])),
    **dict.fromkeys(SPARSE, Restorer._restore_sparse),
}
