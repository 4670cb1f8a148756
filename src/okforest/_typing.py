"""Names for the types that travel through the package."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]
# Outputs in canonical form: one per entry of the first axis, of any dtype.
Outputs = npt.NDArray[Any]
# Weights over training outputs, one row per prediction.
Weights = sp.csr_array
Progress = Callable[[int], object]


class WeightMatrix(Protocol):
    """What is asked of weights: a sparse matrix has it, and so may what stands for one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, rows: Any, /) -> Any: ...
    def __matmul__(self, values: Any, /) -> Any: ...
    def tocsr(self) -> Weights: ...
