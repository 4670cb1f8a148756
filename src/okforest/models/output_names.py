"""Names of the coordinates of vectors and curves: the columns of a frame that y was given as."""

from typing import Any

import numpy as np

from okforest._utils.arrays import Outputs, to_host
from okforest._utils.frames import frame_of, is_frame
from okforest.kernels import OutputKernel
from okforest.kernels.outputs import Form


def output_names(kernel: OutputKernel, y: Any, outputs: Outputs) -> list[Any] | None:
    """Return the columns of a frame of vectors; None if outputs are not its rows, unchanged.

    Curves that are resampled, and samples of numbers, have other coordinates than the frame. Label
    sets and ranks have their own names: the labels of their kernels. Names that a saved model
    cannot hold, such as dates, are left out.
    """
    if not kernel.numeric or not is_frame(y) or outputs.shape != y.shape:
        return None
    if not np.array_equal(outputs, y):
        return None
    return list(y.columns) if all(map(_is_plain, y.columns)) else None


def _is_plain(name: Any) -> bool:
    if isinstance(name, tuple):
        return all(map(_is_plain, name))
    return name is None or isinstance(name, str | int | float)


def with_names(outputs: Any, names: list[Any] | None, form: Form) -> Any:
    """Return predicted vectors in a frame of their library, if their coordinates have names."""
    if names is None:
        return outputs
    outputs = to_host(outputs)
    if not isinstance(outputs, np.ndarray) or outputs.shape[1:] != (len(names),):
        return outputs
    return frame_of(outputs, names, form)
