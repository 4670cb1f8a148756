"""The images of the papers: halves of USPS digits, in the folds of the ICML 2006 paper.

The first 100 images of each digit in file order, raw values; fold f has images 20f to 20f + 19 of
each digit. Of five folds one is learnt from and four are for the test (N = 200), or the other way
round (N = 800). The output kernel is exp(−‖y − y'‖² / 2σ²) with σ = 7.0711.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import Bunch

from okforest._typing import Floats
from okforest.datasets import fetch_usps
from okforest.kernels import RBF

SIGMA = 7.0711
KERNEL = RBF(SIGMA)
FOLDS = 5
A_FOLD = 20  # images of a digit in a fold
HALF = 128  # pixels


class Halves(NamedTuple):
    """Upper and lower halves of images to learn from, and of others."""

    X: Floats
    Y: Floats
    X_test: Floats
    Y_test: Floats


@cache
def usps() -> Bunch:
    """Return the digits, read once."""
    return fetch_usps()


@cache
def images() -> Floats:
    """Return 1,000 images, 100 of each digit: the shape is (10, 100, 256)."""
    digits = usps()
    chosen = []
    for digit in range(10):
        found = digits.data[(digits.target == digit) & (digits.split == "train")]
        if len(found) < 100:
            raise ValueError(
                f"there are {len(found)} images of the digit {digit} to learn from in "
                f"{digits.files[0]}, and 100 are needed; get the published file."
            )
        chosen.append(found[:100])
    return np.array(chosen)


def places(n_train: int, fold: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return which of a digit's images are learnt from, and which are for the test."""
    inside = np.arange(100) // A_FOLD == fold
    if n_train == 800:
        inside = ~inside
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def halves(n_train: int, fold: int) -> Halves:
    """Return the images of a fold; digit by digit, and in file order."""
    train, test = (images()[:, at].reshape(-1, 2 * HALF) for at in places(n_train, fold))
    return Halves(train[:, :HALF], train[:, HALF:], test[:, :HALF], test[:, HALF:])


def inner_folds(n_train: int) -> PredefinedSplit:
    """Return five folds of the images learnt from, in blocks, made as the outer ones."""
    blocks = np.repeat(np.arange(FOLDS), n_train // (10 * FOLDS))
    return PredefinedSplit(np.tile(blocks, 10))
