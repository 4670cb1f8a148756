"""Neighbours and ridge regression, slowly and obviously."""

import numpy as np


def neighbor_weights(distances, n_neighbors, counts, vote=lambda d: 1.0):
    """Repeat every training row as often as it counts, and take the nearest one by one."""
    n_train = len(counts)
    W = np.zeros((len(distances), n_train))
    for i, row in enumerate(distances):
        copies = [j for j in range(n_train) for _ in range(counts[j])]
        copies.sort(key=lambda j: row[j])
        for j in copies[:n_neighbors]:
            W[i, j] += vote(row[j])
    return W / W.sum(axis=1, keepdims=True)


def ridge_weights(K, K_new, alpha, counts):
    """Repeat every training row as often as it counts, solve, and add up the copies' weights."""
    copies = np.repeat(np.arange(len(K)), counts)
    identity = np.eye(len(copies))
    solved = np.linalg.solve(K[np.ix_(copies, copies)] + alpha * identity, identity)
    W = np.zeros((len(K_new), len(K)))
    for column, j in enumerate(copies):
        W[:, j] += K_new[:, copies] @ solved[:, column]
    return W


def losses(W, K_outputs, rows):
    """Return ‖φ(y) − F‖² of the outputs at these rows, given the weights of predictions."""
    return np.array(
        [
            K_outputs[i, i] - 2 * w @ K_outputs[:, i] + w @ K_outputs @ w
            for w, i in zip(W, rows, strict=True)
        ]
    )


def leave_one_out(weights_without, K_outputs, weight):
    """Average the losses of rows by models fitted without them: weights_without(i) of row i."""
    rows = np.flatnonzero(weight)
    each = [losses(weights_without(i)[None], K_outputs, [i])[0] for i in rows]
    return np.average(each, weights=weight[rows])


def nystrom_weights(K_nm, K_mm, K_new, alpha, weight):
    """Minimise Σ ω ‖φ − Kβ‖² + α βᵀ K_mm β by its normal equations."""
    left = K_nm.T @ (weight[:, None] * K_nm) + alpha * K_mm
    return K_new @ np.linalg.solve(left, K_nm.T * weight)


def principal_projection(features, weight, n_components):
    """Return the projection on the leading directions of weighted features, not centred."""
    second_moment = (features.T * weight) @ features
    directions = np.linalg.eigh(second_moment)[1][:, ::-1][:, :n_components]
    return directions @ directions.T
