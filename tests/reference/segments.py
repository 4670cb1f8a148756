"""Segments and their combination, the slow and obvious way."""

import math

import numpy as np

from reference.random import GAMMA, WORD, mix


def uniform(seed, k):
    """Return the k-th number of a stream, from 0."""
    return (mix((seed + (k + 1) * GAMMA) & WORD) >> 11) * 2.0**-53


def pixel(image, y, x, square):
    """Interpolate an image (height, width) at a point relative to a square's first centre."""
    row, col, side = square
    y, x = min(max(y, 0), side - 1), min(max(x, 0), side - 1)
    y0, x0 = math.floor(y), math.floor(x)
    y1, x1 = min(y0 + 1, side - 1), min(x0 + 1, side - 1)
    a, b, c, d = (float(image[row + i, col + j]) for i in (y0, y1) for j in (x0, x1))
    top, bottom = a + (x - x0) * (b - a), c + (x - x0) * (d - c)
    return top + (y - y0) * (bottom - top)


def subwindow(image, square, size, angle=None, mirrored=False):
    """Return a subwindow of an image of shape (height, width, channels), resized."""
    side = square[2]
    result = np.empty((size, size, image.shape[2]))
    scale = 1.0 if angle is None else abs(math.cos(angle)) + abs(math.sin(angle))
    cosine, sine = (1.0, 0.0) if angle is None else (math.cos(angle), math.sin(angle))
    for i in range(size):
        for j in range(size):
            v = ((i + 0.5) / size - 0.5) * side / scale
            u = (((size - 1 - j if mirrored else j) + 0.5) / size - 0.5) * side / scale
            x = side / 2 + u * cosine - v * sine - 0.5
            y = side / 2 + u * sine + v * cosine - 0.5
            for c in range(image.shape[2]):
                result[i, j, c] = pixel(image[:, :, c], y, x, square)
    return result


def interval(series, begin, length, n_points):
    """Return points of an interval of a series, by linear interpolation."""
    x = begin + (length - 1) * np.arange(n_points) / (n_points - 1)
    return np.interp(x, np.arange(len(series)), series)


def spread(shape, covered, values):
    """Return the mean of values over the segments that cover each position; NaN if none does.

    ``covered`` has, for each segment, a boolean array of the given shape.
    """
    total, count = np.zeros(shape), np.zeros(shape)
    for inside, value in zip(covered, values, strict=True):
        total[inside] += value
        count[inside] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def object_weights(segment_weights, query_owner, training_owner, shares=None):
    """Return weights between objects, from those between segments."""
    n, n_train = max(query_owner) + 1, max(training_owner) + 1
    W = np.zeros((n, n_train))
    for s, i in enumerate(query_owner):
        n_own = sum(1 for k in query_owner if k == i)
        share = 1 / n_own if shares is None else shares[s]
        for t, j in enumerate(training_owner):
            W[i, j] += share * segment_weights[s, t]
    return W
