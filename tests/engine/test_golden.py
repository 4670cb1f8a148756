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
    ("best", 0, "numbers"): "b72a274a7df95922",
    ("best", 0, "mixed"): "d9cdcee8244222ee",
    ("best", 400, "numbers"): "79f2005316786273",
    ("best", 400, "mixed"): "ec0ff152a8dd7fcb",
    ("random", 0, "numbers"): "2f5a12789f779e69",
    ("random", 0, "mixed"): "859670120c827ac9",
    ("random", 400, "numbers"): "47e06bfb162a2827",
    ("random", 400, "mixed"): "5cb18a156fc8a5c8",
    ("totally random", 0, "numbers"): "f0003dcd1b500cc8",
    ("totally random", 0, "mixed"): "d9974891ba7c4cf0",
    ("totally random", 400, "numbers"): "b02c9a75d5b2cd4f",
    ("totally random", 400, "mixed"): "b25113362cdacc89",
    ("by gain", 0, "numbers"): "3f690351ff64139c",
    ("by gain", 0, "mixed"): "33b35ed8188e4cdd",
    ("by gain", 400, "numbers"): "ad1a4b9f3790280b",
    ("by gain", 400, "mixed"): "524f9af22883a213",
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
