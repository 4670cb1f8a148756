"""Kernels on sets of labels: the outputs of multi-label classification."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Booleans, Floats, Outputs, check_sparse, like
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import (
    Form,
    array_of_objects,
    check_collection,
    in_form,
    in_order,
    learnt_form,
    read_array,
)


def predict_proba(self: Any, X: Any) -> Floats:
    """Return the probabilities of the labels: the total weights of the training outputs with each.

    Weights of boosting and ridge regression may be negative; probabilities are clipped to between
    zero and one.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Inputs.

    Returns
    -------
    P : ndarray of shape (n, n_labels)
        One column for each of ``classes_``, with a probability of its own.
    """
    span, W = self.span_, self._checked_weights(X)
    if span.features is not None and hasattr(span.kernel, "marginals"):
        P = span.kernel.marginals(W.feature_sums(span))
    else:
        P = W @ span.kernel.indicators(span.outputs)
    return like(np.clip(P, 0.0, 1.0), X)


def _classes(model: Any) -> Outputs:
    kernel = vars(model).get("kernel_")
    if not isinstance(kernel, LabelSetKernel):
        raise AttributeError("there are no classes_: the model is not fitted with this kernel.")
    return array_of_objects(list(kernel.labels or []))


AS_SETS = "pass sets, such as [set(labels) for labels in y], or a matrix of 0 and 1"
SEPARATORS = ";,|> "


class LabelSetKernel(OutputKernel):
    """A kernel on sets of labels; subclasses say how two sets are compared.

    Models with such a kernel have the method ``predict_proba(X)``, with a column for each label,
    and the attribute ``classes_``, the labels.

    Examples
    --------
    >>> from okforest.kernels import Jaccard, LabelSetKernel
    >>> isinstance(Jaccard(), LabelSetKernel)
    True
    """

    known_psd = True
    methods: ClassVar[Mapping[str, Any]] = {
        "predict_proba": predict_proba,
        "classes_": property(_classes),
    }

    def __init__(
        self, weights: Any = None, labels: list[Any] | None = None, form: Form | None = None
    ):
        self.weights = weights
        self.labels = labels
        self.form = form

    def check(self, y: Any) -> Outputs:
        """Return sets as an array of frozensets, and indicators as a matrix of 0 and 1."""
        outputs = read_label_sets(in_order(y, self.labels, self.form))
        if outputs.dtype != object and self.labels and outputs.shape[1] != len(self.labels):
            raise ValueError(
                f"y has {outputs.shape[1]} columns; there are {len(self.labels)} labels."
            )
        return outputs

    def learn_form(self, y: Any) -> Self:
        """Remember whether y is an array, a sparse matrix or a frame, and the names of labels."""
        return self._changed(**learnt_form(y, self.labels))

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted sets as y was given: as sets, an array, a sparse matrix or a frame."""
        return in_form(outputs, self.form, self.labels)

    def resolve(self, y: Outputs) -> Self:
        """Fill in the labels, and check the weights."""
        labels = self.labels
        if labels is None:
            is_sets = y.dtype == object
            labels = sorted_labels(y) if is_sets else list(range(y.shape[1]))
        if not labels:
            raise ValueError("every set in y is empty; at least one must have a label.")
        read_weights(self.weights, labels)
        return self._changed(labels=labels)

    def indicators(self, y: Outputs) -> Floats:
        """Return which of the labels each output has, of shape (n, n_labels)."""
        return indicators_of(y, self._labels(y))[0]

    def outputs_from(self, present: Booleans, like: Outputs) -> Outputs:
        """Return the sets of the labels present in each row, in the form of other outputs."""
        return outputs_from(present, self._labels(like), like)

    def _labels(self, y: Outputs) -> list[Any]:
        if self.labels is not None:
            return self.labels
        return sorted_labels(y) if y.dtype == object else list(range(y.shape[1]))

    def _changed(self, **changes: Any) -> Self:
        return type(self)(**self.get_params(deep=False) | changes)

    def _weighted(
        self, y: Outputs, z: Outputs
    ) -> tuple[Floats, Floats, list[frozenset[Any]], list[frozenset[Any]], Floats]:
        """Return the indicators of two arrays of sets, their other labels, and the weights."""
        labels = self.labels
        if labels is None:
            both = np.concatenate([y, z]) if y.dtype == object else y
            labels = self._labels(both)
        first, others = indicators_of(y, labels)
        second, more = (first, others) if z is y else indicators_of(z, labels)
        return first, second, others, more, read_weights(self.weights, labels)


