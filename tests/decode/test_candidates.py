"""Many candidates: in parts, ranked, without repetition; and a list for each prediction."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import okforest.decode.search as search_module
from okforest import OKExtraTrees, OKTree
from okforest.decode import CandidateLists, Candidates, Sharpened
from okforest.decode.nearest import smallest
from okforest.kernels import RBF, Linear, Polynomial
from okforest.weights import DenseWeights, Span

rng = np.random.default_rng(0)
Y = rng.normal(size=(20, 2))
W = rng.dirichlet(np.ones(20), size=6)


@given(seed=st.integers(0, 2**31), k=st.integers(1, 4), width=st.integers(4, 60))
def test_the_smallest_are_found_in_order(seed, k, width):
    """A partial sort equals a stable sort, also with ties and infinite values."""
    values = np.random.default_rng(seed).integers(0, 5, size=(3, width)).astype(float)
    values[values == 4] = np.inf
    expected = np.argsort(values, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(smallest(values, k), expected)


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear(), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("k", [1, 3])
def test_parts_change_nothing(kernel, k, monkeypatch):
    """Candidates searched in parts are those searched at once, equal ones counted once."""
    candidates = np.repeat(np.random.default_rng(1).normal(size=(20, 2)), 2, axis=0)
    candidates = candidates[np.random.default_rng(2).permutation(40)]
    span = Span(kernel, Y)
    outputs, losses = Candidates(candidates).top(DenseWeights(W), span, k)
    monkeypatch.setattr(search_module, "BLOCK", 7)
    parts, part_losses = Candidates(candidates).top(DenseWeights(W), span, k)
    np.testing.assert_array_equal(parts, outputs)
    np.testing.assert_allclose(part_losses, losses, atol=1e-12)
    decoded = Candidates(candidates).decode(DenseWeights(W), span)
    np.testing.assert_array_equal(decoded, outputs[:, 0])


def test_equal_candidates_in_every_part(monkeypatch):
    """The number of different candidates is right, in results and in the error."""
    monkeypatch.setattr(search_module, "BLOCK", 4)
    candidates = np.tile([0.0, 1.0, 2.0], 5)
    span = Span(RBF(1.0), Y[:, 0])
    outputs, losses = Candidates(candidates).top(DenseWeights(W), span, 3)
    assert (np.sort(outputs, axis=1) == [0.0, 1.0, 2.0]).all()
    assert np.isfinite(losses).all()
    with pytest.raises(ValueError, match="there are 3 different candidates"):
        Candidates(candidates).top(DenseWeights(W), span, 4)


def test_invalid_candidates_in_a_later_part(monkeypatch):
    """Every part is checked by fit."""
    monkeypatch.setattr(search_module, "BLOCK", 4)
    decoder = Candidates([*range(10), np.nan])
    with pytest.raises(ValueError, match="the candidates are not valid outputs"):
        OKTree(kernel="rbf", decoder=decoder).fit([[0.0], [1.0]], [1.0, 2.0])


def test_candidates_mapped_from_a_file(tmp_path, monkeypatch):
    """A memory map is read in parts, and never converted as a whole."""
    monkeypatch.setattr(search_module, "BLOCK", 64)
    vectors = np.random.default_rng(3).normal(size=(1000, 2)).astype(np.float32)
    np.save(tmp_path / "candidates.npy", vectors)
    mapped = np.load(tmp_path / "candidates.npy", mmap_mode="r")
    sizes = []
    kernel = RBF(1.0)
    check = RBF.check
    monkeypatch.setattr(RBF, "check", lambda self, y: sizes.append(len(y)) or check(self, y))
    model = OKTree(kernel=kernel, max_depth=2).fit(Y, Y)
    sizes.clear()
    found, losses = model.predict_top(Y[:5], k=4, candidates=mapped)
    assert max(sizes) <= 64
    expected = model.span_.inner(model.weight_matrix(Y[:5]), vectors.astype(float))
    best = np.argsort(-expected, axis=1)[:, :4]
    np.testing.assert_array_equal(found, vectors[best].astype(float))
    assert (np.diff(losses, axis=1) >= 0).all()


@pytest.mark.parametrize("decoder", ["auto", Sharpened(power=2.0)], ids=repr)
def test_a_list_for_each_row(decoder):
    """Every row is decoded as alone with its own candidates; short lists are filled up."""
    model = OKExtraTrees(5, kernel=RBF(1.0), decoder=decoder, random_state=0).fit(Y, Y)
    lists = [Y[:1], Y[2:7], np.repeat(Y[3:5], 2, axis=0)]
    found = model.predict(Y[:3], candidates=CandidateLists(lists))
    outputs, losses = model.predict_top(Y[:3], k=3, candidates=CandidateLists(lists))
    for i, listed in enumerate(lists):
        alone = model.predict(Y[i : i + 1], candidates=listed)[0]
        assert (found[i] == alone).all()
        assert (outputs[i, 0] == alone).all()
    assert np.isfinite(losses).sum(axis=1).tolist() == [1, 3, 2]


def test_wrong_lists():
    """Another number of lists, an empty list and a k that is not a number are refused."""
    tree = OKTree().fit([[0.0], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="there are 1 lists of candidates for 2 rows"):
        tree.predict([[0.0], [1.0]], candidates=CandidateLists([[1.0]]))
    with pytest.raises(ValueError, match="the list of candidates of row 1 is empty"):
        tree.predict([[0.0], [1.0]], candidates=CandidateLists([[1.0], []]))
    with pytest.raises(ValueError, match="'k' parameter of top"):
        tree.predict_top([[0.0]], k=0, candidates=CandidateLists([[1.0]]))


@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_array, pd.DataFrame])
def test_sparse_and_framed_candidates(form, monkeypatch):
    """Candidates may have any form that y may have, also in parts and in lists."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(30, 4))
    model = OKExtraTrees(20, kernel="hamming", min_samples_leaf=3, random_state=0)
    model.fit(rng.normal(size=(30, 2)), Y)
    X = rng.normal(size=(5, 2))
    expected = model.predict(X, candidates=Y[:9])
    np.testing.assert_array_equal(model.predict(X, candidates=form(Y[:9])), expected)
    lists = CandidateLists([form(Y[:9])] * 5)
    np.testing.assert_array_equal(model.predict(X, candidates=lists), expected)
    monkeypatch.setattr("okforest.decode.search.BLOCK", 4)
    np.testing.assert_array_equal(model.predict(X, candidates=form(Y[:9])), expected)
    with pytest.raises(ValueError, match="candidates is empty"):
        model.predict(X, candidates=form(Y[:0]))


