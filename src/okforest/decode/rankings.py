"""From weights to rankings of labels: the Borda and Kemeny consensus of weighted rankings."""

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.compat import Interval
from okforest._utils.parameters import check_parameters
from okforest.decode.base import Decoder, Need
from okforest.kernels import OutputKernel, RankingKernel, Spearman
from okforest.kernels.base import describe_kernel
from okforest.kernels.rankings import expected_ranks, pair_signs
from okforest.weights import Span, WeightMatrix, as_weights

Orders = npt.NDArray[np.intp]

BLOCK_VALUES = 2**22  # values of a block of predictions
ROUNDING = 1e-12  # sums of weights that differ by less are equal


def ranking_kernel(kernel: OutputKernel) -> RankingKernel | None:
    """Return the kernel, or the first part of a composed kernel, that is on rankings."""
    if isinstance(kernel, RankingKernel):
        return kernel
    parts = kernel.get_params(deep=False).values()
    found = (ranking_kernel(part) for part in parts if isinstance(part, OutputKernel))
    return next((part for part in found if part is not None), None)


def _rankings(span: Span) -> RankingKernel:
    kernel = ranking_kernel(span.kernel)
    assert kernel is not None, "check first"
    return kernel


class RankingDecoder(Decoder):
    """A decoder whose outputs are complete rankings without ties.

    Examples
    --------
    >>> from okforest.decode import Kemeny, RankingDecoder
    >>> isinstance(Kemeny(), RankingDecoder)
    True
    """

    def check(self, span: Span) -> None:
        """Check that outputs are rankings."""
        if ranking_kernel(span.kernel) is None:
            raise ValueError(
                f"{type(self).__name__} predicts rankings, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto', "
                "or a kernel on rankings such as Kendall()."
            )

    def decode(self, W: WeightMatrix, span: Span) -> Outputs:
        """Return one ranking for each row of W."""
        return _rankings(span).rankings_from(self.orders(as_weights(W), span), span.outputs)

    @abstractmethod
    def orders(self, W: WeightMatrix, span: Span) -> Orders:
        """Return the positions of labels, most preferred first, of shape (n, n_labels)."""


