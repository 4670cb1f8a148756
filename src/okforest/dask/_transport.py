"""What is sent between processes: plans whose arrays arrive aligned, and trees in fewer bytes.

Most of the time that workers spend on anything but growth, they send trees. Node numbers, positions
and weights of whole rows fit in fewer bytes than the engine uses, and splits take values that
leaves do not have. Nothing is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest.engine import GrowthPlan, Trees
from okforest.engine.trees import PARTS

Array = npt.NDArray[Any]

OF_SPLITS = ("feature", "left", "threshold", "missing_left", "subset")


@dataclass(frozen=True)
class SentPlan(GrowthPlan):
    """A plan that is sent to other processes.

    The arrays of a message begin anywhere in memory; C++ expects numbers at multiples of their
    size. They are copied once, when a worker receives them.
    """

    @classmethod
    def of(cls, plan: GrowthPlan) -> "SentPlan":
        """Return a plan with the data of another."""
        return cls(**{field.name: getattr(plan, field.name) for field in fields(GrowthPlan)})

    def __reduce__(self) -> Any:
        return _received, ({field.name: getattr(self, field.name) for field in fields(self)},)


def _received(parts: dict[str, Any]) -> SentPlan:
    # All of them: arrays of one message keep each other in memory.
    return SentPlan(**{name: _copied(part) for name, part in parts.items()})


def _copied(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.copy(order="K")
    return part.copy() if hasattr(part, "indptr") else part


@dataclass(frozen=True)
class PackedTrees:
    """Trees without their repetitions.

    Parameters
    ----------
    is_split : ndarray of bool
        Which nodes are split; the others are leaves.
    in_leaves : dict
        For every array about splits, the value that leaves have.
    arrays : dict
        The arrays, those about splits without the leaves, in the smallest type that holds them.
        Those that are the same in all nodes are empty, and so are weights that count members.
    dtypes : dict
        The types of the arrays.
    """

    is_split: Array
    in_leaves: dict[str, Any]
    arrays: dict[str, Array]
    dtypes: dict[str, np.dtype[Any]]


def pack(trees: Trees) -> PackedTrees:
    """Return trees in fewer bytes."""
    arrays = dict(vars(trees))
    dtypes = {name: array.dtype for name, array in arrays.items()}
    is_split = trees.left >= 0
    split, leaves = np.flatnonzero(is_split), np.flatnonzero(~is_split)  # faster than masks
    is_pure = not trees.variance[leaves].any()  # leaves of one row, or of equal outputs
    of_splits = (*OF_SPLITS, "variance") if is_pure else OF_SPLITS
    in_leaves = {name: arrays[name][leaves[0]] for name in of_splits}  # all have the same values
    for name in of_splits:
        own = arrays[name][split]
        is_same = own.dtype.kind in "bi" and (own == in_leaves[name]).all()  # 0.0 == −0.0
        arrays[name] = own[:0] if is_same else own
    if np.array_equal(trees.weight, trees.end - trees.begin):  # every row has weight one
        arrays["weight"] = trees.weight[:0]
    return PackedTrees(
        np.packbits(is_split),
        in_leaves,
        {name: _smaller(array) for name, array in arrays.items()},
        dtypes,
    )


def unpack(parts: Sequence[PackedTrees]) -> Trees:
    """Return the trees of all parts, joined, as they were.

    Every part is written to its place: unpacking parts alone would take the memory of all trees
    twice.
    """
    first = parts[0]
    joined = {name: array.astype(first.dtypes[name]) for name, array in first.arrays.items()}
    places = {}
    for offsets, names in PARTS.items():
        sizes = [np.diff(part.arrays[offsets].astype(np.int64)) for part in parts]
        joined[offsets] = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        ends = np.cumsum([own.sum() for own in sizes])
        for name in names:
            if name == "times" and not first.arrays[name].size:
                continue  # without bootstrap
            joined[name] = np.empty(ends[-1], dtype=first.dtypes[name])
            places[name] = np.split(joined[name], ends[:-1])
    for k, part in enumerate(parts):
        n_nodes = int(part.arrays["node_offsets"][-1])
        split = np.flatnonzero(np.unpackbits(part.is_split, count=n_nodes))
        for name, own in places.items():
            _unpack_to(own[k], part, name, split)
    return Trees(**joined)


def _unpack_to(own: Array, part: PackedTrees, name: str, split: Array) -> None:
    """Write one array of a part to its place, given which nodes are split."""
    array = part.arrays[name]
    if name in part.in_leaves:
        own[:] = part.in_leaves[name]
        if array.size:
            own[split] = array
    elif name == "weight" and not array.size:
        np.subtract(part.arrays["end"], part.arrays["begin"], out=own, dtype=own.dtype)
    else:
        own[:] = array


def _smaller(array: Array) -> Array:
    """Return an array of whole numbers in the smallest type that holds them; others as they are."""
    if array.size == 0 or array.dtype.kind not in "if":
        return array
    if array.dtype.kind == "f":
        if array[0] != np.rint(array[0]) or not (array == np.rint(array)).all():
            return array
        if np.signbit(array).any() or array.max() >= 2**53:  # −0.0 is a whole number, too
            return array
    low, high = array.min(), array.max()
    for dtype in (np.uint8, np.uint16, np.int16, np.uint32, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return array.astype(dtype) if np.dtype(dtype).itemsize < array.itemsize else array
    return array
