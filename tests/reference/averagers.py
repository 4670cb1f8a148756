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


def ridge_weights(K, K_new, alpha, counts, intercept=False):
    """Repeat every training row as often as it counts, solve, and add up the copies' weights.

    F(x) = Σ_i β_i k(x, x_i) + b, with (K + αI)β + b = φ and Σβ = 0; without an intercept, b = 0.
    """
    copies = np.repeat(np.arange(len(K)), counts)
    n = len(copies)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K[np.ix_(copies, copies)] + alpha * np.eye(n)
    system[:n, n] = system[n, :n] = intercept
    system[n, n] = not intercept
    solved = np.linalg.solve(system, np.eye(n + 1)[:, :n])
    values = np.c_[K_new[:, copies], np.full(len(K_new), float(intercept))]
    W = np.zeros((len(K_new), len(K)))
    for column, j in enumerate(copies):
        W[:, j] += values @ solved[:, column]
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


def nystrom_weights(K_nm, K_mm, K_new, alpha, weight, intercept=False):
    """Minimise Σ ω ‖φ − Kβ − b‖² + α βᵀ K_mm β by its normal equations."""
    penalty = alpha * K_mm
    if intercept:
        K_nm, K_new = (np.c_[K, np.ones(len(K))] for K in (K_nm, K_new))
        penalty = np.pad(penalty, (0, 1))
    left = K_nm.T @ (weight[:, None] * K_nm) + penalty
    return K_new @ np.linalg.solve(left, K_nm.T * weight)


def principal_projection(features, weight, n_components, centre=False):
    """Return the projection on the leading directions of weighted features."""
    if centre:
        features = features - np.average(features, axis=0, weights=weight)
    second_moment = (features.T * weight) @ features
    directions = np.linalg.eigh(second_moment)[1][:, ::-1][:, :n_components]
    return directions @ directions.T


def confined(F, features, weight, projection, intercept):
    """Return predictions projected on directions, around the mean if there is an intercept."""
    mean = np.average(features, axis=0, weights=weight) if intercept else 0.0
    return mean + (F - mean) @ projection
