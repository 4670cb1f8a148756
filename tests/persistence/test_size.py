"""A saved forest is small and predicts the same after loading."""

import numpy as np

import okforest
from okforest.kernels import RBF

# scikit-learn's ExtraTreesRegressor of 100 trees on the 800 eigen-features of the Gram matrix.
PEER_BYTES = 986_000_000


def test_a_forest_of_the_rbf_kernel(tmp_path, record_property):
    """Less than a fiftieth of what scikit-learn needs, including the training outputs."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(800, 20)), rng.normal(size=(800, 128))
    forest = okforest.OKExtraTrees(100, kernel=RBF(), random_state=0).fit(X, Y)
    path = tmp_path / "forest.okforest"
    okforest.save(forest, path)
    size = path.stat().st_size
    record_property("bytes", size)
    print(f"{size:,} bytes, 1/{PEER_BYTES / size:.0f} of scikit-learn's")
    assert size < PEER_BYTES / 50
    loaded = okforest.load(path)
    np.testing.assert_array_equal(loaded.predict(X[:50] + 0.1), forest.predict(X[:50] + 0.1))
