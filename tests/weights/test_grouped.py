"""Grouping and stacking weights: weights of segments become weights of objects."""

from itertools import pairwise

import numpy as np
import pytest

from okforest.weights import (
    DenseWeights,
    GroupedWeights,
    LeafWeights,
    ProductWeights,
    SparseWeights,
    grouped,
)
from okforest.weights.grouped import group_rows, merge_columns, stack_rows
from weights.test_forms import FORMS

rng = np.random.default_rng(0)
SIZES = [3, 1, 4, 2]
OFFSETS = np.append(0, np.cumsum(SIZES))
SHARES = rng.random(10)


@pytest.mark.parametrize("name", FORMS)
def test_grouped_rows(name):
    """Groups of rows of every form are the weighted sums of the rows."""
    W = FORMS[name](rng, 10, 20)
    dense = W.tocsr().toarray()
    expected = [SHARES[a:b] @ dense[a:b] for a, b in pairwise(OFFSETS)]
    np.testing.assert_allclose(group_rows(W, OFFSETS, SHARES).tocsr().toarray(), expected)


@pytest.mark.parametrize("name", FORMS)
def test_merged_columns(name):
    """Groups of columns are the sums of the columns."""
    W, group = FORMS[name](rng, 6, 20), rng.integers(0, 4, 20)
    expected = np.stack([W.tocsr().toarray()[:, group == g].sum(axis=1) for g in range(4)], axis=1)
    np.testing.assert_allclose(merge_columns(W, group, 4).tocsr().toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_stacked_rows(name):
    """The rows of several matrices follow each other, in their form."""
    whole = FORMS[name](rng, 12, 20)
    stacked = stack_rows([whole[:5], whole[5:6], whole[6:]])
    assert type(stacked) is type(whole)
    np.testing.assert_allclose(stacked.tocsr().toarray(), whole.tocsr().toarray())
    mixed = stack_rows([whole, DenseWeights(np.ones((1, 20))), SparseWeights(whole[:2].tocsr())])
    np.testing.assert_allclose(mixed.tocsr().toarray()[:12], whole.tocsr().toarray())


def test_forms_of_groups():
    """Leaves are kept unless the means take less memory; products keep their right factor."""
    leaves = FORMS["large leaves"](rng, 10, 20)
    assert isinstance(leaves, LeafWeights)
    assert isinstance(group_rows(leaves, OFFSETS, SHARES), GroupedWeights)
    repeated = LeafWeights(leaves.trees, np.tile(leaves.leaves, (40, 1)))
    few = np.array([0, 400])
    assert isinstance(group_rows(repeated, few, np.full(400, 1 / 400)), SparseWeights)
    assert isinstance(group_rows(FORMS["product"](rng, 10, 20), OFFSETS, SHARES), ProductWeights)


def test_blocks(monkeypatch):
    """Segments of some objects at a time give the same products."""
    W = GroupedWeights(FORMS["large leaves"](rng, 10, 20), OFFSETS, SHARES)
    values = rng.normal(size=(20, 2))
    expected = W @ values
    monkeypatch.setattr(grouped, "BLOCK_SEGMENTS", 2)
    np.testing.assert_allclose(W @ values, expected)
    np.testing.assert_allclose(W.tocsr() @ values, expected)
    assert len(list(W._blocks())) == 4
    assert W[2:2].tocsr().shape == (0, 20)