def test_generators_are_refused():
    """Candidates are read several times."""
    model = OKTree().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"pass list\(candidates\)"):
        model.predict([[0.0]], candidates=(y for y in [0.0, 1.0]))


@pytest.fixture
def by_float64(monkeypatch):
    """Count the blocks that are searched in float64."""
    blocks = []
    search = search_module.search_all
    monkeypatch.setattr(
        search_module, "search_all", lambda *args: blocks.append(len(args[2])) or search(*args)
    )
    return blocks


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 300),
    d=st.integers(1, 9),
    k=st.integers(1, 5),
    digits=st.integers(0, 12),
    offset=st.sampled_from([0.0, 1.0, 1e4, -1e9]),
    scale=st.sampled_from([1e-200, 1e-30, 1.0, 1e15, 1e60, 1e100]),
)
def test_prepared_candidates_are_searched_as_others(seed, n, d, k, digits, offset, scale):
    """The choice is that of float64: near-ties, equal candidates, offsets and any scale."""
    rng = np.random.default_rng(seed)
    outputs = (rng.normal(size=(12, d)).round(digits) + offset) * scale
    candidates = (rng.normal(size=(n, d)).round(min(digits, 2)) + offset) * scale
    span = Span(Linear(), outputs)
    W = DenseWeights(rng.dirichlet(np.ones(12), size=4))
    k = min(k, len(np.unique(candidates, axis=0)))
    prepared = Candidates(candidates)
    for _ in range(2):
        found, losses = prepared.top(W, span, k)
        plain, expected = Candidates.once(prepared.outputs).top(W, span, k)
        size = np.square(np.abs(outputs).max() + np.abs(candidates).max()) * d
        np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-13 * size)
        differs = (found != plain).any(axis=2)  # only where costs differ by rounding
        assert (np.abs(losses - expected)[differs] <= 1e-13 * size).all()


