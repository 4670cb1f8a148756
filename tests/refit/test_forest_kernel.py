"""The forest kernel: its Gram matrix by definition, its features, and its use in other methods."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import Lasso, SGDClassifier
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

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


def test_linear_machines():
    """Leaf features have 32-bit indices, which the linear and support vector machines need."""
    features = ForestKernel(FOREST).fit_transform(X, Y)
    assert features.indices.dtype == features.indptr.dtype == np.int32
    for machine in (
        SVC(kernel="linear", C=100.0),
        LinearSVC(C=10.0),
        SGDClassifier(random_state=0),
    ):
        assert machine.fit(features, Y).score(features, Y) > 0.9
    assert np.isfinite(Lasso(0.01).fit(features, Y).coef_).all()


def test_full_grown_trees():
    """A kernel that is zero between all rows gives a warning."""
    with pytest.warns(UserWarning, match="two different training rows is about 0"):
        ForestKernel(OKTotallyRandomTrees(10, random_state=0)).fit(X)


WEIGHT = np.random.default_rng(1).uniform(0.2, 3.0, 150)


def test_forest_kernel_weights_and_refits():
    """Weights of rows count, and a second fit leaves nothing of the first one."""
    kernel = ForestKernel(FOREST, features="nystrom", n_components=9, random_state=0)
    kernel.fit(X, Y, WEIGHT)
    plain = clone(FOREST).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(kernel.gram(X[:9]), plain.tree_kernel(X[:9]), atol=1e-12)
    kernel.set_params(features="gram").fit(X, Y)
    assert not hasattr(kernel, "projection_")
    kernel.set_params(features="leaves").fit(X, Y)
    assert not hasattr(kernel, "landmarks_")


def test_landmarks_are_different_rows():
    """Landmarks are drawn without replacement."""
    UNTIED = np.random.default_rng(0).normal(size=(150, 4))
    trees = OKTotallyRandomTrees(50, min_samples_leaf=2, random_state=0)
    kernel = ForestKernel(trees, features="nystrom", n_components=100, random_state=0).fit(UNTIED)
    assert len(np.unique(kernel.landmarks_.toarray(), axis=0)) == 100


def test_damaged_projection():
    """A damaged projection is found when a kernel is read."""
    kernel = ForestKernel(FOREST, features="nystrom", n_components=9, random_state=0).fit(X, Y)
    kernel.projection_ = kernel.projection_[:-1]
    with pytest.raises(ValueError, match="projection_ has shape"):
        kernel.check_state()


def test_names_of_stumps():
    """A tree of one leaf has its own name."""
    stumps = OKExtraTrees(3, max_depth=1, min_samples_leaf=75, kernel="dirac", random_state=0)
    kernel = ForestKernel(stumps).fit(X, Y * 0)
    assert kernel.get_feature_names_out().tolist() == ["tree0_leaf0", "tree1_leaf0", "tree2_leaf0"]
