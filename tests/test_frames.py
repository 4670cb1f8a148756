"""Frames of pandas and polars are read alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from okforest._utils.frames import column, frame_of, is_frame, label, library_of, with_index_of

VALUES = {"size": [1.0, 2.0], "colour": ["red", None]}
FRAMES = {"frame": pd.DataFrame(VALUES), "polars": pl.DataFrame(VALUES)}


class Table:
    """A class of a user that has the attributes of a frame, and is none."""

    columns = ("size",)
    dtypes = ("float64",)


@pytest.mark.parametrize("library", FRAMES)
def test_columns_are_read_alike(library):
    frame = FRAMES[library]
    assert is_frame(frame)
    assert library_of(frame) == library
    assert column(frame, 0).tolist() == [1.0, 2.0]
    assert column(frame, 1)[0] == "red"
    assert label(frame, 1) == "'colour'"


@pytest.mark.parametrize(
    "thing",
    [
        np.eye(2),
        [[1.0]],
        sp.csr_array(np.eye(2)),
        pd.Series([1.0]),
        pl.Series([1.0]),
        pl.LazyFrame(VALUES),
        Table(),
        None,
    ],
)
def test_what_is_no_frame(thing):
    assert not is_frame(thing)


@pytest.mark.parametrize("library", FRAMES)
def test_outputs_come_back_in_a_frame_of_the_library(library):
    frame = frame_of(np.eye(2), ["a", "b"], library)
    assert type(frame) is type(FRAMES[library])
    assert list(frame.columns) == ["a", "b"]
    assert frame.to_numpy().tolist() == np.eye(2).tolist()


def test_only_frames_of_pandas_have_an_index():
    X = FRAMES["frame"].set_axis(["first", "second"])
    outputs = pd.DataFrame(np.eye(2))
    assert with_index_of(X, outputs).index.tolist() == ["first", "second"]
    assert outputs.index.tolist() == [0, 1]
    assert with_index_of(FRAMES["polars"], outputs) is outputs
    for other in (FRAMES["polars"], np.eye(2)):
        assert with_index_of(X, other) is other
