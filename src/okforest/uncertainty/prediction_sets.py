"""Sets of outputs, one for each prediction."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest._typing import Booleans, Outputs
from okforest.kernels import OutputKernel
from okforest.uncertainty._scores import positions_of
from okforest.weights import OutputSet


@dataclass(frozen=True, repr=False)
class PredictionSets:
    """Sets of outputs, one for each prediction: ``sets[0]`` holds those of the first row.

    Parameters
    ----------
    kernel : OutputKernel
        The output kernel.
    candidates : ndarray of m outputs
        The different candidates, in the canonical form of the kernel.
    members : csr_array of shape (n, m)
        Stored entries are members, in order, most typical first; the values are scores.
    coverage : float
        The probability with which a set contains the true output.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKRandomForest
    >>> from okforest.uncertainty import ConformalSets
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OKRandomForest(kernel="dirac", random_state=0)
    >>> sets = ConformalSets(forest, method="oob").fit(X[::2], y[::2]).predict_sets(X[1::2])
    >>> len(sets), sets[0]
    (75, array([0]))
    """

    kernel: OutputKernel
    candidates: Outputs
    members: sp.csr_array
    coverage: float

    def __len__(self) -> int:
        return int(self.members.shape[0])

    @overload
    def __getitem__(self, i: int) -> Outputs: ...
    @overload
    def __getitem__(self, i: slice) -> list[Outputs]: ...
    def __getitem__(self, i: int | slice) -> Outputs | list[Outputs]:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        i = range(len(self))[i]
        own = slice(self.members.indptr[i], self.members.indptr[i + 1])
        chosen = self.candidates[self.members.indices[own]]
        shown = self.kernel.in_form(chosen)
        return self.kernel.as_given(chosen) if sp.issparse(shown) else shown

    def __iter__(self) -> Iterator[Outputs]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        mean = self.sizes.mean() if len(self) else 0.0
        return (
            f"<PredictionSets of {len(self)} rows, coverage {self.coverage:g}, "
            f"mean size {mean:.2f}>"
        )

    @property
    def sizes(self) -> npt.NDArray[np.integer]:
        """The number of outputs in each set."""
        return np.diff(self.members.indptr)

    def contain(self, y: Any) -> Booleans:
        """Return whether each set contains the row's own output.

        Parameters
        ----------
        y : array-like of n outputs
            The true outputs.

        Returns
        -------
        contained : ndarray of shape (n,)
            Booleans; their mean is the coverage that was reached.
        """
        outputs = self.kernel.check(y)
        if len(outputs) != len(self):
            raise ValueError(
                f"y has {len(outputs)} outputs for {len(self)} sets; pass one for each."
            )
        places = positions_of(outputs, OutputSet(self.kernel, self.candidates))
        rows = np.repeat(np.arange(len(self)), self.sizes)
        contained = np.zeros(len(self), dtype=bool)
        contained[rows[self.members.indices == places[rows]]] = True
        return contained
