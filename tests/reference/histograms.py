"""Trees on binned inputs by the book: quantiles by walking along sorted values, trees of codes."""

from itertools import pairwise

import numpy as np

from reference.trees import grow_tree


def between(a, b):
    """Return the threshold between two neighbouring values."""
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


def edges_of(x, weight, most):
    """Return the thresholds between the bins of a feature: quantiles, unless it has few values.

    A bin ends at the value that is nearest to its share of the weight that is left.
    """
    present = ~np.isnan(x) & (weight > 0)
    values = np.unique(x[present])
    totals = [weight[present & (x == value)].sum() for value in values]
    if len(values) <= most:
        return [between(a, b) for a, b in pairwise(values)]
    edges, left, filled = [], sum(totals), 0.0
    for k in range(len(values) - 1):
        filled += totals[k]
        n_left = most - len(edges)
        if n_left > 1 and filled + totals[k + 1] / 2 > left / n_left:
            edges.append(between(values[k], values[k + 1]))
            left -= filled
            filled = 0.0
    return edges


def codes_of(X, weight, most):
    """Return the bin of each value as a float; NaN where it is missing."""
    columns = [np.searchsorted(edges_of(x, weight, most), x).astype(float) for x in X.T]
    return np.where(np.isnan(X), np.nan, np.transpose(columns))


def threshold_of(x, codes, rows, left):
    """Return the threshold of a split of rows, given which of them go left.

    It is halfway between the values of the bins on both sides, unless that divides a bin in between
    of which the node has no row.
    """
    present = ~np.isnan(codes[rows])
    if (present & ~left).sum() == 0:
        return np.inf
    lower, upper = codes[rows][left & present].max(), codes[rows][~left & present].min()
    threshold = between(x[codes == lower].max(), x[codes == upper].min())
    for code in np.unique(codes[(codes > lower) & (codes < upper)]):
        values = x[codes == code]
        if values.min() <= threshold < values.max():
            return between(x[codes < code].max(), values.min())
    return threshold


def grow_binned_tree(X, K, rules, weight, count, seed, most):
    """Return the root of the tree of the codes, and its thresholds in preorder."""
    codes = codes_of(X, weight, most)
    root = grow_tree(codes, K, rules, weight, count, seed)
    used = weight > 0

    def thresholds(node):
        if node.split is None:
            return []
        feature, _, _, left = node.split
        x = np.where(used, X[:, feature], np.nan)
        bins = np.where(used, codes[:, feature], np.nan)
        first = threshold_of(x, bins, node.rows, left)
        return [first, *(t for child in node.children for t in thresholds(child))]

    return root, thresholds(root)
