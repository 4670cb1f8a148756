"""Segments in bounded memory: some objects at a time, and the training segments in one array."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from okforest._memory import check_memory
from okforest.segments._base import Objects, Segmenter, Segments, some_of_each

BATCH_BYTES = 2**22  # of the segments that are made at a time, and of the files that are read


def cut_in_batches(
    segmenter: Segmenter, objects: Objects, seed: int, n_threads: int
) -> Iterator[Segments]:
    """Yield the segments of as many objects as take about 4 MB, of at least one.

    Objects that are read when they are needed, such as image files, count too.
    """
    in_memory = isinstance(objects, list)
    batch: list[Any] = []
    held, segment_bytes = 0, BATCH_BYTES  # not known before the first object is cut, alone
    for item in objects:
        n_segments = segmenter.count([item])
        read = 0 if in_memory else int(getattr(item, "nbytes", 0))
        if batch and held + read + n_segments * segment_bytes > BATCH_BYTES:
            segments = segmenter.cut(batch, seed, n_threads)
            yield segments
            segment_bytes = segments.values.itemsize * segments.values.shape[1]
            batch, held = [], 0
        batch.append(item)
        held += read + n_segments * segment_bytes
    if batch:
        yield segmenter.cut(batch, seed, n_threads)


def joined(
    batches: Iterator[tuple[Any, Any]], n_objects: int, total: int, most: int | None
) -> tuple[Any, Any]:
    """Return all segments in one array, or at most some of each object, and the object of each.

    ``batches`` are segments and their objects, ``total`` segments of ``n_objects`` objects.
    """
    per_object = None if most is None or most >= total else most // n_objects
    rows = total if per_object is None else min(total, per_object * n_objects)
    S: Any = None
    owners: list[Any] = []
    done = 0
    for values, owner in batches:
        if per_object is not None:
            some = some_of_each(owner, per_object)
            values, owner = values[some], owner[some]
        dtype = values.dtype if S is None else np.result_type(S, values)
        if S is None or dtype != S.dtype:  # bytes, and then floats
            check_memory(
                dtype.itemsize * values.shape[1] * rows,
                f"the array of {rows} segments of the training objects",
                "Set max_segments, or use fewer or smaller segments.",
            )
            wider = np.empty((rows, values.shape[1]), dtype)
            if S is not None:
                wider[:done] = S[:done]
            S = wider
        S[done : done + len(values)] = values
        owners.append(owner)
        done += len(values)
    return S[:done], np.concatenate(owners)