def test_prepared_candidates_take_float32(by_float64):
    """Hardly any candidate is compared in float64, and an overflow is noticed."""
    candidates = Candidates(np.random.default_rng(1).normal(size=(5000, 2)))
    span = Span(Linear(), Y)
    candidates.top(DenseWeights(W), span, 3)
    assert by_float64 == []
    far = Candidates(1e100 * candidates.outputs)
    found, _ = far.top(DenseWeights(W), span, 1)
    assert by_float64
    best = np.square(far.outputs).sum(axis=1).argmin()
    np.testing.assert_array_equal(found[:, 0], np.repeat(far.outputs[[best]], len(W), axis=0))


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()], ids=repr)
def test_candidates_are_prepared_once(kernel, monkeypatch):
    """For each kernel, whatever reads them; the copies of a decoder forget it."""
    sizes = []
    check = type(kernel).check
    monkeypatch.setattr(
        type(kernel), "check", lambda self, y: sizes.append(len(y)) or check(self, y)
    )
    candidates = Candidates(np.random.default_rng(1).normal(size=(500, 2)))
    model = OKTree(kernel=kernel, max_depth=2).fit(Y, Y)
    model.predict(Y[:2], candidates=candidates)
    assert 500 in sizes
    sizes.clear()
    expected = model.predict(Y, candidates=candidates)
    assert max(sizes, default=0) < 500
    np.testing.assert_array_equal(model.predict(Y, candidates=candidates.outputs), expected)
    copied = pickle.loads(pickle.dumps(candidates))
    assert vars(copied).keys() == {"outputs"}
    np.testing.assert_array_equal(model.predict(Y, candidates=copied), expected)
    copied.set_params(outputs=candidates.outputs[:9])
    assert (model.predict(Y, candidates=copied)[:, None] == copied.outputs).all(axis=2).any(1).all()


def test_prepared_labels_and_new_classes():
    """Candidates that are no numbers, some unlike any training output."""
    y = np.array(["a", "b", "b", "c"])
    model = OKTree(kernel="dirac", max_depth=1).fit([[0], [1], [1], [0]], y)
    candidates = Candidates(["z", "b", "c", "y", "b"])
    for k in (1, 2):
        found, losses = model.predict_top([[0], [1]], k, candidates=candidates)
        plain, expected = model.predict_top([[0], [1]], k, candidates=candidates.outputs)
        assert found.tolist() == plain.tolist()
        np.testing.assert_allclose(losses, expected)
    sets = [{"x"}, {"x", "y"}, set(), {"y"}]
    model = OKTree(kernel="hamming", max_depth=1).fit([[0], [1], [2], [3]], sets)
    prepared = Candidates(sets)
    found = model.predict([[0], [3]], candidates=prepared)
    assert [*found] == [*model.predict([[0], [3]], candidates=sets)]


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 200),
    d=st.integers(1, 80),
    k=st.integers(1, 4),
    block=st.sampled_from([7, 64, 1000]),
)
def test_candidates_of_two_values_are_searched_as_bits(seed, n, d, k, block):
    """Two values in each coordinate, which may differ between coordinates, in any blocks."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, size=(n, d))
    candidates = rng.normal(size=d) + bits * rng.choice([0.0, -1.0, 2.5], size=d)
    outputs = rng.normal(size=(d + 1, d))
    W = DenseWeights(rng.dirichlet(np.ones(d + 1), size=3))
    k = min(k, len(np.unique(candidates, axis=0)))
    span, decoder = Span(Linear(), outputs), Candidates(candidates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "BLOCK", block)
        found, losses = decoder.top(W, span, k)
    assert decoder._prepared.vectors.values.dtype == np.uint64
    plain, expected = Candidates.once(decoder.outputs).top(W, span, k)
    np.testing.assert_allclose(losses, expected, atol=1e-10)
    np.testing.assert_array_equal(found, plain)


def test_a_third_value_needs_floats(monkeypatch):
    """Also in a later block than the first two."""
    monkeypatch.setattr(search_module, "BLOCK", 64)
    candidates = np.repeat([[0.0], [1.0], [0.5]], 60, axis=0)
    decoder = Candidates(candidates)
    assert OKTree().fit([[0.0]] * 2, [0.4, 0.5]).predict([[0.0]], candidates=decoder) == [0.5]
    assert decoder._prepared.vectors.values.dtype == np.float32
