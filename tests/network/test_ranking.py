"""Ranked links: overall and for each vertex, with ties, names and blocks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest import OKExtraTrees
from okforest.network import InputSimilarity, NetworkCompletion
from okforest.network import links as ranking

KNOWN = np.arange(45)
NEW = np.arange(45, 60)


def small_model():
    return NetworkCompletion(OKExtraTrees(10, min_samples_split=5, random_state=0))


def fit_known(network):
    return small_model().fit(network.X[KNOWN], network.graph[KNOWN][:, KNOWN], network.names[KNOWN])


def test_ranked_links(network, monkeypatch):
    """Pairs are ordered by score, each once, without known links; blocks change nothing."""
    model = fit_known(network)
    X, names = network.X[NEW], network.names[NEW]
    table = model.rank_links(X, names, k=10_000)
    assert len(table) == 15 * 45 + 15 * 14 // 2
    assert (np.diff(table["score"]) <= 0).all()
    across = table[table["kind"] == "known-new"]
    position = {name: i for i, name in enumerate(network.names.tolist())}
    i = [position[name] - 45 for name in across["source"]]
    j = [position[name] for name in across["target"]]
    np.testing.assert_array_equal(across["score"], model.predict_links(X)[i, j])
    within = table[table["kind"] == "new-new"]
    assert (within["source"] < within["target"]).all()
    assert model.rank_links(X, names, k=7).tolist() == table[:7].tolist()

    known = model.rank_links(k=10_000)
    n_links = model.adjacency_.nnz // 2
    assert len(known) == 45 * 44 // 2 - n_links
    assert set(known["kind"]) == {"known-known"}
    linked = {(a, b) for a, b in zip(*network.graph.nonzero(), strict=True)}
    assert not any((position[a], position[b]) in linked for a, b, *_ in known.tolist())

    monkeypatch.setattr(ranking, "BLOCK_PAIRS", 100)
    in_blocks = model.rank_links(X, names, k=20)
    np.testing.assert_allclose(in_blocks["score"], table["score"][:20], rtol=1e-12)
    assert pd.DataFrame(table).columns.tolist() == ["source", "target", "score", "kind"]


def test_ranked_links_of_each_vertex(network, monkeypatch):
    """Every vertex has its own best links; blocks change nothing."""
    model = fit_known(network)
    X, names = network.X[NEW], network.names[NEW]
    links = model.rank_links(X, names, k=4, per_vertex=True)
    assert links["source"].tolist() == np.repeat(names, 4).tolist()
    scores = np.hstack([model.predict_links(X), model.predict_links(X, X)])
    scores[np.arange(15), 45 + np.arange(15)] = -np.inf  # a vertex is not linked with itself
    best = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    assert links["target"].tolist() == network.names[best].ravel().tolist()
    assert links["score"].tolist() == np.take_along_axis(scores, best, axis=1).ravel().tolist()
    kinds = np.where(best < 45, "known-new", "new-new")
    assert links["kind"].tolist() == kinds.ravel().tolist()

    known = model.rank_links(k=3, per_vertex=True)
    scores = model.predict_links()
    scores[model.adjacency_.toarray() > 0] = -np.inf
    np.fill_diagonal(scores, -np.inf)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :3]
    assert known["source"].tolist() == np.repeat(model.names_, 3).tolist()
    assert known["target"].tolist() == model.names_[best].ravel().tolist()

    monkeypatch.setattr(ranking, "BLOCK_PAIRS", 100)
    in_blocks = model.rank_links(X, names, k=4, per_vertex=True)
    assert in_blocks[["source", "target"]].tolist() == links[["source", "target"]].tolist()


def test_vertices_with_few_candidates(network):
    """A vertex that is linked with all others has no missing links; others have all of theirs."""
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1.0
    model = small_model().fit(network.X[:6], star)
    links = model.rank_links(k=10, per_vertex=True)
    assert links["source"].tolist() == np.repeat(np.arange(1, 6), 4).tolist()
    for vertex in range(1, 6):
        targets = links["target"][links["source"] == vertex]
        assert sorted(targets.tolist()) == sorted(set(range(1, 6)) - {vertex})


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=6),
    st.integers(1, 7),
    st.booleans(),
)
def test_top_pairs_keep_the_first_of_equal_scores(rows, top, per_row):
    """Adding blocks of rows gives the same pairs as one stable sort of all of them."""
    scores = np.array(rows, dtype=float)
    candidates = scores != 3
    pairs = ranking.TopPairs(top, per_row)
    for start in range(0, len(scores), 2):
        pairs.add(start, scores[start : start + 2], candidates[start : start + 2])
    every = np.argwhere(candidates).tolist()
    groups = [[(i, j) for i, j in every if i == row] for row in range(len(scores))]
    expected = [
        pair
        for group in (groups if per_row else [every])
        for pair in sorted(map(tuple, group), key=lambda pair: -scores[pair])[:top]
    ]
    assert list(zip(pairs.rows.tolist(), pairs.columns.tolist(), strict=True)) == expected
    assert pairs.scores.tolist() == [scores[pair] for pair in expected]


def test_ranked_links_name_rows_by_the_frame(network):
    """Names come from the index of a data frame; numbers are not converted to text."""
    model = fit_known(network)
    frame = pd.DataFrame(network.X[NEW], index=network.names[NEW])
    table = model.rank_links(frame.set_axis([f"f{i}" for i in range(5)], axis=1).to_numpy(), k=3)
    assert all(isinstance(name, int) for name in table["source"].tolist())
    assert all(name in network.names for name in table["target"][table["kind"] == "known-new"])


@pytest.mark.parametrize("known", [["a", "b", "c"], ["protein A", "protein B", "protein C"]])
def test_ranked_links_have_whole_names(known):
    """Names of known vertices may be shorter or longer than names of new ones."""
    model = InputSimilarity().fit(np.eye(3), np.ones((3, 3)) - np.eye(3), known)
    links = model.rank_links(np.eye(3)[:2], ["drug 1", "drug 2"])
    pairs = set(zip(links["source"].tolist(), links["target"].tolist(), strict=True))
    across = {(new, name) for new in ("drug 1", "drug 2") for name in known}
    assert pairs == across | {("drug 1", "drug 2")}


def test_known_vertices_are_not_new_ones(network):
    """A known vertex among new ones would be linked best with itself."""
    model = fit_known(network)
    frame = pd.DataFrame(network.X[KNOWN[:3]], index=network.names[KNOWN[:3]])
    for arguments in ((frame,), (network.X[KNOWN[:3]], network.names[KNOWN[:3]])):
        with pytest.raises(ValueError, match=r"among the new ones \(3\).*Call rank_links\(\)"):
            model.rank_links(*arguments)
