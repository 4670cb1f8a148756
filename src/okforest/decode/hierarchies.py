"""From weights to sets of classes that contain the ancestors of their classes."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from okforest._typing import Booleans, Floats
from okforest.decode.label_sets import LabelSetDecoder, label_set_kernel, marginals
from okforest.kernels import Hierarchy
from okforest.kernels._description import describe_kernel
from okforest.weights import Span, WeightMatrix

ROUNDING = 1e-9  # sums of weights that differ by less are equal
CAPACITY = 2**30 - 1  # of arcs of a flow, which SciPy takes as 32-bit integers


class Hierarchical(LabelSetDecoder):
    """The set of classes, closed under ancestors, with the largest gain Σ_c (p_c − threshold) ω_c.

    p_c is the probability of class c and ω_c its weight in the kernel. With ``threshold=0.5`` it is
    the set nearest to the prediction in feature space, so that it is exact for
    :class:`okforest.kernels.Hierarchy`. If no class is more probable than its parents, as in
    forests, it has all classes whose probability exceeds the threshold. Weights of boosting and
    ridge regression may be negative: then a class may have to take its ancestors along, and the
    best set is found by dynamic programming on a tree and by a minimum cut on other hierarchies.

    Parameters
    ----------
    threshold : float, default=0.5
        The probability above which a class is predicted.

    Examples
    --------
    >>> from okforest.decode import Hierarchical
    >>> from okforest.kernels import Hierarchy
    >>> from okforest.weights import Span
    >>> kernel = Hierarchy()
    >>> y = kernel.check(["1/1", "1/2", "2"])
    >>> [sorted(s) for s in Hierarchical().decode([[0.3, 0.3, 0.4]], Span(kernel.resolve(y), y))]
    [['1']]
    """

    def __init__(self, threshold: float = 0.5):
        self.threshold = threshold

    def check(self, span: Span) -> None:
        """Check that outputs are classes of a hierarchy."""
        if not isinstance(label_set_kernel(span), Hierarchy):
            raise ValueError(
                f"{type(self).__name__} predicts classes of a hierarchy, and the kernel is "
                f"{describe_kernel(span.kernel)}; use decoder='auto', or kernel=Hierarchy(...)."
            )

    def choose(self, W: WeightMatrix, span: Span) -> Booleans:
        """Return the classes of each prediction."""
        kernel = label_set_kernel(span)
        assert isinstance(kernel, Hierarchy)
        gains = marginals(W, span) - self.threshold
        labels = kernel.labels or []
        column = {name: j for j, name in enumerate(labels)}
        parents = [[column[p] for p in above] for above in kernel.hierarchy().values()]
        weight = kernel.weight_of_classes()
        chosen = gains > ROUNDING
        for i in np.flatnonzero(_is_open(chosen, parents)):
            chosen[i] = best_closed_set(gains[i] * weight, parents)
        return chosen


def _is_open(chosen: Booleans, parents: list[list[int]]) -> Booleans:
    """Return which rows have a class without one of its parents."""
    lacks = np.zeros(len(chosen), dtype=bool)
    for j, above in enumerate(parents):
        for parent in above:
            lacks |= chosen[:, j] & ~chosen[:, parent]
    return lacks


def best_closed_set(gains: Floats, parents: list[list[int]]) -> Booleans:
    """Return the set of the largest total gain that has the parents of its classes."""
    if all(len(above) <= 1 for above in parents):
        return _best_in_tree(gains, parents)
    return _best_by_cut(gains, parents)


def _best_in_tree(gains: Floats, parents: list[list[int]]) -> Booleans:
    """Take a branch if the gain of its class and of its own best branches is positive."""
    order = _ancestors_first(parents)
    total = gains.copy()
    for j in reversed(order):
        for parent in parents[j]:
            total[parent] += max(0.0, total[j])
    chosen = np.zeros(len(gains), dtype=bool)
    for j in order:
        chosen[j] = total[j] > ROUNDING and all(chosen[parent] for parent in parents[j])
    return chosen


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
    rows, columns, capacities = (np.array(part) for part in zip(*arcs, strict=True))
    graph: Any = sp.csr_array((capacities.astype(np.int32), (rows, columns)), shape=(n + 2, n + 2))
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
