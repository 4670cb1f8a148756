"""Cross-validation of partly labelled data: only labelled rows are tested."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.multiclass import type_of_target

from okforest._typing import Ints
from okforest.refit._unlabelled import FORMS, labelled_rows, select


class LabelledKFold(BaseEstimator):
    """Folds of the labelled rows; unlabelled rows are in every training part.

    Pass it as ``cv=`` to scikit-learn's tools to choose parameters of a
    :class:`SemiSupervisedForest`. Class labels are shared out evenly (stratified).

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at most the number of labels of a class.
    shuffle : bool, default=False
        Whether to shuffle the labelled rows first.
    random_state : int, RandomState or None, default=None
        The order, if shuffled.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.refit import LabelledKFold
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in LabelledKFold(2).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None):
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Ints, Ints]]:
        """Return the rows of training and test parts.

        Parameters
        ----------
        X : array-like of n rows
            Inputs; only their number matters.
        y : array-like of n outputs
            Outputs, some of which are missing, as for :class:`SemiSupervisedForest`.
        groups : object, optional
            Ignored.

        Yields
        ------
        train, test : ndarray
            Positions; those of ``test`` are labelled.
        """
        labelled = labelled_rows(y)
        rows = np.flatnonzero(labelled)
        if len(rows) < self.n_splits:
            raise ValueError(
                f"y has {len(rows)} labelled rows, fewer than n_splits={self.n_splits}. {FORMS}"
            )
        known: Any = np.asarray(select(y, rows))
        classes = known.ndim == 1 and known.dtype.kind != "f" and known.dtype.names is None
        if classes and type_of_target(known) in ("binary", "multiclass"):
            folds: Any = StratifiedKFold
        else:
            folds, known = KFold, None
        own = self.random_state if self.shuffle else None
        splits = folds(self.n_splits, shuffle=self.shuffle, random_state=own).split(rows, known)
        everything = np.arange(len(labelled))
        for _, test in splits:
            yield np.setdiff1d(everything, rows[test]), rows[test]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object, optional
            Ignored.

        Returns
        -------
        n_splits : int
            The number.
        """
        return self.n_splits
