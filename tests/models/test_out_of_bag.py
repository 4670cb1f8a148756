"""Out-of-bag predictions of rows that every tree was grown on: unknown, depending on the type."""

import numpy as np
import pytest

from okforest import OKBagging, OKRandomForest
from okforest.kernels import RBF, Precomputed

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = X[:, :2] + 0.1 * rng.normal(size=(40, 2))
LABELS = np.digitize(Y[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize(
    ("kernel", "y", "unknown"),
    [
        (Precomputed(RBF(1.0)(Y)), np.arange(40), -1),
        ("dirac", LABELS, -1),
        ("dirac", LABELS.astype(np.int8), -1),
        ("dirac", np.array(["a", "b", "c"])[LABELS], ""),
        ("dirac", np.array(["a", "b", "c"], dtype=object)[LABELS], None),
    ],
    ids=["positions", "integers", "small integers", "text", "objects"],
)
@pytest.mark.parametrize("model", [OKBagging, OKRandomForest])
def test_rows_drawn_for_every_tree(model, kernel, y, unknown):
    """Exactly the rows without weights are marked, and no mark is a possible output."""
    with pytest.warns(UserWarning, match="drawn for every tree"):
        forest = model(2, kernel=kernel, oob_score=True, random_state=0).fit(X, y)
    everywhere = forest.trees_.are_members().all(axis=1)
    assert 0 < everywhere.sum() < 40
    assert (np.diff(forest.oob_weights_.indptr) == 0).tolist() == everywhere.tolist()
    assert forest.oob_prediction_.dtype == y.dtype
    for predicted, row_is_everywhere in zip(forest.oob_prediction_, everywhere, strict=True):
        assert (predicted == unknown) == row_is_everywhere
        assert row_is_everywhere or predicted in y
