"""Segments in bounded memory: some objects at a time, and the training segments in one array."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Literal

import numpy as np

from okforest._compat import Interval, StrOptions
from okforest._memory import check_memory
from okforest._warnings import warn
from okforest.segments._base import Objects, Segmenter, Segments, some_of_each

BATCH_BYTES = 2**22  # of the segments that are made at a time, and of the files that are read
AUTO_SEGMENTS = 1_000_000  # training segments that max_segments="auto" stands for

MaxSegments = int | Literal["auto"] | None
MAX_SEGMENTS: list[Any] = [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"}), None]


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
    batches: Iterator[tuple[Any, ...]], n_objects: int, total: int, max_segments: MaxSegments
) -> tuple[Any, ...]:
    """Return the training segments in one array, the object of each, and what else is known of it.

    ``batches`` are tuples of arrays: segments, their objects, and any others with a row for each.
    There are ``total`` segments of ``n_objects`` objects; at most ``max_segments`` are kept.
    """
    per_object = _kept_of_each(n_objects, total, max_segments)
    rows = total if per_object is None else min(total, per_object * n_objects)
    S: Any = None
    others: list[tuple[Any, ...]] = []
    done = 0
    for batch in batches:
        if per_object is not None:
            some = some_of_each(batch[1], per_object)
            batch = tuple(part[some] for part in batch)
        values, *rest = batch
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
        others.append(tuple(rest))
        done += len(values)
    return S[:done], *(np.concatenate(parts) for parts in zip(*others, strict=True))


def _kept_of_each(n_objects: int, total: int, max_segments: MaxSegments) -> int | None:
    """Return how many segments of each object are kept, None for all of them."""
    most = max(AUTO_SEGMENTS, n_objects) if max_segments == "auto" else max_segments
    if most is None:
        return None
    if most < n_objects:
        raise ValueError(
            f"max_segments={most} is less than the number of objects, {n_objects}, and each "
            f"needs a segment; set it to at least {n_objects}, or to None."
        )
    if total <= most:
        return None
    per_object = most // n_objects
    if max_segments == "auto":
        warn(
            f"the {n_objects} training objects have {total} segments; the estimator is fitted to "
            f"at most {per_object} of each, so that memory is bounded. Set max_segments={most} to "
            "accept this without a warning, or max_segments=None to fit it to all segments.",
            UserWarning,
        )
    return per_object
