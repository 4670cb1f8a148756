"""Files of earlier versions are loaded."""

from pathlib import Path

import numpy as np
import pytest

import okforest
from okforest.persistence.container import read

DATA = Path(__file__).parent / "data"
NEW = [[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]]
# Written by okforest 0.1.0, whose format was 1, with its predictions.
FILES = {
    "forest_format_1": [[-0.5, 0.0], [0.5, 1.0], [0.5, 1.0]],
    "sparse_neighbors_format_1": ["b", "b", "b"],
}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_format_1(tmp_path, name, expected, mmap):
    """Models, kernels, decoders and sparse matrices; they are saved in the current format."""
    path = DATA / f"{name}.okforest"
    assert read(path, mapped=False, verify=True).number == 1
    model = okforest.load(path, mmap=mmap)
    np.testing.assert_array_equal(model.predict(NEW), expected)
    okforest.save(model, tmp_path / "model")
    assert read(tmp_path / "model", mapped=False, verify=True).number == 2
    np.testing.assert_array_equal(okforest.load(tmp_path / "model").predict(NEW), expected)