class Hamming(LabelSetKernel):
    """The weighted share of labels on which two sets agree: present in both, or in neither.

    Half the squared distance in feature space is the Hamming loss. Trees are those of the linear
    kernel on indicators, and the nearest set to a prediction has the labels of probability above
    one half.

    Parameters
    ----------
    weights : dict or array-like of shape (n_labels,), optional
        Positive weights of the labels, by label or in the order of ``labels``; 1 by default.
    labels : list, optional
        The labels, sorted; filled in when a model is fitted. They are the names of the columns if
        y is a frame, and positions of columns if it is a matrix without names.
    form : {"array", "sparse", "frame", "polars"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    Examples
    --------
    >>> from okforest.kernels import Hamming
    >>> kernel = Hamming()
    >>> kernel(kernel.check([{"sea", "sand"}, {"sea"}, set()]))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """

    default_decoder = "expected_jaccard"

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        z = y if z is None else z
        first, second, others, more, weight = self._weighted(y, z)
        share = weight / weight.sum()
        K = ((2.0 * first - 1.0) * share) @ (2.0 * second - 1.0).T
        K += 1.0
        K *= 0.5
        for i, j, n_shared in _shared(others, more):
            K[i, j] += 2.0 * n_shared * share.mean()
        return K

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        first, second, others, more, weight = self._weighted(y, z)
        share = weight / weight.sum()
        values = (first == second) @ share
        if others and more:
            shared = [len(u & v) for u, v in zip(others, more, strict=True)]
            values += 2.0 * share.mean() * np.array(shared)
        return values

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of labels, plus one for a constant."""
        return len(self._labels(y)) + 1

    def features(self, y: Outputs) -> Floats:
        """Return a constant, and ±1 for each label, weighted; other labels have no feature."""
        labels = self._labels(y)
        weight = read_weights(self.weights, labels)
        features = np.empty((len(y), len(labels) + 1))
        features[:, 0] = np.sqrt(0.5)
        signs = features[:, 1:]  # changed in place: there may be thousands of labels
        signs[:] = y if y.dtype != object else indicators_of(y, labels)[0]
        signs *= 2.0
        signs -= 1.0
        signs *= np.sqrt(0.5 * weight / weight.sum())
        return features

    def marginals(self, sums: Floats) -> Floats:
        """Return Σ w_i [label in y_i] from the sums Σ w_i φ(y_i) of features."""
        assert self.labels is not None, "resolve first"
        weight = read_weights(self.weights, self.labels)
        signs = sums[:, 1:] / np.sqrt(0.5 * weight / weight.sum())
        return 0.5 * (signs + sums[:, :1] / np.sqrt(0.5))


class _Overlap(LabelSetKernel):
    """A ratio of the weight of the labels that two sets share and of their sizes."""

    @abstractmethod
    def _ratio(self, shared: Floats, sizes: Floats) -> Floats:
        """Return the kernel from the size of intersections and the sum of the two sizes."""

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        z = y if z is None else z
        first, second, others, more, weight = self._weighted(y, z)
        shared = (first * weight) @ second.T
        for i, j, n_shared in _shared(others, more):
            shared[i, j] += n_shared * weight.mean()
        sizes = np.add.outer(_sizes(first, others, weight), _sizes(second, more, weight))
        return self._ratio(shared, sizes)

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return np.ones(len(y))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        first, second, others, more, weight = self._weighted(y, z)
        shared = (first * second) @ weight
        if others and more:
            extra = [len(u & v) for u, v in zip(others, more, strict=True)]
            shared += weight.mean() * np.array(extra)
        return self._ratio(shared, _sizes(first, others, weight) + _sizes(second, more, weight))


class Jaccard(_Overlap):
    """The weight of the labels that two sets share, divided by that of the labels in either.

    Two empty sets are equal: the kernel is 1.

    Parameters
    ----------
    weights : dict or array-like of shape (n_labels,), optional
        Positive weights of the labels, by label or in the order of ``labels``; 1 by default.
    labels : list, optional
        The labels, sorted; filled in when a model is fitted.
    form : {"array", "sparse", "frame", "polars"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    Examples
    --------
    >>> from okforest.kernels import Jaccard
    >>> kernel = Jaccard()
    >>> kernel(kernel.check([{"sea", "sand"}, {"sea"}, set()]))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    def _ratio(self, shared: Floats, sizes: Floats) -> Floats:
        either = sizes - shared
        return np.divide(shared, either, out=np.ones_like(shared), where=sizes > 0)


class Dice(_Overlap):
    """Twice the weight of the labels that two sets share, divided by the sum of their weights.

    It is the F1 score of one set as a prediction of the other. Two empty sets are equal: the kernel
    is 1.

    Parameters
    ----------
    weights : dict or array-like of shape (n_labels,), optional
        Positive weights of the labels, by label or in the order of ``labels``; 1 by default.
    labels : list, optional
        The labels, sorted; filled in when a model is fitted.
    form : {"array", "sparse", "frame", "polars"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    Examples
    --------
    >>> from okforest.kernels import Dice
    >>> kernel = Dice()
    >>> kernel(kernel.check([{"sea", "sand"}, {"sea"}, set()])).round(3)
    array([[1.   , 0.667, 0.   ],
           [0.667, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    default_decoder = "expected_jaccard"

    def _ratio(self, shared: Floats, sizes: Floats) -> Floats:
        return np.divide(2.0 * shared, sizes, out=np.ones_like(shared), where=sizes > 0)


def _sizes(present: Floats, others: list[frozenset[Any]], weight: Floats) -> Floats:
    sizes = present @ weight
    if others:
        sizes += weight.mean() * np.array([len(labels) for labels in others])
    return sizes


def _shared(others: list[frozenset[Any]], more: list[frozenset[Any]]) -> list[tuple[int, int, int]]:
    """Return the pairs of sets that share labels that were not in the training sets."""
    rows = [(i, labels) for i, labels in enumerate(others) if labels]
    columns = [(j, labels) for j, labels in enumerate(more) if labels]
    return [(i, j, len(u & v)) for i, u in rows for j, v in columns if u & v]


def read_label_sets(y: Any) -> Outputs:
    """Return sets as an array of frozensets, and anything else as a matrix of 0 and 1."""
    if sp.issparse(y):
        matrix: Any = y
        check_sparse(matrix, "y")
        return _check_indicators(matrix.toarray())
    y = check_collection(y)
    if not hasattr(y, "__array__"):
        y = list(y)
        if any(isinstance(labels, set | frozenset | str) for labels in y):
            return _read_sets(y)
    elif np.ndim(y) == 1 and np.asarray(y).dtype.kind in "OUT":
        return _read_sets(np.asarray(y).tolist())
    try:
        return _check_indicators(read_array(y))
    except ValueError as error:
        if "different lengths" not in str(error):
            raise
        raise ValueError(f"y holds rows of different lengths; {AS_SETS}.") from None


def _read_sets(y: Sequence[Any]) -> Outputs:
    for labels in y:
        if isinstance(labels, str):
            raise ValueError(_explain_text(labels, y))
        if not isinstance(labels, set | frozenset):
            raise ValueError(f"y holds {labels!r} among sets of labels; {AS_SETS}.")
    if any("" in labels for labels in y):
        raise ValueError(
            "y holds the label '', as splitting an empty text gives; an empty set has no labels: "
            "[labels - {''} for labels in y]."
        )
    return array_of_objects([frozenset(labels) for labels in y])


def _explain_text(text: str, y: Sequence[Any]) -> str:
    """Say how to make sets of text such as "a;b"; set("a;b") has the labels "a", ";" and "b"."""
    texts = [labels for labels in y if isinstance(labels, str)]
    counts = {one: sum(one in labels for labels in texts) for one in SEPARATORS}
    separator = max(counts, key=lambda one: counts[one])
    if not counts[separator]:
        return (
            f"y holds the text {text!r} among sets of labels. If a row has one label, use "
            "kernel=\"dirac\"; if it may have several, pass sets, such as {'a', 'b'}."
        )
    example = next(labels for labels in texts if separator in labels)
    return (
        f"y holds text such as {example!r}; split it into sets of labels: "
        f"[set(text.split({separator!r})) - {{''}} for text in y]. A missing text has no labels: "
        "replace it by '' first, y.fillna('') for a series."
    )


def _check_indicators(matrix: Outputs) -> Outputs:
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(
            f"y has shape {matrix.shape}; label sets are a matrix of 0 and 1 with one column per "
            "label, or a list of sets."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"y holds values such as {matrix.flat[0]!r}; {AS_SETS}.")
    wrong = matrix[(matrix != 0) & (matrix != 1)]
    if len(wrong):
        raise ValueError(
            f"y holds the value {wrong[0]}; a matrix of label sets holds 1 where a row has a "
            "label, and 0 elsewhere."
        )
    return matrix


def sorted_labels(sets: Iterable[frozenset[Any]]) -> list[Any]:
    """Return the different labels of some sets, sorted; those of different types by type."""
    labels = frozenset().union(*sets)
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def indicators_of(outputs: Outputs, labels: Sequence[Any]) -> tuple[Floats, list[frozenset[Any]]]:
    """Return which labels each output has, of shape (n, n_labels), and its other labels."""
    if outputs.dtype != object:
        return outputs.astype(np.float64), []
    column = {label: j for j, label in enumerate(labels)}
    present = np.zeros((len(outputs), len(column)))
    others = []
    for i, output in enumerate(outputs):
        known = [column[label] for label in output if label in column]
        present[i, known] = 1.0
        others.append(
            frozenset() if len(known) == len(output) else output.difference(column.keys())
        )
    return present, others if any(others) else []


def outputs_from(present: Booleans, labels: Sequence[Any], like: Outputs) -> Outputs:
    """Return label sets in the canonical form of other outputs."""
    if like.dtype != object:
        return present.astype(like.dtype)
    return array_of_objects(
        [frozenset(labels[j] for j in np.flatnonzero(row).tolist()) for row in present]
    )


def read_weights(weights: Any, labels: Sequence[Any]) -> Floats:
    """Return the positive weight of every label."""
    if weights is None:
        return np.ones(len(labels))
    if isinstance(weights, Mapping):
        missing = [label for label in labels if label not in weights]
        if missing:
            others = [label for label in weights if label not in labels]
            unused = f" Its entry {others[0]!r} is not a label of y." if others else ""
            raise ValueError(
                f"weights has no entry for the label {missing[0]!r}; give every label a weight."
                f"{unused}"
            )
        weights = [weights[label] for label in labels]
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(labels),):
        raise ValueError(
            f"weights has shape {values.shape} for {len(labels)} labels; pass one weight per "
            "label, or a dict of weights by label."
        )
    if not ((values > 0) & np.isfinite(values)).all():
        raise ValueError(f"weights holds {values.min():.4g}; every weight must be positive.")
    return values
