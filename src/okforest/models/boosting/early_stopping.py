"""When rounds no longer reduce the validation loss."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EarlyStopping:
    """Stops when the last rounds have not reduced the validation loss by enough.

    Parameters
    ----------
    n_iter_no_change : int
        The number of last rounds that are compared with all before.
    tol : float
        The reduction that is not enough, as a fraction of the loss of the mean.

    Examples
    --------
    >>> from okforest.models.boosting.early_stopping import EarlyStopping
    >>> stopping = EarlyStopping(n_iter_no_change=2, tol=0.1)
    >>> stopping.reached([10.0, 6.0, 5.5])
    False
    >>> stopping.reached([10.0, 6.0, 5.5, 5.2])
    True
    """

    n_iter_no_change: int
    tol: float

    def reached(self, losses: Sequence[float]) -> bool:
        """Return whether to stop, given the losses of the mean and of all rounds so far."""
        n = self.n_iter_no_change
        if len(losses) <= n:
            return False
        return min(losses[-n:]) >= min(losses[:-n]) - self.tol * losses[0]
