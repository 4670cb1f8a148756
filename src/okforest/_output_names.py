"""Names of the coordinates of vectors and curves: the columns of a frame that y was given as."""

from typing import Any

import numpy as np

from okforest._typing import Outputs
from okforest.kernels import OutputKernel
from okforest.kernels._label_sets import is_frame


def output_names(kernel: OutputKernel, y: Any, outputs: Outputs) -> list[Any] | None:
    """Return the columns of a frame of vectors; None if outputs are not its rows, unchanged.

    Curves that are resampled, and samples of numbers, have other coordinates than the frame. Label
    sets and ranks have their own names: the labels of their kernels.
    """
    if not kernel.numeric or not is_frame(y) or outputs.shape != y.shape:
        return None
    return list(y.columns) if np.array_equal(outputs, y) else None


def with_names(outputs: Any, names: list[Any] | None) -> Any:
    """Return predicted vectors in a frame, if their coordinates have names."""
    if names is None or not isinstance(outputs, np.ndarray) or outputs.shape[1:] != (len(names),):
        return outputs
    import pandas as pd

    return pd.DataFrame(outputs, columns=names)
