"""Names for the types that travel through the package."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]
# Outputs in canonical form: one per entry of the first axis, of any dtype.
Outputs = npt.NDArray[Any]
Progress = Callable[[int], object]
