"""From weights to sets of classes that contain the ancestors of their classes."""

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from okforest._utils.arrays import Booleans, Floats
from okforest._utils.compat import StrOptions
from okforest._utils.parameters import check_parameters
from okforest.decode.base import Need
from okforest.decode.label_sets import (
    BLOCK_VALUES,
    ROUNDING,
    LabelSetDecoder,
    label_set_kernel,
    marginals,
    marginals_need,
)
from okforest.kernels import Hierarchy
from okforest.kernels.base import describe_kernel
from okforest.weights import Span, WeightMatrix, as_weights

CAPACITY = 2**30 - 1  # of arcs of a flow, which SciPy takes as 32-bit integers


class Hierarchical(LabelSetDecoder):
    """The set of classes, closed under ancestors, of the largest F1 score for the expected set.

    p_c is the probability of class c and ω_c its weight in the kernel. A set h is compared with the
    probabilities by F(h) = 2 Σ_{c in h} ω_c p_c / (Σ_{c in h} ω_c + Σ_c ω_c p_c), which is
    the F1 score if they are 0 and 1. The best set has the classes whose probability exceeds half of
    its own score: few where predictions are certain, more where they are not. An empty set is
    predicted where its probability is larger than the score.

    With a number as the threshold, the set has the largest gain Σ_c (p_c − threshold) ω_c instead;
    with 0.5 it is the set nearest to the prediction in feature space, which is empty if
    no class has a probability above one half.

    Both are exact. If no class is more probable than its parents, as in forests, the best set has
    all classes above a threshold. Weights of boosting and ridge regression may be negative: then a
    class may have to take its ancestors along, and the best set is found by dynamic programming on
    a tree and by a minimum cut on other hierarchies.

    Parameters
    ----------
    threshold : "f1" or float, default="f1"
        The probability above which a class is predicted; "f1" chooses it for each prediction.

    See Also
    --------
    ExpectedJaccard : Predicts a training set: more exact matches, and better for single paths.

    Examples
    --------
    >>> from okforest.decode import Hierarchical
    >>> from okforest.kernels import Hierarchy
    >>> from okforest.weights import Span
    >>> kernel = Hierarchy()
    >>> y = kernel.check(["1/1", "1/2", "1/3", "2"])
    >>> span = Span(kernel.resolve(y), y)
    >>> [sorted(s) for s in Hierarchical().decode([[0.2, 0.2, 0.2, 0.4]], span)]
    [['1', '2']]
    >>> [sorted(s) for s in Hierarchical(0.5).decode([[0.2, 0.2, 0.2, 0.4]], span)]
    [['1']]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"threshold": [Real, StrOptions({"f1"})]}

    def __init__(self, threshold: float | Literal["f1"] = "f1"):
        self.threshold = threshold

    def check(self, span: Span) -> None:
        """Check the threshold, and that outputs are classes of a hierarchy."""
        check_parameters(self)
        if not isinstance(label_set_kernel(span), Hierarchy):
            raise ValueError(
                f"{type(self).__name__} predicts classes of a hierarchy, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto', or kernel=Hierarchy(...)."
            )

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the explicit features have the probabilities."""
        return marginals_need(span)

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the classes of each prediction."""
        W = as_weights(W)
        weight, parents = span.kept("classes", lambda: _classes(span))
        chosen = np.empty((W.shape[0], len(parents)), dtype=bool)
        size = max(1, BLOCK_VALUES // len(parents))
        for start in range(0, W.shape[0], size):
            P = marginals(W[start : start + size], span)
            if isinstance(self.threshold, str):
                chosen[start : start + size] = _largest_f1(P, weight, parents)
            else:
                chosen[start : start + size] = _above(P, self.threshold, weight, parents)
        return chosen


def _classes(span: Span) -> tuple[Floats, list[list[int]]]:
    """Return the weight and the parents of every class."""
    kernel = label_set_kernel(span)
    assert isinstance(kernel, Hierarchy), "check first"
    column = {name: j for j, name in enumerate(kernel.labels or [])}
    parents = [[column[p] for p in above] for above in kernel.hierarchy().values()]
    return kernel.weight_of_classes(), parents


def _above(P: Floats, threshold: float, weight: Floats, parents: list[list[int]]) -> Booleans:
    """Return the closed set of the largest gain of each row."""
    chosen = P - threshold > ROUNDING
    rows = np.flatnonzero(_is_open(chosen, parents))
    if len(rows):
        chosen[rows] = best_closed_sets((P[rows] - threshold) * weight, parents)
    return chosen


def _largest_f1(P: Floats, weight: Floats, parents: list[list[int]]) -> Booleans:
    """Return the closed set of the largest score of each row, by the method of Dinkelbach.

    The set of the largest ratio is that of the largest gain above half of this ratio. Rows whose
    best set among all sets is closed need no more than thresholds.
    """
    general = [j for j, above in enumerate(parents) if not above]
    not_empty = np.clip(P[:, general].sum(axis=1), ROUNDING, 1.0)
    size = np.maximum(P @ weight, 0.0) / not_empty  # expected, of sets that are not empty

    def score(chosen: Booleans, P: Floats, size: Floats) -> Floats:
        gain = np.where(chosen, P, 0.0) @ weight
        total = chosen @ weight + size
        return np.divide(2.0 * gain, total, out=np.zeros(len(P)), where=total > 0)

    best, value = np.zeros(P.shape, dtype=bool), np.zeros(len(P))
    rows = np.arange(len(P))
    while len(rows):
        chosen = P[rows] > value[rows, None] / 2 + ROUNDING
        found = score(chosen, P[rows], size[rows])
        better = found > value[rows] + ROUNDING
        rows = rows[better]
        best[rows], value[rows] = chosen[better], found[better]
    rows = np.flatnonzero(_is_open(best, parents))
    threshold = value[rows] / 2
    best[rows], value[rows] = False, 0.0
    while len(rows):
        chosen = best_closed_sets((P[rows] - threshold[:, None]) * weight, parents)
        found = score(chosen, P[rows], size[rows])
        better = found > value[rows] + ROUNDING
        best[rows[better]], value[rows[better]] = chosen[better], found[better]
        # The first threshold may be too large, as the set that it comes from is not closed.
        again = better | (threshold > value[rows] / 2)
        rows = rows[again]
        threshold = value[rows] / 2
    best[value <= 1.0 - not_empty + ROUNDING] = False
    return best


def _is_open(chosen: Booleans, parents: list[list[int]]) -> Booleans:
    """Return which rows have a class without one of its parents."""
    child = np.repeat(np.arange(len(parents)), [len(above) for above in parents])
    parent = np.array([p for above in parents for p in above], dtype=np.intp)
    lacks: Booleans = np.any(chosen[:, child] & ~chosen[:, parent], axis=1)
    return lacks


def best_closed_sets(gains: Floats, parents: list[list[int]]) -> Booleans:
    """Return the set of the largest total gain of each row that has the parents of its classes."""
    if all(len(above) <= 1 for above in parents):
        return _best_in_tree(gains, parents)
    return np.array([_best_by_cut(row, parents) for row in gains])


def _best_in_tree(gains: Floats, parents: list[list[int]]) -> Booleans:
    """Take a branch if the gain of its class and of its own best branches is positive."""
    order = _ancestors_first(parents)
    total = gains.T.copy()
    for j in reversed(order):
        for parent in parents[j]:
            total[parent] += np.maximum(total[j], 0.0)
    chosen = total > ROUNDING
    for j in order:
        for parent in parents[j]:
            chosen[j] &= chosen[parent]
    return chosen.T


def _best_by_cut(gains: Floats, parents: list[list[int]]) -> Booleans:
    """Find the closed set of the largest gain: what remains with the source of a minimum cut."""
    n = len(gains)
    if gains.max() <= ROUNDING:
        return np.zeros(n, dtype=bool)
    scale = (CAPACITY // 2) / np.abs(gains).sum()
    units = np.round(gains * scale).astype(np.int64)
    source, sink = n, n + 1
    arcs: list[tuple[int, int, int]] = []
    for j, unit in enumerate(units.tolist()):
        if unit > 0:
            arcs.append((source, j, unit))
        elif unit < 0:
            arcs.append((j, sink, -unit))
        arcs.extend((j, parent, CAPACITY) for parent in parents[j])
    # SciPy 1.13 computes flows with indices of 32 bits only
    rows, columns, capacities = (np.array(part, np.int32) for part in zip(*arcs, strict=True))
    graph: Any = sp.csr_array((capacities, (rows, columns)), shape=(n + 2, n + 2))
    residual = sp.csr_array(graph - maximum_flow(graph, source, sink).flow)
    residual.data[residual.data < 0] = 0
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, source, return_predecessors=False)
    chosen = np.zeros(n + 2, dtype=bool)
    chosen[reached] = True
    return chosen[:n]


def _ancestors_first(parents: list[list[int]]) -> list[int]:
    children: list[list[int]] = [[] for _ in parents]
    for j, above in enumerate(parents):
        for parent in above:
            children[parent].append(j)
    n_waiting = [len(above) for above in parents]
    order = [j for j, n in enumerate(n_waiting) if n == 0]
    for j in order:  # which grows
        for child in children[j]:
            n_waiting[child] -= 1
            if n_waiting[child] == 0:
                order.append(child)
    return order
