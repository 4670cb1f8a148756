"""Kernels on rankings of labels: complete, partial, and with ties."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.frames import is_frame
from okforest._utils.parameters import POSITIVE, check_parameters
from okforest.kernels.base import OutputKernel
from okforest.kernels.outputs import Form, in_form, in_order, learnt_form
from okforest.kernels.ranking_forms import (
    check_orders,
    check_separators,
    form_of,
    in_form_of,
    labels_in,
    rankings_from,
    ranks_of,
    read_rankings,
)


class RankingKernel(OutputKernel):
    """A kernel on rankings; subclasses say how two rankings are compared.

    Examples
    --------
    >>> from okforest.kernels import Kendall, RankingKernel
    >>> isinstance(Kendall(), RankingKernel)
    True
    """

    known_psd = True

    def __init__(self, labels: list[Any] | None = None, form: Form | None = None):
        self.labels = labels
        self.form = form

    def check(self, y: Any) -> Outputs:
        """Return ranks as a matrix, orders as an array of tuples, and text as an array of text.

        A kernel that knows the form of the training outputs returns that form.
        """
        outputs = read_rankings(in_order(y, self.labels, self.form))
        named = is_frame(y) and set(y.columns) == set(self.labels or ())
        if outputs.ndim == 2 and self.form in ("text", "orders") and not named:
            example = "'b>a>c'" if self.form == "text" else "('b', 'a', 'c')"
            raise ValueError(
                f"y holds ranks, and the training outputs are {self.form} such as {example}; pass "
                "that form, or a frame of ranks whose columns are the labels."
            )
        if outputs.ndim == 2 and self.labels and outputs.shape[1] != len(self.labels):
            raise ValueError(
                f"y has {outputs.shape[1]} columns; there are {len(self.labels)} labels."
            )
        return in_form_of(outputs, self.form, self.labels)

    def learn_form(self, y: Any) -> Self:
        """Remember whether y holds ranks, text or orders, and the names of a frame's columns."""
        return self._changed(**learnt_form(y, self.labels) | {"form": form_of(y)})

    def in_form(self, outputs: Outputs) -> Any:
        """Return predicted rankings as y was given: ranks in a frame come back in one."""
        return in_form(outputs, self.form, self.labels)

    def resolve(self, y: Outputs) -> Self:
        """Fill in the labels."""
        check_separators(y)
        if self.labels is not None:
            return self._changed()
        check_orders(y)
        return self._changed(labels=labels_in(y))

    def ranks(self, y: Outputs) -> Floats:
        """Return the ranks of the labels, of shape (n, n_labels), NaN where there is none."""
        return ranks_of(y, self._labels(y))

    def rankings_from(self, orders: Any, like: Outputs) -> Outputs:
        """Return rankings in the form of others, from positions of labels, best first."""
        return rankings_from(orders, self._labels(like), like)

    def _changed(self, **changes: Any) -> Self:
        return type(self)(**self.get_params(deep=False) | changes)

    def _labels(self, *outputs: Outputs) -> list[Any]:
        if self.labels is not None:
            return self.labels
        return labels_in(outputs[0] if outputs[0].ndim == 2 else np.concatenate(outputs))


class _RankFeatures(RankingKernel):
    """A ranking kernel with explicit features."""

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        labels = self._labels(y, y if z is None else z)
        first = self._features(ranks_of(y, labels))
        return first @ (first if z is None else self._features(ranks_of(z, labels))).T

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        labels = self._labels(y, z)
        first, second = (self._features(ranks_of(outputs, labels)) for outputs in (y, z))
        return np.einsum("ij,ij->i", first, second)

    def features(self, y: Outputs) -> Floats:
        """Return explicit features."""
        return self._features(self.ranks(y))

    @abstractmethod
    def _features(self, ranks: Floats) -> Floats:
        """Return the features of rankings, given by their ranks."""


