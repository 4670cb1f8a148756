"""Graph Laplacians: by definition, as given by users, and for inputs of all kinds."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from okforest import OKExtraTrees, OKTree
from okforest.refit import CensoredForest, SemiSupervisedForest, knn_laplacian

INPUTS, SPECIES = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
X, LABELS = INPUTS[ORDER], SPECIES[ORDER]
Y = np.where(np.arange(150) < 30, LABELS, -1)
FOREST = OKExtraTrees(15, kernel="dirac", min_samples_leaf=2, random_state=0)


def test_given_laplacians():
    """A matrix, dense or sparse, and a function of X give the same result as the name."""
    expected = SemiSupervisedForest(FOREST).fit(X, Y).predict_weights(X).toarray()
    matrix = knn_laplacian(X)
    for laplacian in (matrix, matrix.toarray(), knn_laplacian):
        model = SemiSupervisedForest(FOREST, laplacian=laplacian).fit(X, Y)
        np.testing.assert_allclose(model.predict_weights(X).toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("inputs", [X, np.round(X), sp.csr_array(np.round(X))])
def test_neighbors_are_searched_in_blocks(inputs, monkeypatch):
    """Ctrl-C is heard between blocks of rows, which change nothing; equal rows are neighbours."""
    sizes, search = [], NearestNeighbors.kneighbors

    def remember(self, rows):
        sizes.append(rows.shape[0])
        return search(self, rows)

    whole = knn_laplacian(inputs, 5)
    graph = sp.csr_array(kneighbors_graph(inputs / abs(inputs).max(), 5)) != 0
    monkeypatch.setattr(NearestNeighbors, "kneighbors", remember)
    monkeypatch.setattr("okforest.refit.laplacian.BLOCK_PRODUCTS", 40 * 150 * 4)
    blocks = knn_laplacian(inputs, 5)
    assert sizes == [40, 40, 40, 30]
    np.testing.assert_allclose(blocks.toarray(), whole.toarray(), atol=1e-12)
    linked = (graph + graph.T).toarray()
    np.fill_diagonal(linked, True)
    np.testing.assert_array_equal(whole.toarray() != 0, linked)


def test_laplacian_by_definition():
    """The normalised Laplacian of a small graph, entry by entry."""
    points = np.array([[0.0], [1.0], [3.0], [7.0]])
    L = knn_laplacian(points, n_neighbors=1, sigma=2.0).toarray()
    W = np.zeros((4, 4))
    for i, j in ((0, 1), (1, 2), (2, 3)):
        W[i, j] = W[j, i] = np.exp(-((points[i, 0] - points[j, 0]) ** 2) / 8.0)
    D = W.sum(axis=1)
    np.testing.assert_allclose(L, np.eye(4) - W / np.sqrt(np.outer(D, D)))


BAD_LAPLACIANS = {
    "size": (np.eye(3), r"laplacian has shape \(3, 3\); expected \(150, 150\)"),
    "indefinite": (np.diag(np.r_[-1.0, np.ones(149)]), "negative eigenvalue -1"),
    "asymmetric": (np.triu(np.ones((150, 150))), "not symmetric"),
    "NaN": (np.full((150, 150), np.nan), "NaN or infinite"),
    "name": ("tree", "use 'knn', a matrix, a function"),
    "number": (3, r"laplacian is an array of shape \(\)"),
    "complex": (1j * np.eye(150), "type complex128, not a matrix of numbers"),
    "function": (lambda X: None, "the function of laplacian returned an array"),
}


@pytest.mark.parametrize(("laplacian", "message"), BAD_LAPLACIANS.values(), ids=BAD_LAPLACIANS)
def test_bad_laplacians(laplacian, message):
    """Each kind of bad matrix has its own error."""
    with pytest.raises(ValueError, match=message):
        SemiSupervisedForest(FOREST, laplacian=laplacian).fit(X, Y)


def test_large_indefinite_laplacian():
    """Large matrices are tested, too, by iterations or by their diagonal."""
    n = 1200
    inputs = np.random.default_rng(0).normal(size=(n, 2))
    y = np.where(np.arange(n) < 20, np.arange(n) % 2, -1)
    W = sp.eye_array(n, k=1) + sp.eye_array(n, k=-1)
    forest = OKExtraTrees(3, kernel="dirac", random_state=0)
    with pytest.raises(ValueError, match="negative eigenvalue"):
        SemiSupervisedForest(forest, laplacian=W).fit(inputs, y)
    SemiSupervisedForest(forest, laplacian=2.0 * sp.eye_array(n) - W).fit(inputs, y)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_scale_of_inputs(size):
    """The Laplacian does not depend on the unit of the inputs."""
    inputs = np.random.default_rng(0).normal(size=(60, 3))  # without ties
    expected = knn_laplacian(inputs).toarray()
    np.testing.assert_allclose(knn_laplacian(inputs * size).toarray(), expected, atol=1e-9)
    with_width = knn_laplacian(inputs * size, sigma=0.3 * size).toarray()
    np.testing.assert_allclose(with_width, knn_laplacian(inputs, sigma=0.3).toarray(), atol=1e-9)


def test_equal_rows():
    """Rows without any distance are linked with weight 1."""
    L = knn_laplacian(np.ones((4, 2)), n_neighbors=3).toarray()
    np.testing.assert_allclose(L, np.eye(4) - (1 - np.eye(4)) / 3)
    model = SemiSupervisedForest(FOREST).fit(np.repeat(X[:20], 10, axis=0), np.repeat(Y[:20], 10))
    assert np.isfinite(model.leaf_adjustments_).all()


def test_number_of_neighbours():
    """The parameter n_neighbors is passed to the function."""
    for model, y in ((SemiSupervisedForest(FOREST), Y), (CensoredForest(), X[:, 0])):
        named = model.set_params(laplacian="knn", n_neighbors=3).fit(X, y)
        values = named.predict(X)
        model.set_params(laplacian=lambda X: knn_laplacian(X, 3), n_neighbors=7)
        np.testing.assert_array_equal(model.fit(X, y).predict(X), values)


def test_inputs_without_distances():
    """Missing values and categories need another graph, or none."""
    inputs = np.where(X[0, 0] == X, np.nan, X)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=["m", "f"] * 75)
    for unsuitable in (inputs, frame):
        with pytest.raises(ValueError, match="laplacian='knn' measures distances"):
            SemiSupervisedForest(FOREST).fit(unsuitable, Y)
        SemiSupervisedForest(FOREST, laplacian=None).fit(unsuitable, Y)


def test_neighbours():
    """The number of neighbours is checked."""
    with pytest.raises(ValueError, match="at most 2 neighbours"):
        knn_laplacian([[0.0], [1.0], [2.0]], n_neighbors=3)


def test_nearly_indefinite_laplacians():
    """Eigenvalues below zero by rounding are accepted."""
    for bad, ok in ((-1e-3, False), (-1e-9, True)):
        matrix = np.diag(np.r_[bad, np.ones(149)])
        model = SemiSupervisedForest(FOREST, laplacian=matrix)
        if ok:
            model.fit(X, Y)
        else:
            with pytest.raises(ValueError, match="negative eigenvalue"):
                model.fit(X, Y)
    matrix = np.eye(150)
    matrix[0, 1] = 1e-3
    with pytest.raises(ValueError, match="not symmetric"):
        SemiSupervisedForest(FOREST, laplacian=matrix).fit(X, Y)


def test_few_rows_and_no_neighbours():
    """Few rows have fewer neighbours; none is an error."""
    model = SemiSupervisedForest(OKTree(kernel="dirac")).fit(X[:5], np.array([0, 1, 0, 1, -1]))
    assert len(model.transduction_) == 5
    with pytest.raises(ValueError, match="n_neighbors=0"):
        knn_laplacian([[0.0], [1.0], [2.0]], n_neighbors=0)
