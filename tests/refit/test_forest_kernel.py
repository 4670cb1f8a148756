"""The forest kernel: its Gram matrix by definition, its features, and its use in other methods."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import okforest
from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees
from okforest.refit import ForestKernel
from reference import refit as reference

X, Y = load_iris(return_X_y=True)
FOREST = OKExtraTrees(20, kernel="dirac", min_samples_leaf=5, random_state=0)


@pytest.mark.parametrize("forest", [FOREST, OKRandomForest(10, kernel="dirac", random_state=0)])
def test_gram(forest):
    """Inner products of leaf features are the forest's own kernel, or shares of common leaves."""
    kernel = ForestKernel(forest).fit(X, Y)
    features = kernel.transform(X[::10])
    assert sp.issparse(features)
    expected = kernel.estimator_.tree_kernel(X[::10])
    np.testing.assert_allclose((features @ features.T).toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(kernel.gram(X[::10]), expected, atol=1e-12)
    L = reference.leaf_matrix(kernel.estimator_, X[::10])
    shares = len(kernel.estimator_.trees_) * L @ L.T
    plain = ForestKernel(forest, weighted=False).fit(X, Y)
    np.testing.assert_allclose(plain.gram(X[::10]), shares, atol=1e-12)
    np.testing.assert_allclose(np.diag(plain.gram(X[::10])), 1.0)
    np.testing.assert_allclose(plain.gram(X[:5], X[::10]), plain.gram(X[::10], X[:5]).T)


def test_nystrom():
    """With all rows as landmarks the kernel is exact; with fewer it is close."""
    exact = ForestKernel(FOREST, features="gram").fit(X, Y)
    K = exact.transform(X)
    np.testing.assert_allclose(K, exact.gram(X), atol=1e-12)
    full = ForestKernel(FOREST, features="nystrom", n_components=150).fit(X, Y).transform(X)
    np.testing.assert_allclose(full @ full.T, K, atol=1e-8)
    errors = []
    for m in (10, 40, 100):
        few = ForestKernel(FOREST, features="nystrom", n_components=m, random_state=0).fit(X, Y)
        assert few.transform(X).shape == (150, m)
        errors.append(np.linalg.norm(few.transform(X) @ few.transform(X).T - K))
    assert errors[2] < 0.5 * errors[1] < 0.4 * errors[0]


def test_names():
    """Every feature has a name; dense features become frames."""
    kernel = ForestKernel(FOREST).fit(pd.DataFrame(X, columns=list("abcd")), Y)
    names = kernel.get_feature_names_out()
    assert len(names) == kernel.transform(pd.DataFrame(X, columns=list("abcd"))).shape[1]
    tree, leaf = names[7].removeprefix("tree").split("_leaf")
    assert kernel.estimator_.trees_[int(tree)].left[int(leaf)] == -1
    assert kernel.feature_names_in_.tolist() == list("abcd")
    nystrom = ForestKernel(FOREST, features="nystrom", n_components=3, random_state=0)
    frame = nystrom.set_output(transform="pandas").fit(X, Y).transform(X)
    assert frame.columns.tolist() == ["nystrom0", "nystrom1", "nystrom2"]
    assert ForestKernel(FOREST, features="gram").fit(X, Y).get_feature_names_out()[2] == "row2"


def test_other_methods():
    """Support vector machines, kernel principal components and spectral clustering use it."""
    machine = make_pipeline(ForestKernel(FOREST, features="gram"), SVC(kernel="precomputed"))
    assert cross_val_score(machine, X, Y, cv=3).min() > 0.9
    kernel = ForestKernel(FOREST, weighted=False).fit(X, Y)
    components = KernelPCA(2, kernel="precomputed").fit_transform(kernel.gram(X))
    assert components.shape == (150, 2)
    trees = OKTotallyRandomTrees(100, min_samples_leaf=5, random_state=0)
    similarity = ForestKernel(trees, weighted=False).fit(X).gram(X)
    clusters = SpectralClustering(3, affinity="precomputed", random_state=0).fit_predict(similarity)
    assert adjusted_rand_score(Y, clusters) > 0.6


@pytest.mark.parametrize("features", ["leaves", "gram", "nystrom"])
def test_saving(tmp_path, features):
    """A fitted transformer is saved and loaded; damage is found."""
    kernel = ForestKernel(FOREST, features=features, n_components=9, random_state=0).fit(X, Y)
    okforest.save(kernel, tmp_path / "kernel")
    same = okforest.load(tmp_path / "kernel")
    a, b = kernel.transform(X), same.transform(X)
    assert abs(a - b).max() == 0
    if features != "leaves":
        kernel.landmarks_ = kernel.landmarks_[:, :-1]
        with pytest.raises(ValueError, match="landmarks_"):
            kernel.check_state()


def test_needs_trees():
    """Only trees and forests have leaves."""
    with pytest.raises(TypeError, match="needs the leaves of a tree or a forest"):
        ForestKernel(OKBoost()).fit(X, Y)
