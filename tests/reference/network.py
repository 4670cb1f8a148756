"""A small network, and scores of links computed pair by pair."""

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from sklearn.utils import Bunch


def diffusion(adjacency, beta, normalized):
    """Return exp(−βL), with ones on the diagonal if normalised."""
    K = sla.expm(beta * (adjacency - np.diag(adjacency.sum(axis=0))))
    if normalized:
        K = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    return K


def link_scores(trees_a, trees_b, K, power):
    """Return inner products of pairs, divided by a power of norms.

    Each argument is a list of weight matrices, one for each tree.
    """
    n_trees = len(trees_a)

    def inner(first, i, second, j):
        return sum(first[t][i] @ K @ second[t][j] for t in range(n_trees)) / n_trees

    scores = np.empty((len(trees_a[0]), len(trees_b[0])))
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[i, j] = inner(trees_a, i, trees_b, j)
            squares = inner(trees_a, i, trees_a, i) * inner(trees_b, j, trees_b, j)
            scores[i, j] /= np.sqrt(squares) ** power
    return scores


def make_network(n=60, n_groups=3, seed=0):
    """Return vertices in groups, linked mostly within them, and features that differ by group."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % n_groups
    chance = np.where(group[:, None] == group, 0.5, 0.02)
    links = np.triu(rng.random((n, n)) < chance, k=1)
    X = np.eye(n_groups)[group] + rng.normal(0.0, 0.25, (n, n_groups))
    return Bunch(
        X=np.hstack([X, rng.normal(size=(n, 2))]),
        graph=sp.csr_array((links | links.T).astype(float)),
        names=np.array([f"v{i:02d}" for i in range(n)]),
        group=group,
    )
