"""Which outputs are missing, and cross-validation in which only labelled rows are tested."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.multiclass import type_of_target

from okforest._utils.arrays import Booleans, Ints
from okforest._utils.compat import rows_of
from okforest._utils.errors import warn
from okforest._utils.frames import is_frame
from okforest.kernels import Dirac, OutputKernel

FORMS = (
    "Unlabelled are -1 among integers and class labels, NaN among numbers, None or NA among other "
    "outputs, and masked entries."
)
MARKERS = {"-1", "", "nan", "NaN", "None", "<NA>"}  # texts that were probably meant as missing


def labelled_rows(y: Any, kernel: OutputKernel | None = None) -> Booleans:
    """Return which entries of y are outputs.

    Missing are -1 among integers and, with the Dirac kernel, among labels of any type; NaN (in
    every value of a vector); None and NA among objects; masked entries; and intervals without
    bounds.
    """
    labels = isinstance(kernel, Dirac)
    if isinstance(y, np.ma.MaskedArray):
        masked = _all_or_none(_flat_mask(y), "masked")
        known = np.flatnonzero(~masked)
        found = ~masked
        found[known] = labelled_rows(np.asarray(y.data)[known], kernel)
        return found
    array = np.asarray(y) if is_frame(y) or hasattr(y, "__array__") else _as_array(y)
    if array.dtype.names is not None:
        return np.ones(len(array), dtype=bool)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind == "f":
        return _labelled_floats(array, labels)
    if array.dtype.kind == "i" and array.ndim == 1:
        return np.asarray(array != -1)
    if array.dtype.kind == "O" and array.ndim == 1:
        return np.array([not _is_missing(entry, labels) for entry in array], dtype=bool)
    if array.dtype.kind == "O":
        missing = [[_is_missing(value, False) for value in row] for row in array]
        return ~_all_or_none(np.array(missing, dtype=bool).reshape(len(array), -1), "missing")
    return np.ones(len(array), dtype=bool)


def warn_about_labels(labelled: Booleans, outputs: Any, kernel: OutputKernel) -> None:
    """Warn if outputs that are probably not classes are taken for classes, or the reverse."""
    if not isinstance(kernel, Dirac):
        return
    classes = np.unique(outputs) if outputs.dtype.kind in "biufUT" else outputs[:0]
    if len(classes) == 1 and not labelled.all():
        warn(
            f"all labelled rows have the class {classes[0]}, so no other is ever predicted. -1 "
            "stands for unlabelled rows: if it is a class, rename it, for example with "
            "np.where(y == -1, 0, y).",
        )
    if classes.dtype.kind in "UT" and MARKERS & set(classes.tolist()):
        marker = min(MARKERS & set(classes.tolist()))
        warn(
            f"the text {marker!r} in y is a class like any other. {FORMS}",
        )


def select(y: Any, rows: Any) -> Any:
    """Return some of the outputs, of any collection."""
    if is_frame(y):
        if len(y.columns) == 1:
            return _narrowed(np.asarray(y)[rows, 0])
        return rows_of(y, rows)
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(y.data)[rows]
    if hasattr(y, "__array__"):
        return _narrowed(np.asarray(y)[rows])
    return [y[i] for i in rows]


def _narrowed(kept: Any) -> Any:
    """Return outputs of an array of objects with their own type, if they all have one."""
    if kept.dtype.kind != "O" or not len(kept):
        return kept
    values = kept.ravel().tolist()
    if all(isinstance(value, str) for value in values):
        return kept.astype(str)
    if all(isinstance(value, bool | np.bool_) for value in values):
        return kept.astype(bool)
    if all(isinstance(value, Integral) for value in values):
        return kept.astype(np.int64)
    if all(isinstance(value, Real) for value in values):
        return kept.astype(np.float64)
    return kept


def _labelled_floats(array: Any, labels: bool) -> Booleans:
    values = array.reshape(len(array), -1)
    known = ~_all_or_none(np.isnan(values), "NaN")
    if values.shape[1] == 2:
        known &= ~(np.isneginf(values[:, 0]) & np.isposinf(values[:, 1]))
    elif values.shape[1] == 1 and labels:
        known &= values[:, 0] != -1
    return np.asarray(known)


def _flat_mask(y: Any) -> Booleans:
    mask = np.ma.getmaskarray(y)
    if mask.dtype.names is not None:
        mask = np.column_stack([mask[name] for name in mask.dtype.names])
    return np.asarray(mask.reshape(len(y), -1))


def _all_or_none(missing: Booleans, what: str) -> Booleans:
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        i = int(np.argmax(partly))
        raise ValueError(
            f"y[{i}] is partly {what}; an output is known or missing as a whole. Set all its "
            "values to NaN, or impute them."
        )
    return np.asarray(missing.all(axis=1))


def _as_array(y: Any) -> Any:
    objects = np.empty(len(y), dtype=object)
    for i, entry in enumerate(y):
        objects[i] = entry
    kinds = {type(entry) for entry in objects}
    if kinds <= {int, bool} or kinds <= {int, float}:
        return np.asarray(y)
    return objects


def _is_missing(entry: Any, labels: bool) -> bool:
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(entry, Integral) and not isinstance(entry, bool):
        return entry == -1
    if isinstance(entry, Real):
        return bool(np.isnan(float(entry))) or (labels and entry == -1)
    if isinstance(entry, list | tuple | np.ndarray) and len(entry):
        return all(isinstance(value, float) and value != value for value in entry)
    return False


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
            Positions; the rows of ``test`` are labelled.
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
        seed = self.random_state if self.shuffle else None
        splits = folds(self.n_splits, shuffle=self.shuffle, random_state=seed).split(rows, known)
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
