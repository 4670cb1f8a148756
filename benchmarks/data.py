"""Data of several benchmarks: halves of digits, smooth functions, sparse inputs, and others."""

import os
import time
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from okforest.datasets import fetch_usps, load_hierarchical, load_label_ranking
from okforest.kernels import RBF

NOISE = 0.1  # standard deviation of the noise on resampled images


@cache
def _images() -> tuple[np.ndarray, str]:
    if (Path(os.environ.get("OKFOREST_DATA", "")) / "usps" / "zip.train.gz").exists():
        usps = fetch_usps()
        images, name = usps.data[usps.split == "train"], "USPS digits"
    else:
        images, name = load_digits().data / 16, "scikit-learn's digits (OKFOREST_DATA has no USPS)"
    return np.random.default_rng(0).permutation(images), name


def halves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the upper and lower halves of n images, or of all images if there are fewer."""
    return _split(_images()[0][:n])


def resampled_halves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the upper and lower halves of n images.

    If there are fewer images, the others are drawn with replacement, with Gaussian noise added.
    """
    images = _images()[0][:n]
    rng = np.random.default_rng(1)
    drawn = images[rng.integers(len(images), size=n - len(images))]
    return _split(np.concatenate([images, drawn + rng.normal(0.0, NOISE, drawn.shape)]))


@cache
def rbf_halves(n: int) -> tuple[np.ndarray, np.ndarray, RBF, np.ndarray, float]:
    """Return inputs, outputs, kernel, eigen-features Φ with ΦΦᵀ = K, and the time for Φ."""
    X, Y = halves(n)
    kernel = RBF().resolve(Y)
    start = time.perf_counter()
    values, vectors = np.linalg.eigh(kernel(Y))
    phi = vectors * np.sqrt(np.maximum(values, 0.0))
    return X, Y, kernel, phi, time.perf_counter() - start


def halves_name() -> str:
    """Return the name of the images."""
    return _images()[1]


def _split(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = images.shape[1] // 2
    return images[:, :middle].astype(np.float32), np.ascontiguousarray(images[:, middle:])


def smooth(n: int, p: int, q: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return n uniform inputs and q smooth nonlinear functions of them with added noise.

    Each output mixes 32 sines along random directions of the first ten inputs; the other inputs are
    irrelevant.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, p)).astype(np.float32)
    directions = rng.normal(size=(min(p, 10), 32))
    waves = np.sin(X[:, : len(directions)] @ directions + rng.uniform(0, 2 * np.pi, size=32))
    Y = waves @ rng.normal(size=(32, q)) / np.sqrt(32)
    return X, Y + noise * rng.normal(size=(n, q))


def sparse(n: int, p: int, share: float, q: int) -> tuple[sp.csc_array, np.ndarray]:
    """Return sparse inputs, of which a share is not zero, and noisy sums of a few features."""
    rng = np.random.default_rng(0)
    X = sp.csc_array(sp.random(n, p, share, format="csc", dtype=np.float32, random_state=0))
    Y = np.asarray(X[:, :50].sum(axis=1))[:, None] + rng.normal(size=(n, q))
    return X, Y if q > 1 else Y[:, 0]


def label_ranks(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the attributes and the ranks of labels, from 0, of a label ranking data set."""
    ranking = load_label_ranking(name)
    return ranking.data, ranking.target - 1.0


def gene_functions() -> tuple[np.ndarray, np.ndarray]:
    """Return the expression of genes and their functions, with smaller weights for deeper ones."""
    genes = load_hierarchical("cellcycle")
    is_train = genes.split == "train"
    depth = np.array([name.count("/") for name in genes.target_names])
    Y = genes.target[is_train] * 0.75**depth
    return genes.data[is_train], Y[:, Y.any(axis=0)]
