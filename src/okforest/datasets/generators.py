"""Synthetic data: of the papers, and images of textures."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_friedman1 as scikit_learn_friedman1
from sklearn.utils import check_random_state

from okforest._utils.arrays import Floats

Bytes = npt.NDArray[np.uint8]


def make_friedman1(n: int = 300, seed: Any = None) -> tuple[Floats, Floats]:
    """Generate the Friedman1 regression problem of the OKBoost paper.

    y = 10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + ε, with 10 inputs uniform on [0, 1], five
    of them irrelevant, and Gaussian noise ε of variance 1. The paper uses 300 rows for training and
    1,000 for testing.

    Parameters
    ----------
    n : int, default=300
        Number of rows.
    seed : int, RandomState instance or None
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n, 10)
        Inputs.
    y : ndarray of shape (n,)
        Outputs.

    Examples
    --------
    >>> from okforest.datasets import make_friedman1
    >>> X, y = make_friedman1(300, seed=0)
    >>> X.shape, y.shape
    ((300, 10), (300,))
    """
    X, y = scikit_learn_friedman1(n, n_features=10, noise=1.0, random_state=seed)
    return X, y


def make_textures(
    n: int = 20, size: int = 64, seed: Any = None
) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Generate grey images with regions of four textures: stripes in three directions, and checks.

    Regions are the cells nearest to three to six random points. Phases are random, all textures
    have the same mean and contrast, and a quarter of the variance is noise: single pixels tell
    nothing.

    Parameters
    ----------
    n : int, default=20
        Number of images.
    size : int, default=64
        Height and width of the images.
    seed : int, RandomState instance or None
        Seed of the random numbers.

    Returns
    -------
    images : ndarray of shape (n, size, size), uint8
        Images.
    maps : ndarray of shape (n, size, size)
        The texture of each pixel: 0 horizontal stripes, 1 vertical, 2 diagonal, 3 checks.

    Examples
    --------
    >>> from okforest.datasets import make_textures
    >>> images, maps = make_textures(5, seed=0)
    >>> images.shape, maps.shape
    ((5, 64, 64), (5, 64, 64))
    """
    rng = check_random_state(seed)
    row, col = np.mgrid[:size, :size]
    images = np.empty((n, size, size), np.uint8)
    maps = np.empty((n, size, size), np.int64)
    for i in range(n):
        points = rng.uniform(0, size, (rng.randint(3, 7), 2))
        nearest = (row[..., None] - points[:, 0]) ** 2 + (col[..., None] - points[:, 1]) ** 2
        maps[i] = rng.randint(0, 4, len(points))[nearest.argmin(axis=2)]
        a, b = 2 * np.pi * (np.stack([row, col]) / 6 + rng.uniform(0, 1, (2, 1, 1)))
        diagonal = np.sin((a + b) / np.sqrt(2))
        waves = np.stack([np.sin(a), np.sin(b), diagonal, np.sqrt(2) * np.sin(a) * np.sin(b)])
        signal = np.take_along_axis(waves, maps[i][None], axis=0)[0]
        noise = rng.normal(0, np.sqrt(1 / 6), (size, size))  # a sine has the variance 1/2
        images[i] = np.clip(128 + 50 * (signal + noise), 0, 255)
    return images, maps
