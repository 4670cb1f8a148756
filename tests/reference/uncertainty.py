"""Uncertainty and conformal prediction, one output at a time."""

import numpy as np


def variance(kernel, outputs, w):
    """Return Σ_i w_i ‖φ(y_i) − F‖², for F = Σ_i w_i φ(y_i)."""
    K = kernel(outputs)
    total = 0.0
    for i, weight in enumerate(w):
        total += weight * (K[i, i] - 2.0 * w @ K[:, i] + w @ K @ w)
    return total


def quantile(y, w, level):
    """Return the smallest output at which the weights of the outputs up to it reach the level."""
    for value in np.sort(y):
        if w[y <= value].sum() >= level - 1e-12:
            return value
    return y.max()


def distance(kernel, outputs, w, c):
    """Return ‖φ(c) − F‖²."""
    cross = kernel(outputs, c)[:, 0]
    return kernel(c)[0, 0] - 2.0 * w @ cross + w @ kernel(outputs) @ w


def score(name, kernel, outputs, w, c, candidates):
    """Return the conformity score of the output c, an array of one entry."""
    to_output = distance(kernel, outputs, w, c)
    if name == "distance":
        return to_output
    if name == "normalized":
        uniform = np.full(len(outputs), 1.0 / len(outputs))
        floor = 0.01 * variance(kernel, outputs, uniform)
        return to_output / (variance(kernel, outputs, w) + floor)
    if name == "votes":
        return -sum(weight for weight, y in zip(w, outputs, strict=True) if np.array_equal(y, c[0]))
    others = [
        distance(kernel, outputs, w, candidates[j : j + 1])
        for j in range(len(candidates))
        if not np.array_equal(candidates[j], c[0])
    ]
    return to_output - min(others)


def p_value(value, known):
    """Return the share of scores at least as large, the new one among them."""
    return (1 + sum(score >= value for score in known)) / (len(known) + 1)


def cv_plus(lowers, uppers, coverage):
    """Return the interval of the jackknife+ and CV+ from one pair of bounds for each row."""
    n = len(lowers)
    rank = int(np.ceil(coverage * (n + 1) - 1e-9))
    return np.sort(lowers)[n - rank], np.sort(uppers)[rank - 1]
