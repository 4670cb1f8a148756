"""Small trees on many rows, as boosting grows them: files pack their members in a few bits."""

from dataclasses import fields, replace

import numpy as np
import pytest

import okforest
from okforest import OKBoost, OKExtraTrees, OKRandomForest
from okforest.engine import pack_members, unpack_members

rng = np.random.default_rng(0)
X = rng.uniform(size=(1201, 4))
y = np.sin(3 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.1, len(X))
WEIGHT = rng.integers(0, 3, len(X)).astype(float)

MODELS = {
    "boosted": lambda: OKBoost(31, random_state=0).fit(X, y),
    "boosted, 40 leaves": lambda: OKBoost(31, max_splits=39, random_state=0).fit(X, y),
    "boosted on halves": lambda: OKBoost(61, subsample=0.5, random_state=0).fit(X, y),
    "boosted, held out": lambda: OKBoost(61, n_iter_no_change=61, random_state=0).fit(X, y),
    "boosted, weighted": lambda: OKBoost(61, random_state=0).fit(X, y, WEIGHT),
    "small forest": lambda: OKExtraTrees(31, max_leaf_nodes=9, random_state=0).fit(X, y),
}


def is_packed(path):
    return b"packed_members" in path.read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_loaded_is_what_was_saved(name, tmp_path):
    """Trees, leaves of training rows, weights and predictions are the same, bit by bit."""
    model, path = MODELS[name](), tmp_path / "model.okforest"
    okforest.save(model, path)
    assert is_packed(path)
    for mmap in (False, True):
        loaded = okforest.load(path, mmap=mmap)
        for field in fields(model.trees_):
            one, other = (getattr(m.trees_, field.name) for m in (model, loaded))
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        if hasattr(model, "training_leaves_"):
            np.testing.assert_array_equal(loaded.training_leaves_, model.training_leaves_)
            assert loaded.training_leaves_.dtype == model.training_leaves_.dtype
        np.testing.assert_array_equal(loaded.predict(X[:9]), model.predict(X[:9]))
        weights, expected = (m.predict_weights(X[:9]).toarray() for m in (loaded, model))
        np.testing.assert_array_equal(weights, expected)


def test_half_a_byte_for_each_row_and_round(tmp_path):
    """The file of a boosted model grows by four bits for each training row and round."""
    sizes = []
    for n_rounds in (60, 90):
        okforest.save(OKBoost(n_rounds, random_state=0).fit(X, y), tmp_path / "model.okforest")
        sizes.append((tmp_path / "model.okforest").stat().st_size)
    of_nodes = 21 * (4 * 4 + 3 * 8 + 1 + 4) + 11 * 8 + 5 * 8 + 200
    assert sizes[1] - sizes[0] < 30 * (len(X) / 2 + of_nodes)


def test_large_or_drawn_trees_are_not_packed(tmp_path):
    """Where bits would be no gain, and where rows were drawn, members stay as they are."""
    for model in (
        OKExtraTrees(20, min_samples_leaf=2, random_state=0),
        OKRandomForest(20, max_leaf_nodes=9, random_state=0),
        OKExtraTrees(5, max_leaf_nodes=9, random_state=0),
    ):
        assert pack_members(model.fit(X, y).trees_) is None
    trees = OKExtraTrees(20, max_leaf_nodes=9, random_state=0).fit(X, y).trees_
    assert pack_members(trees) is not None
    assert pack_members(replace(trees, members=trees.members[::-1].copy())) is None


@pytest.mark.parametrize(
    ("packed", "offsets", "problem"),
    [
        (np.zeros(5, np.uint8), [0, 4], "wrong length"),
        (np.zeros(4, np.int8), [0, 4], "not bytes"),
        (np.zeros((2, 2), np.uint8), [0, 4], "not bytes"),
        (np.zeros(4, np.uint8), [0, 5], "more members than rows"),
        (np.zeros(4, np.uint8), [0, -1], "more members than rows"),
        (np.zeros(0, np.uint8), [0], "no trees"),
    ],
)
def test_packed_members_of_a_damaged_file_are_refused(packed, offsets, problem):
    """Nothing is read beyond the arrays."""
    with pytest.raises(ValueError, match=problem):
        unpack_members(packed, np.array(offsets), 4)


def test_training_leaves_follow_from_members_only_if_all_rows_are_members(tmp_path):
    """A state without the leaves of rows that are not members is refused."""
    model = MODELS["boosted on halves"]()
    del model.training_leaves_
    with pytest.raises(ValueError, match="training_leaves_ is missing"):
        model.check_state()
