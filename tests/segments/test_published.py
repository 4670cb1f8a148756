"""Errors on published data sets; the guides have nearest neighbours beside them."""

import numpy as np
import pytest

from okforest import OKExtraTrees
from okforest.datasets import fetch_promoters, fetch_usps, load_orl_faces, load_ucr
from okforest.segments import KmerWindows, RandomSubseries, RandomSubwindows, SegmentClassifier

pytestmark = pytest.mark.usefixtures("data_folder")


@pytest.mark.parametrize(
    ("name", "largest"), [("GunPoint", 0.025), ("Trace", 0.01), ("ItalyPowerDemand", 0.045)]
)
def test_series(name, largest):
    """Errors on the published test sets; 1-NN has 8.7, 24 and 4.5 %."""
    data = load_ucr(name)
    train = data.split == "train"
    model = SegmentClassifier(RandomSubseries(500), random_state=0)
    model.fit(data.data[train], data.target[train])
    assert 1 - model.score(data.data[~train], data.target[~train]) <= largest


def test_sequences():
    """Promoters, the odd sequences from the even ones."""
    data = fetch_promoters()
    model = SegmentClassifier(KmerWindows(6, position=False), random_state=0)
    model.fit(data.sequences[::2], data.target[::2])
    assert model.score(data.sequences[1::2], data.target[1::2]) >= 0.9


@pytest.mark.slow
def test_faces():
    """One shot of each person left out, for every shot; 1-NN has 2.25 %."""
    orl = load_orl_faces()
    wrong = 0
    for shot in range(1, 11):
        test = orl.shot == shot
        forest = OKExtraTrees(10, max_features=28)
        model = SegmentClassifier(RandomSubwindows(500), forest, random_state=0)
        model.fit(orl.images[~test], orl.target[~test])
        wrong += np.sum(model.predict(orl.images[test]) != orl.target[test])
    assert wrong / 400 <= 0.01


@pytest.mark.slow
def test_digits():
    """The published test set of USPS; 1-NN has 5.6 %."""
    usps = fetch_usps()
    test = usps.split == "test"
    images = np.round(127.5 * (usps.images + 1)).astype(np.uint8)
    forest = OKExtraTrees(10, max_features=28)
    model = SegmentClassifier(RandomSubwindows(50, side_range=(0.7, 1.0)), forest, random_state=0)
    model.fit(images[~test], usps.target[~test])
    assert 1 - model.score(images[test], usps.target[test]) <= 0.043
