"""From estimators to JSON and arrays, and back.

None, booleans, integers, finite floats, text and lists are stored as in JSON. Everything else is an
object with a ``"type"``: a key of :data:`RESTORERS`, or the name of a class, ``module:qualname``,
with the parameters of its constructor and what it has learnt. Arrays are stored apart, and JSON
refers to them by position.

Compiled code trusts trees, sparse matrices, and arrays of text or booleans: each of them is checked
when it is restored. Estimators with a method ``check_state`` then check the rest themselves.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from okforest._utils.arrays import check_compressed, check_sparse
from okforest.engine import Trees, check_trees, pack_members, unpack_members
from okforest.persistence.classes import ClassFinder, class_name
from okforest.persistence.container import writable_dtype

Array = npt.NDArray[Any]
Json = dict[str, Any]

LAST_CODE_POINT = 0x10FFFF

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
    """Turns values into JSON and :attr:`arrays`; raises a TypeError naming what it cannot store.

    :attr:`classes` are the classes that files name and load does not find by itself.
    """

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.classes: list[type] = []
        self._given: list[Array] = []  # keeps arrays alive, so that no other gets the id of one
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
            check_trees(value, np.size(value.n_categories))
            arrays = {field.name: getattr(value, field.name) for field in fields(value)}
            packed = pack_members(value)
            if packed is not None:
                del arrays["members"]
                arrays["packed_members"] = packed
            return {"type": "trees", "fields": self._encode_members(arrays, path)}
        if isinstance(value, BaseEstimator):
            params = value.get_params(deep=False)
            learnt = _learnt(value, params, path)
            if not kind.__module__.startswith(("okforest.", "sklearn.")):
                self.classes.append(kind)
            return {
                "type": class_name(kind),
                "params": self._encode_members(params, path),
                "fitted": self._encode_members(learnt, path),
            }
        raise TypeError(_refusal(value, path))

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
            raise TypeError(_refusal(array, path))
        # An array is stored once: the kernel of a model and of its fit share a Gram matrix.
        if id(array) not in self._positions:
            self._positions[id(array)] = len(self.arrays)
            self._given.append(array)
            self.arrays.append(np.asarray(array if array.flags.forc else array.copy()))
        return {"type": "array", "position": self._positions[id(array)]}

    def _encode_sparse(self, matrix: Any, path: str) -> dict[str, Any]:
        check_sparse(matrix, path)
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


def _refusal(value: Any, path: str) -> str:
    """Return the message that the value at this path cannot be saved."""
    what = _with_article(type(value))
    if isinstance(value, np.ndarray):
        what = f"an array of type {value.dtype} ({what})"
    return (
        f"{path} is {what}; okforest.save stores numbers, text, arrays, containers of them, and "
        f"estimators with such parameters and attributes, never code. {_advice(value, path)}"
    )


def _with_article(cls: type) -> str:
    name = f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _advice(value: Any, path: str) -> str:
    name = path.rpartition(".")[2]
    if isinstance(value, np.random.RandomState | np.random.Generator) or name == "callback":
        return f"Predictions do not need it: set {name} to None by set_params before saving."
    if name == "graph":
        return "Save model.compact() instead, whose kernel stores the graph as arrays."
    if callable(value) and "kernel" in path:
        return (
            "Write the kernel as a subclass of okforest.kernels.OutputKernel, or fit with "
            "kernel=Precomputed(K), where K is its Gram matrix."
        )
    if name == "score_func":
        return "Selected features stay selected without it: set score_func to None before saving."
    if ".transformers[" in path:
        return (
            "Pass the names of the columns instead, such as make_column_selector(...)(X), and fit "
            "again."
        )
    if name in ("func", "inverse_func"):
        return (
            "Replace the function by a transformer class of your own, which is stored "
            "by its name, or use pickle or joblib, with a function that is defined in a module."
        )
    if callable(value):
        return "Use pickle or joblib, with a function that is defined in a module."
    return "Use pickle, joblib or skops instead."


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
            if codes.max(initial=0) > LAST_CODE_POINT:
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
        arrays = self._restore_members(value["fields"])
        if "packed_members" in arrays:
            packed, n_rows = arrays.pop("packed_members"), len(arrays["row_weight"])
            arrays["members"] = unpack_members(packed, arrays["member_offsets"], n_rows)
        trees = Trees(**arrays)
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
