"""Comparing arrays of outputs: whether two have the same type, and which entries are equal."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Outputs, namespace, on_gpu, to_host
from okforest._utils.resources import row_blocks

Positions = npt.NDArray[np.intp]


class Distinct(NamedTuple):
    """The different entries of an array of outputs."""

    first: Positions  # where each is found first, ascending
    group: Positions  # for every output, which of them it equals

    def __len__(self) -> int:
        return len(self.first)


def refuse_masked(values: Any, name: str) -> None:
    """Raise a ValueError if an array has masked entries, which would otherwise be used."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).tobytes().strip(b"\0"):
        raise ValueError(
            f"{name} is a masked array with masked entries; pass an array in which every entry is "
            "known."
        )


def check_same_type(outputs: Outputs, training: Outputs, name: str) -> None:
    """Raise a ValueError unless outputs have the shape and type of the training outputs."""
    width, expected = (int(np.prod(y.shape[1:])) for y in (outputs, training))
    if width != expected:
        raise ValueError(
            f"{name} has {width} values in each output; the training outputs have {expected}."
        )
    is_text, expects_text = (y.dtype.kind in "UST" for y in (outputs, training))
    if is_text != expects_text and "O" not in (outputs.dtype.kind, training.dtype.kind):
        raise ValueError(
            f"{name} has type {outputs.dtype}; the training outputs have type {training.dtype}, "
            "and text never equals a number."
        )


def distinct(outputs: Outputs) -> Distinct:
    """Find the different outputs. Objects that can be neither hashed nor pickled all differ."""
    if outputs.dtype.kind == "f":
        first, group = _group_floats(outputs)
    else:
        first, group = _unique(_group_objects(outputs) if outputs.dtype.kind == "O" else outputs)
    xp = namespace(group)
    order = xp.argsort(first)
    rank = xp.empty_like(order)
    rank[order] = xp.arange(len(order))
    return Distinct(first[order], rank[group])


def _unique(values: Outputs) -> tuple[Positions, Positions]:
    """Return where each different row or number is found first, and which of them each equals."""
    axis = 0 if values.ndim > 1 else None
    found = namespace(values).unique(values, return_index=True, return_inverse=True, axis=axis)
    return found[1], found[2].ravel()


def _group_objects(outputs: Outputs) -> Positions:
    numbers: dict[object, int] = {}
    for key_of in (_hashable, pickle.dumps):  # lists and arrays have no hash
        try:
            keys = [key_of(output) for output in outputs.ravel()]
            return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
        except Exception:  # pickling an object may raise anything
            numbers.clear()
    return np.arange(len(outputs))


def _hashable(output: object) -> object:
    # With its type: a kernel may tell 1 from True, which are equal in Python.
    return type(output), output


def _group_floats(outputs: Outputs) -> tuple[Positions, Positions]:
    """Group rows by a hash of their bits: much faster than sorting them."""
    xp = namespace(outputs)
    rows = xp.ascontiguousarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    if not on_gpu(rows) and _all_differ(rows, factors / 2.0**64):
        return np.arange(len(rows)), np.arange(len(rows))
    factors = xp.asarray(factors)
    hashes = xp.empty(len(rows), dtype=np.uint64)
    for block in row_blocks(rows):
        bits = _bits(rows[block])
        bits ^= bits >> np.uint64(29)
        bits *= factors
        hashes[block] = bits.sum(axis=1, dtype=np.uint64)
    first, group = _unique(hashes)
    again = first[group] != xp.arange(len(rows))
    if xp.array_equal(_bits(rows[again]), _bits(rows[first[group[again]]])):
        return first, group
    first, group = _unique(to_host(rows))  # two hashes collided
    return xp.asarray(first), xp.asarray(group)


def _all_differ(rows: Floats, factors: Floats) -> bool:
    """Return whether sums over rows, which are cheaper than hashes, already tell them all apart."""
    # Equal rows have sums that are equal to the last bit.
    sums = np.sort(np.einsum("ij,j->i", rows, factors))
    return bool((sums[1:] > sums[:-1]).all())


def _bits(rows: Floats) -> Any:
    return (rows + 0.0).view(np.uint64)  # −0.0 becomes 0.0
