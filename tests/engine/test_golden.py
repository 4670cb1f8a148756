"""Fingerprints of forests: optimisations must not change the trees."""

import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from growing import grow
from okforest.engine import GrowthRules

DIGITS = load_digits().data[:400] / 16.0
RULES = {
    "best": GrowthRules(max_features=8),
    "random": GrowthRules(random_splits=True, max_features=5),
    "totally random": GrowthRules(random_splits=True, max_features=1, stop_when_pure=False),
    "by gain": GrowthRules(order="gain", max_leaf_nodes=40, max_features=8),
}
GOLDEN = {
    ("best", 0, "numbers"): "8e21f32cf3b17591",
    ("best", 0, "mixed"): "00763a14186508fa",
    ("best", 400, "numbers"): "caa8ad47e06eb670",
    ("best", 400, "mixed"): "ed5834879c2e3b65",
    ("random", 0, "numbers"): "bd77632ffafc70f8",
    ("random", 0, "mixed"): "34b220a84d0e1a97",
    ("random", 400, "numbers"): "4ea50867153a03a8",
    ("random", 400, "mixed"): "624d5d10b2073d58",
    ("totally random", 0, "numbers"): "81b0fbc66952c4ab",
    ("totally random", 0, "mixed"): "f5fe420b8c317dc0",
    ("totally random", 400, "numbers"): "15bddfa66017e3cd",
    ("totally random", 400, "mixed"): "65c84ffa346b8fc6",
    ("by gain", 0, "numbers"): "374a82521a96fa2c",
    ("by gain", 0, "mixed"): "b2f783530045d6eb",
    ("by gain", 400, "numbers"): "653babe4036740ef",
    ("by gain", 400, "mixed"): "1d1cfb62f66b9450",
}


def fingerprint(trees):
    """Return a hash of the trees' tests and members, with thresholds rounded to nine digits."""
    digest = hashlib.sha256()
    for t in range(len(trees)):
        tree = trees[t]
        thresholds = [f"{threshold:.9e}" for threshold in tree.threshold]
        for part in (tree.feature, tree.left, tree.subset_words, tree.members, tree.times):
            digest.update(part.astype(np.int64).tobytes())
        digest.update((",".join(thresholds)).encode())
        digest.update(tree.missing_left.tobytes())
    return digest.hexdigest()[:16]


def forest(rules, gram, n_draws, kind):
    X, phi = DIGITS[:, :32].copy(), DIGITS[:, 32:].copy()
    n_categories = np.zeros(32, dtype=np.int32)
    if kind == "mixed":  # some missing values; every fourth column is categorical
        X[np.random.default_rng(0).uniform(size=X.shape) < 0.1] = np.nan
        X[:, ::4] = np.round(X[:, ::4] * 16)
        n_categories[::4] = 17
    phi -= phi.mean(axis=0)
    outputs = phi @ phi.T if gram else phi
    return grow(
        X, outputs, rules, gram=gram, n_trees=3, seed=1, n_draws=n_draws, n_categories=n_categories
    )


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("n_draws", [0, 400])
@pytest.mark.parametrize("kind", ["numbers", "mixed"])
def test_forests_do_not_change(name, n_draws, kind):
    """Both forms of the outputs grow the forest with the recorded fingerprint."""
    for gram in (False, True):
        found = fingerprint(forest(RULES[name], gram, n_draws, kind))
        assert found == GOLDEN[name, n_draws, kind]
