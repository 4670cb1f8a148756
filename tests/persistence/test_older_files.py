"""Files of earlier versions are loaded, and written again as they were."""

from pathlib import Path

import numpy as np
import pytest

import okforest
from okforest.persistence.container import read

DATA = Path(__file__).parent / "data"
NEW = [[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
# Written by okforest 0.1.0, with its predictions.
FILES = {
    "forest": [[0.5, 0.0], [1.5, 2.0], [0.5, 1.5]],
    "sparse_neighbors": ["b", "b", "b"],
}

NEWER = {"categorical_encoding", "ignore_constant"}  # parameters that these files do not have


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_older_files(tmp_path, name, expected, mmap):
    """Models, kernels, decoders and sparse matrices."""
    path = DATA / f"{name}.okforest"
    model = okforest.load(path, mmap=mmap)
    np.testing.assert_array_equal(model.predict(NEW), expected)
    okforest.save(model, tmp_path / "model")
    before, after = (read(one, mapped=False, verify=True) for one in (path, tmp_path / "model"))
    assert before.number == after.number == 2
    for name in NEWER & after.content["model"]["params"].keys():
        del after.content["model"]["params"][name]
    assert before.content["model"] == after.content["model"]
    np.testing.assert_array_equal(okforest.load(tmp_path / "model").predict(NEW), expected)
