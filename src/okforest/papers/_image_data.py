"""Data for image completion: halves of USPS digits, in the folds of the ICML 2006 paper.

The data are the first 100 images of each digit in file order, with raw values. Fold f holds images
20f to 20f + 19 of each digit. With 200 training images, one fold is for training and four for
testing; with 800, the other way round. The output kernel is exp(−‖y − y'‖² / 2σ²), σ = 7.0711.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import Bunch

from okforest._utils.arrays import Floats
from okforest.datasets import fetch_usps
from okforest.kernels import RBF

SIGMA = 7.0711
KERNEL = RBF(SIGMA)
FOLDS = 5
IMAGES_PER_FOLD = 20  # of each digit
HALF = 128  # pixels


class ImageFold(NamedTuple):
    """Upper halves (X) and lower halves (Y) of the training and test images."""

    X: Floats
    Y: Floats
    X_test: Floats
    Y_test: Floats


@cache
def load_usps() -> Bunch:
    """Return the USPS digits, read once."""
    return fetch_usps()


@cache
def load_images() -> Floats:
    """Return 100 images of each digit, of shape (10, 100, 256)."""
    usps = load_usps()
    chosen = []
    for digit in range(10):
        found = usps.data[(usps.target == digit) & (usps.split == "train")]
        if len(found) < 100:
            raise ValueError(
                f"{usps.files[0]} has {len(found)} training images of the digit {digit}; the "
                "experiment needs 100. Download the published file again."
            )
        chosen.append(found[:100])
    return np.array(chosen)


def fold_positions(n_train: int, fold: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the positions of training and test images among the 100 images of each digit."""
    is_train = np.arange(100) // IMAGES_PER_FOLD == fold
    if n_train == 800:
        is_train = ~is_train
    return np.flatnonzero(is_train), np.flatnonzero(~is_train)


def image_fold(n_train: int, fold: int) -> ImageFold:
    """Return the halves of the images of a fold, sorted by digit and then in file order."""
    train, test = (
        load_images()[:, positions].reshape(-1, 2 * HALF)
        for positions in fold_positions(n_train, fold)
    )
    return ImageFold(train[:, :HALF], train[:, HALF:], test[:, :HALF], test[:, HALF:])


def inner_folds(n_train: int) -> PredefinedSplit:
    """Return five folds of the training images, in blocks as the outer ones."""
    blocks = np.repeat(np.arange(FOLDS), n_train // (10 * FOLDS))
    return PredefinedSplit(np.tile(blocks, 10))
