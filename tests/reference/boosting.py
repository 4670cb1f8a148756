"""Gradient boosting in kernelized output spaces, as the paper's Algorithms 3 and 4 have it."""

import numpy as np

from reference.random import derive
from reference.trees import grow_tree


def learning_stage(K, X, learn, weight, scale, n_rounds):
    """Algorithm 3: return the models, each a function from inputs to weights of shape (n, N).

    ``learn(K, m)`` applies the base learner to a Gram matrix; W_ij = w_i(x_j), as in the paper.
    Rounds are multiplied by ``scale(m)`` (equation 9), the mean is not.
    """
    N = len(K)
    W = np.tile((weight / weight.sum())[:, None], (1, N))
    models = []
    for m in range(n_rounds):
        K = (np.eye(N) - W).T @ K @ (np.eye(N) - W)
        models.append(learn(K, m))
        W = scale(m) * models[-1](X).T
    return models


def prediction_stage(models, X, X_new, weight, scale):
    """Algorithm 4: return the weights W^F of new inputs after each round, each of shape (Q, N)."""
    N = len(X)
    O = np.eye(N)  # noqa: E741
    W = np.tile((weight / weight.sum())[:, None], (1, N))
    W_F = np.tile(weight / weight.sum(), (len(X_new), 1))
    stages = []
    for m, model in enumerate(models):
        O = O - W.T @ O  # noqa: E741
        W_F = W_F + scale(m) * model(X_new) @ O
        stages.append(W_F)
        W = scale(m) * model(X).T
    return stages


def tree_learner(X, rules, weight, seed, drawn=lambda m: 1.0):
    """Return a base learner that grows reference trees, on the rows that a round draws."""

    def learn(K, m):
        drawn_weight = weight * drawn(m)
        root = grow_tree(X, K, rules, drawn_weight, np.maximum(drawn_weight, 1.0), derive(seed, m))

        def weights(inputs):
            W = np.zeros((len(inputs), len(X)))
            for i, x in enumerate(inputs):
                rows = leaf_rows(root, x)
                W[i, rows] = drawn_weight[rows] / drawn_weight[rows].sum()
            return W

        return weights

    return learn


def leaf_rows(node, x):
    """Follow an input without missing values down a reference tree of numeric tests."""
    while node.split is not None:
        node = node.children[0 if x[node.split[0]] <= node.split[1] else 1]
    return node.rows
