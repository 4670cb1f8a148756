"""Forests that must never change: an optimisation grows the same trees as before it."""

import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from okforest.engine import Rules, grow

DIGITS = load_digits().data[:400] / 16.0
RULES = {
    "best": Rules(max_features=8),
    "random": Rules(random_splits=True, max_features=5),
    "totally random": Rules(random_splits=True, max_features=1, stop_when_pure=False),
    "by gain": Rules(order="gain", max_leaf_nodes=40, max_features=8),
}
GOLDEN = {
    ("best", 0, "numbers"): "8e21f32cf3b17591",
    ("best", 0, "mixed"): "00763a14186508fa",
    ("best", 400, "numbers"): "db6d6af70da07963",
    ("best", 400, "mixed"): "7f06bbeae4880eab",
    ("random", 0, "numbers"): "bd77632ffafc70f8",
    ("random", 0, "mixed"): "34b220a84d0e1a97",
    ("random", 400, "numbers"): "a82a00e3b30ee6c0",
    ("random", 400, "mixed"): "30ec62476261976b",
    ("totally random", 0, "numbers"): "81b0fbc66952c4ab",
    ("totally random", 0, "mixed"): "f5fe420b8c317dc0",
    ("totally random", 400, "numbers"): "5f892005b70ad37c",
    ("totally random", 400, "mixed"): "38ed6c0c80fd4fb7",
    ("by gain", 0, "numbers"): "374a82521a96fa2c",
    ("by gain", 0, "mixed"): "b2f783530045d6eb",
    ("by gain", 400, "numbers"): "9515bccef135f12c",
    ("by gain", 400, "mixed"): "481de8762bb9029c",
}


def fingerprint(trees):
    """Return a digest of the trees' tests and members, thresholds to nine digits."""
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
    if kind == "mixed":  # some missing values, and every fourth column a category
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
def test_the_forest_is_the_one_it_was(name, n_draws, kind):
    """Both forms of the outputs grow the forest whose fingerprint is written here."""
    for gram in (False, True):
        found = fingerprint(forest(RULES[name], gram, n_draws, kind))
        assert found == GOLDEN[name, n_draws, kind]
