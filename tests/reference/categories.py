"""Kernel target encoding by the book: loops over levels, rows and folds."""

import numpy as np


def coordinates(level, Z, weight, n_levels, most=4):
    """Return the coordinates of each level, the directions, the prior weights and a gap.

    Z holds centred outputs. S_l/(n_l + m) along each direction, with m = s²/t². With a small gap
    between eigenvalues, relative to the largest, directions are not determined.
    """
    n, r = weight.sum(), Z.shape[1]
    sums, counts = np.zeros((n_levels, r)), np.zeros(n_levels)
    for row, found in enumerate(level):
        sums[found] += weight[row] * Z[row]
        counts[found] += weight[row]
    L = int((counts > 0).sum())
    between, total = np.zeros((r, r)), np.zeros((r, r))
    for found in range(n_levels):
        if counts[found]:
            between += np.outer(sums[found], sums[found]) / counts[found]
    for row in range(len(Z)):
        total += weight[row] * np.outer(Z[row], Z[row])
    within = (total - between) / max(n - L, 1)
    values, vectors = np.linalg.eigh(between - (L - 1) * within)
    d = min(most, max(1, int((values > 0).sum())))
    V = vectors[:, ::-1][:, :d]
    prior = np.zeros(d)
    for k in range(d):
        B, T = V[:, k] @ between @ V[:, k], V[:, k] @ total @ V[:, k]
        s2 = (T - B) / max(n - L, 1)
        t2 = max(0.0, (B - (L - 1) * s2) / max(n - (counts**2).sum() / n, 1e-9 * n))
        prior[k] = min(s2 / t2, 1e6) if t2 > 0 else 1e6
    table = np.zeros((n_levels, d))
    for found in range(n_levels):
        if counts[found]:
            table[found] = sums[found] @ V / (counts[found] + prior)
    gaps = np.diff(np.append(values, 0.0 if abs(values).max() == 0 else 2 * abs(values).max()))
    gap = min(gaps.min(), abs(values).min()) / max(abs(values).max(), 1e-300)
    return table, V, prior, gap


def cross_fitted(level, fold, values, weight, prior):
    """Return for each row the regularised mean of its level over the rows of other folds."""
    result = np.zeros_like(values)
    for row in range(len(values)):
        others = (level == level[row]) & (fold != fold[row]) & (weight > 0)
        if others.any():
            total = weight[others] @ values[others]
            result[row] = total / (weight[others].sum() + prior)
    return result


def moved(tree, leaf_of):
    """Return a tree whose leaves hold other rows, as nested tuples, without empty leaves.

    ``leaf_of`` maps each member to a leaf. A leaf is the sorted rows, a split is (feature,
    threshold, left, right).
    """

    def build(node):
        if tree.left[node] < 0:
            rows = sorted(row for row, leaf in leaf_of.items() if leaf == node)
            return tuple(rows)
        left, right = build(tree.left[node]), build(tree.left[node] + 1)
        if left == ():
            return right
        if right == ():
            return left
        return (int(tree.feature[node]), float(tree.threshold[node]), left, right)

    return build(0)


def nested(tree):
    """Return a tree as nested tuples, too."""

    def build(node):
        if tree.left[node] < 0:
            return tuple(sorted(tree.members[tree.begin[node] : tree.end[node]].tolist()))
        sides = build(tree.left[node]), build(tree.left[node] + 1)
        return (int(tree.feature[node]), float(tree.threshold[node]), *sides)

    return build(0)
