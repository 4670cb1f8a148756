"""Data of the asv benchmarks: built-in or generated, the same on every machine."""

import numpy as np
from sklearn.datasets import load_digits


def digits(n=800):
    """Return the upper and lower halves of n digits."""
    images = np.random.default_rng(0).permutation(load_digits().data)[:n] / 16
    return images[:, :32], images[:, 32:]


def labels(n=800):
    """Return digits and their classes."""
    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))[:n]
    return bunch.data[order], bunch.target[order]


def label_sets(n=600, n_labels=12):
    """Return inputs and matrices of labels that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    return X, (X @ rng.normal(size=(20, n_labels)) > 2).astype(np.int8)


def numbers(n=4000, n_features=64):
    """Return inputs and one smooth output."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