class Borda(RankingDecoder):
    """Labels sorted by their weighted mean rank: exact for the Spearman kernel.

    Labels without a rank count with their mean rank over all completions of a ranking. Of equals,
    the first label comes first.

    Examples
    --------
    >>> from okforest.decode import Borda
    >>> from okforest.kernels import Spearman
    >>> from okforest.weights import Span
    >>> kernel = Spearman()
    >>> y = kernel.check(["a>b>c", "b>a>c", "c>b>a"])
    >>> Borda().decode([[0.5, 0.3, 0.2]], Span(kernel.resolve(y), y))
    array(['a>b>c'], dtype=object)
    """

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features are the ranks."""
        are_ranks = isinstance(span.kernel, Spearman) and span.features is not None
        return frozenset(() if are_ranks else {"weights"})

    def orders(self, W: WeightMatrix, span: Span) -> Orders:
        """Return the labels by their mean rank."""
        if self.needs(span):
            return _by_mean_rank(W @ _kept_ranks(span))
        return _by_mean_rank(W.feature_sums(span))


def _by_mean_rank(means: Floats) -> Orders:
    scale = np.abs(means).max(axis=1, keepdims=True) + 1.0
    return np.argsort(np.round(means / scale, 12), axis=1, kind="stable")


class Kemeny(RankingDecoder):
    """The ranking with the largest weight of pairs of labels ordered alike, less differently.

    It is exact for the Kendall kernel. For up to ``max_exact`` labels, dynamic programming over
    subsets of labels finds the best of all rankings. For more, a local search starts at the Borda
    ranking, and moves single labels while that increases the weight.

    Parameters
    ----------
    max_exact : int, default=11
        The number of labels up to which the search is exact. Its cost doubles with each label.

    Examples
    --------
    >>> from okforest.decode import Kemeny
    >>> from okforest.kernels import Kendall
    >>> from okforest.weights import Span
    >>> kernel = Kendall()
    >>> y = kernel.check(["a>b>c", "b>c>a", "c>a>b"])
    >>> Kemeny().decode([[0.4, 0.35, 0.25]], Span(kernel.resolve(y), y))
    array(['a>b>c'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_exact": [Interval(Integral, 1, 16, closed="both")]
    }

    def __init__(self, max_exact: int = 11):
        self.max_exact = max_exact

    def check(self, span: Span) -> None:
        """Check that outputs are rankings, and the parameter."""
        super().check(span)
        check_parameters(self)

    def orders(self, W: WeightMatrix, span: Span) -> Orders:
        """Return the best order of each prediction."""
        ranks = _kept_ranks(span)
        n_labels = ranks.shape[1]
        preferences = _preferences(W @ _signs(span, n_labels), n_labels)
        start = _by_mean_rank(W @ ranks)
        if n_labels > self.max_exact:
            return np.array(
                [_local_search(M, o) for M, o in zip(preferences, start, strict=True)]
            ).reshape(-1, n_labels)
        size = max(1, BLOCK_VALUES // 2 ** (n_labels + 3))
        blocks = [slice(i, i + size) for i in range(0, len(preferences), size)]
        exact = np.concatenate([_best_orders(preferences[block]) for block in blocks])
        # Of equals the Borda ranking, if it is one of them.
        better = _values(preferences, exact) - _values(preferences, start)
        scale = np.abs(preferences).sum(axis=(1, 2))
        return np.where((better > ROUNDING * scale)[:, None], exact, start)


def _kept_ranks(span: Span) -> Floats:
    """Return the expected ranks of the training outputs, computed once."""
    return span.kept("expected ranks", lambda: expected_ranks(_rankings(span).ranks(span.outputs)))


def _signs(span: Span, n_labels: int) -> Floats:
    """Return the signs of pairs of the training outputs, computed once unless they are large."""

    def compute() -> Floats:
        return pair_signs(_rankings(span).ranks(span.outputs))

    is_small = len(span) * n_labels * (n_labels - 1) // 2 <= BLOCK_VALUES
    return span.kept("pair signs", compute) if is_small else compute()


def _preferences(signs: Floats, n_labels: int) -> Floats:
    """Return M of shape (n, n_labels, n_labels): the gain of placing label i before label j."""
    M = np.zeros((len(signs), n_labels, n_labels))
    i, j = np.triu_indices(n_labels, k=1)
    M[:, i, j] = signs
    M[:, j, i] = -signs
    return M


def _values(M: Floats, orders: Orders) -> Floats:
    """Return the total gain of each order."""
    rows = np.arange(len(M))[:, None, None]
    ordered = M[rows, orders[:, :, None], orders[:, None, :]]
    return np.asarray(np.triu(ordered, k=1).sum(axis=(1, 2)))


def _best_orders(M: Floats) -> Orders:
    """Return the best order of each row: best[S] is the best gain of the labels in S, placed first.

    The last label of S gains its preferences over all others in S.
    """
    n, n_labels, _ = M.shape
    best = np.full((1 << n_labels, n), -np.inf)
    last = np.zeros((1 << n_labels, n), dtype=np.int8)
    best[0] = 0.0
    # over[j, S]: the gain of placing j after the labels of S, built from the highest label of S.
    over = np.zeros((n_labels, 1 << n_labels, n))
    for low in reversed(range(n_labels)):
        step = 2 << low
        over[:, 1 << low :: step] = over[:, ::step] + M[:, low, :].T[:, None]
    subsets = np.arange(1 << n_labels)
    size = sum(subsets >> j & 1 for j in range(n_labels))
    for k in range(1, n_labels + 1):
        for j in range(n_labels):
            S = subsets[(size == k) & (subsets >> j & 1 == 1)]
            rest = S ^ (1 << j)
            value = best[rest] + over[j, rest]
            better = value > best[S]
            best[S] = np.where(better, value, best[S])
            last[S] = np.where(better, j, last[S])
    orders = np.empty((n, n_labels), dtype=np.intp)
    left = np.full(n, (1 << n_labels) - 1)
    for place in reversed(range(n_labels)):
        orders[:, place] = last[left, np.arange(n)]
        left = left ^ (1 << orders[:, place])
    return orders


def _local_search(M: Floats, order: Orders) -> Orders:
    """Move single labels to better places until no move increases the gain."""
    order = order.copy()
    tolerance = ROUNDING * np.abs(M).sum()
    improved = True
    while improved:
        improved = False
        for label in order.copy():
            others = order[order != label]
            # gains[p]: of placing the label before others[p], less placing it first.
            before = M[label, others]
            gains = np.concatenate([[0.0], np.cumsum(-2.0 * before)])
            place = int(np.flatnonzero(order == label)[0])
            target = int(np.argmax(gains))
            if gains[target] > gains[place] + tolerance:
                order = np.insert(others, target, label)
                improved = True
    return order
