"""Refits by definition: dense matrices from leaves, objectives as sums."""

import numpy as np


def leaf_matrix(forest, X):
    """Return L: one column per leaf that any tree has, in any order, and the (tree, leaf) keys."""
    trees = forest.trees_
    keys = [
        (t, node)
        for t in range(len(trees))
        for node in range(len(trees[t].left))
        if trees[t].left[node] < 0
    ]
    position = {key: j for j, key in enumerate(keys)}
    leaves = forest.apply(X)
    L = np.zeros((len(leaves), len(keys)))
    for i, row in enumerate(leaves):
        for t, leaf in enumerate(row):
            L[i, position[t, leaf]] = 1.0 / len(trees)
    return L


def weights(forest, X, X_grown):
    """Return K = M L D⁻¹ Lₛᵀ of a forest grown on all rows of X_grown."""
    L, Ls = leaf_matrix(forest, X), leaf_matrix(forest, X_grown)
    n_trees = len(forest.trees_)
    counts = (Ls > 0).sum(axis=0)
    return n_trees * (L / counts) @ Ls.T


def objective(f, lower, upper, c, penalty, norm="l2"):
    """Return the penalty plus the weighted distances of predictions from intervals."""
    total = penalty
    for i in range(len(f)):
        distance = max(lower[i] - f[i], 0.0, f[i] - upper[i])
        total += c[i] * (0.5 * distance**2 if norm == "l2" else distance)
    return total
