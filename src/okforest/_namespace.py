"""Arrays of NumPy, and of CuPy on a GPU: which library an array belongs to.

Nothing here imports CuPy: whoever passes one of its arrays has.
"""

import sys
from typing import Any

import numpy as np


def on_gpu(array: Any) -> bool:
    """Return whether an array is one of CuPy."""
    return type(array).__module__.partition(".")[0] == "cupy"


def namespace(array: Any) -> Any:
    """Return the library of an array: CuPy if it is on a GPU, else NumPy."""
    return sys.modules["cupy"] if on_gpu(array) else np


def to_host(array: Any) -> Any:
    """Return an array of CuPy as one of NumPy, and anything else as it is."""
    return array.get() if on_gpu(array) else array


def like(result: Any, given: Any) -> Any:
    """Return a result in the library of what was given; only CuPy holds numbers alone."""
    if on_gpu(given) and isinstance(result, np.ndarray) and result.dtype.kind in "biuf":
        return namespace(given).asarray(result)
    return result if on_gpu(given) else to_host(result)
