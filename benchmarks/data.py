"""Data of the benchmarks: halves of digits, and smooth functions of any size."""

import gzip
import os
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


@cache
def _images() -> tuple[np.ndarray, str]:
    path = Path(os.environ.get("OKFOREST_DATA", "")) / "usps" / "zip.train.gz"
    if path.exists():
        with gzip.open(path) as file:
            # Much faster than np.loadtxt; a line is the digit and 256 pixels.
            table = np.array(file.read().split(), dtype=float).reshape(-1, 257)
        images, name = table[:, 1:], "USPS digits"
    else:
        images, name = load_digits().data / 16, "scikit-learn's digits (OKFOREST_DATA has no USPS)"
    return np.random.default_rng(0).permutation(images), name


def halves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return upper halves of n images, or of as many as there are, and their lower halves."""
    images = _images()[0][:n]
    middle = images.shape[1] // 2
    return images[:, :middle].astype(np.float32), np.ascontiguousarray(images[:, middle:])


def halves_name() -> str:
    """Return where the images come from."""
    return _images()[1]


def smooth(n: int, p: int, q: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return n inputs, uniform, and q smooth nonlinear functions of them plus noise.

    Each output mixes 32 sines of random directions in ten of the inputs; of p inputs the others are
    irrelevant.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, p)).astype(np.float32)
    directions = rng.normal(size=(min(p, 10), 32))
    waves = np.sin(X[:, : len(directions)] @ directions + rng.uniform(0, 2 * np.pi, size=32))
    Y = waves @ rng.normal(size=(32, q)) / np.sqrt(32)
    return X, Y + noise * rng.normal(size=(n, q))