class Kendall(_RankFeatures):
    """Kendall's τ: pairs of labels ordered alike, less those ordered differently, as a share.

    A pair that is tied, or has a label without a rank, counts as half of each: it is not known how
    the labels are ordered. The nearest ranking to a prediction is the weighted Kemeny consensus.

    Parameters
    ----------
    labels : list, optional
        The labels; filled in when a model is fitted. They are the names of the columns if y is a
        frame of ranks.
    form : {"ranks", "frame", "polars", "text", "orders"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    References
    ----------
    Y. Jiao, J.-P. Vert, "The Kendall and Mallows kernels for permutations", ICML 2015.

    Examples
    --------
    >>> from okforest.kernels import Kendall
    >>> kernel = Kendall()
    >>> kernel(kernel.check(["a>b>c", "b>a>c", "c>b>a"])).round(3)
    array([[ 1.   ,  0.333, -1.   ],
           [ 0.333,  1.   , -0.333],
           [-1.   , -0.333,  1.   ]])
    """

    default_decoder = "kemeny"

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of pairs of labels."""
        n_labels = len(self._labels(y))
        return n_labels * (n_labels - 1) // 2

    def _features(self, ranks: Floats) -> Floats:
        """Return 1 for pairs of labels in order, -1 for others, and 0 if the order is unknown."""
        signs = pair_signs(ranks)
        return signs / np.sqrt(max(1, signs.shape[1]))


class Spearman(_RankFeatures):
    """Spearman's ρ: the correlation of ranks.

    Labels without a rank may be anywhere: ranks are replaced by their means over all complete
    rankings that agree with the partial one. The nearest ranking to a prediction sorts labels by
    their mean rank.

    Parameters
    ----------
    labels : list, optional
        The labels; filled in when a model is fitted. They are the names of the columns if y is a
        frame of ranks.
    form : {"ranks", "frame", "polars", "text", "orders"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    Examples
    --------
    >>> from okforest.kernels import Spearman
    >>> kernel = Spearman()
    >>> kernel(kernel.check(["a>b>c", "b>a>c", "c>b>a"])).round(3)
    array([[ 1. ,  0.5, -1. ],
           [ 0.5,  1. , -0.5],
           [-1. , -0.5,  1. ]])
    """

    default_decoder = "borda"

    def feature_dim(self, y: Outputs) -> int:
        """Return the number of labels."""
        return len(self._labels(y))

    def _features(self, ranks: Floats) -> Floats:
        """Return the expected ranks, centred, of norm one for a complete ranking without ties."""
        n_labels = ranks.shape[1]
        scale = np.sqrt(max(1.0, n_labels * (n_labels**2 - 1.0) / 12.0))
        return expected_ranks(ranks) / scale


class Mallows(RankingKernel):
    """exp(−λ d), with d the number of pairs of labels that two rankings order differently.

    A pair that only one of the two orders counts as a quarter of a difference.

    Parameters
    ----------
    rate : float, default=0.1
        The rate λ.
    labels : list, optional
        The labels; filled in when a model is fitted. They are the names of the columns if y is a
        frame of ranks.
    form : {"ranks", "frame", "polars", "text", "orders"}, optional
        The form of y, in which predictions are returned; filled in when a model is fitted.

    References
    ----------
    Y. Jiao, J.-P. Vert, "The Kendall and Mallows kernels for permutations", ICML 2015.

    Examples
    --------
    >>> from okforest.kernels import Mallows
    >>> kernel = Mallows(rate=0.5)
    >>> kernel(kernel.check(["a>b>c", "b>a>c", "c>b>a"])).round(3)
    array([[1.   , 0.607, 0.223],
           [0.607, 1.   , 0.368],
           [0.223, 0.368, 1.   ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"rate": [POSITIVE]}

    def __init__(
        self, rate: float = 0.1, labels: list[Any] | None = None, form: Form | None = None
    ):
        super().__init__(labels, form)
        self.rate = rate

    def resolve(self, y: Outputs) -> Self:
        """Check the rate, and fill in the labels."""
        check_parameters(self)
        return super().resolve(y)

    def __call__(self, y: Outputs, z: Outputs | None = None) -> Floats:
        """Return the Gram matrix."""
        labels = self._labels(y, y if z is None else z)
        first = pair_signs(ranks_of(y, labels))
        second = first if z is None else pair_signs(ranks_of(z, labels))
        squares = np.add.outer((first**2).sum(axis=1), (second**2).sum(axis=1))
        return np.exp(-self.rate / 4.0 * (squares - 2.0 * first @ second.T))

    def diag(self, y: Outputs) -> Floats:
        """Return ones."""
        return np.ones(len(y))

    def pairs(self, y: Outputs, z: Outputs) -> Floats:
        """Return k(y_i, z_i)."""
        labels = self._labels(y, z)
        first, second = (pair_signs(ranks_of(outputs, labels)) for outputs in (y, z))
        return np.exp(-self.rate / 4.0 * ((first - second) ** 2).sum(axis=1))


def pair_signs(ranks: Floats) -> Floats:
    """Return the sign of r_j − r_i for pairs of labels i < j, 0 where a rank is missing."""
    i, j = np.triu_indices(ranks.shape[1], k=1)
    return np.nan_to_num(np.sign(ranks[:, j] - ranks[:, i]), nan=0.0)


def expected_ranks(ranks: Floats) -> Floats:
    """Return the mean ranks over all completions of partial rankings, less their mean."""
    n_labels = ranks.shape[1]
    n_ranked = (~np.isnan(ranks)).sum(axis=1, keepdims=True)
    centre = (n_labels + 1.0) / 2.0
    return np.nan_to_num(ranks * (n_labels + 1.0) / (n_ranked + 1.0) - centre, nan=0.0)
