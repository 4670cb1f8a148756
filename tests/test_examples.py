"""The examples run and make their figures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.skipif(not EXAMPLES.exists(), reason="examples come with the source tree")
def test_complete_digits(tmp_path):
    """The demo prints its table and writes its figure."""
    figure = tmp_path / "digits.png"
    result = subprocess.run(
        [sys.executable, EXAMPLES / "complete_digits.py", "--trees", "5", "--figure", figure],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = ("baseline", "single tree", "bagging", "extra-trees", "best possible", str(figure))
    assert all(row in result.stdout for row in rows)
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not EXAMPLES.exists(), reason="examples come with the source tree")
def test_complete_network(tmp_path):
    """Without data it says so, and completes a network of its own."""
    figure = tmp_path / "network.png"
    options = ["--trees", "5", "--folds", "3", "--figure", figure]
    result = subprocess.run(
        [sys.executable, EXAMPLES / "complete_network.py", *options],
        env=os.environ | {"OKFOREST_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (
        "yeast_ppi is not at hand",
        "unseen-unseen pairs",
        "extra-trees",
        "cosine",
        "Importance",
    )
    assert all(row in result.stdout for row in rows)
    assert figure.read_bytes().startswith(b"\x89PNG")
