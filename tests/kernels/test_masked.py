"""Masked arrays as parameters, graphs, links and scores are refused."""

import numpy as np
import pandas as pd
import pytest

from okforest import OKTree
from okforest.kernels import Diffusion, Linear, Mahalanobis, Precomputed
from okforest.metrics import precision_at_k
from okforest.network import BipartiteCompletion, NetworkCompletion

X = np.random.default_rng(0).normal(size=(6, 2))
MASKED = np.ma.array(np.eye(6), mask=np.eye(6) > 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: OKTree(kernel=Precomputed(MASKED)).fit(X, np.arange(6)),
        lambda: OKTree(kernel=Diffusion(MASKED)).fit(X, np.arange(6)),
        lambda: OKTree(kernel=Mahalanobis(covariance=MASKED[:2, :2])).fit(X, X),
        lambda: NetworkCompletion().fit(X, MASKED),
        lambda: BipartiteCompletion().fit(X, X, MASKED),
        lambda: precision_at_k([1, 0], np.ma.array([0.1, 0.2], mask=[1, 0]), k=1),
        lambda: precision_at_k(np.ma.array([1, 0], mask=[1, 0]), [0.1, 0.2], k=1),
    ],
)
def test_masked_entries_are_refused(call):
    with pytest.raises(ValueError, match="is a masked array with masked entries"):
        call()


def test_dates_with_a_time_zone_are_refused():
    with pytest.raises(ValueError, match="date"):
        Linear().check(pd.date_range("2020", periods=6, tz="UTC"))
    with pytest.raises(ValueError, match="date"):
        Linear().check(pd.Series(pd.date_range("2020", periods=6, tz="UTC")))


def test_lazy_frames_of_vertices_are_refused():
    frame = pytest.importorskip("polars").LazyFrame({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match=r"X is a LazyFrame, .* pass its collect"):
        NetworkCompletion().fit(frame, np.ones((2, 2)))
