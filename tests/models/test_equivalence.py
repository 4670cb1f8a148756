"""Special cases of output kernel trees, which equal well-known trees exactly."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree
from okforest.kernels import RBF, Dirac, Linear, Mahalanobis, Precomputed
from reference.trees import engine_as_nested

SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 25))]


def continuous(seed, n=300, p=6, q=3):
    """Return random data without tied splits, in single precision as scikit-learn's trees use."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p)).astype(np.float32)
    signal = np.c_[np.sin(5 * X[:, 0]), X[:, 1] * X[:, 2], X[:, 3] > 0.5]
    return X, signal[:, :q] + 0.3 * rng.normal(size=(n, q)), rng.uniform(size=(80, p)).astype("f4")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "limits",
    [
        {"max_depth": 4, "min_samples_leaf": 8},
        {"min_samples_leaf": 8},
        {"min_samples_split": 40, "min_samples_leaf": 6},
        {"max_leaf_nodes": 9, "min_samples_leaf": 5},
        {"min_impurity_decrease": 0.01, "min_samples_leaf": 5},
    ],
    ids=str,
)
def test_linear_kernel_is_a_multi_output_regression_tree(seed, limits):
    """OKTree with Linear predicts what scikit-learn's DecisionTreeRegressor does."""
    X, Y, X_new = continuous(seed)
    theirs_limits = dict(limits)
    if "min_impurity_decrease" in limits:  # theirs averages over outputs, ours sums
        theirs_limits["min_impurity_decrease"] /= Y.shape[1]
    ours = OKTree(random_state=seed, **limits).fit(X, Y)
    theirs = DecisionTreeRegressor(random_state=seed, **theirs_limits).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), rtol=1e-10)
    assert len(ours.trees_.feature) == theirs.tree_.node_count
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "limits", [{"max_depth": 3, "min_samples_leaf": 5}, {"min_samples_leaf": 10}], ids=str
)
def test_dirac_kernel_is_a_gini_classification_tree(seed, limits):
    """OKTree with Dirac predicts what scikit-learn's DecisionTreeClassifier does."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(200, 5)).astype(np.float32)
    y = np.array(["a", "b", "c"])[(3 * (0.6 * X[:, 0] + 0.4 * rng.uniform(size=200))).astype(int)]
    weight = rng.uniform(0.5, 1.0, size=200)  # so that no two splits, and no two votes, tie
    ours = OKTree(kernel="dirac", random_state=seed, **limits).fit(X, y, weight)
    theirs = DecisionTreeClassifier(random_state=seed, **limits).fit(X, y, weight)
    X_new = rng.uniform(size=(300, 5)).astype(np.float32)
    assert (ours.predict(X_new) == theirs.predict(X_new)).all()
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_mahalanobis_kernel_is_segals_tree(seed):
    """Splits with the kernel yᵀV⁻¹y are splits of the whitened outputs."""
    X, Y, X_new = continuous(seed)
    whitened = Y @ np.linalg.inv(np.linalg.cholesky(np.cov(Y.T))).T
    ours = OKTree(kernel=Mahalanobis(), max_depth=4, random_state=0).fit(X, Y)
    linear = OKTree(max_depth=4, random_state=0).fit(X, whitened)
    assert engine_as_nested(ours.trees_[0]) == engine_as_nested(linear.trees_[0])
    by_leaf = [Y[ours.apply(X) == leaf].mean(axis=0) for leaf in ours.apply(X_new)]
    np.testing.assert_allclose(ours.predict(X_new), by_leaf)


@pytest.mark.parametrize(
    "model", [OKTree, OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees]
)
@pytest.mark.parametrize("kernel", [Linear(), RBF(1.0), Dirac()], ids=repr)
def test_every_embedding_grows_the_same_trees(model, kernel):
    """Explicit features, Gram matrix, exact factor and Precomputed give the same trees."""
    X, Y, _ = continuous(7, n=100)
    y = np.round(Y[:, 0]).astype(int) if isinstance(kernel, Dirac) else Y
    models = [
        model(kernel=kernel, embedding=embedding, random_state=3).fit(X, y)
        for embedding in ("auto", "gram", "factor")
        + (("features",) if kernel.feature_dim(y) is not None else ())
    ]
    models.append(model(kernel=Precomputed(kernel(y)), random_state=3).fit(X, np.arange(100)))
    for other in models[1:]:
        assert np.array_equal(other.trees_.feature, models[0].trees_.feature)
        assert np.array_equal(other.trees_.threshold, models[0].trees_.threshold)
        assert np.array_equal(other.trees_.members, models[0].trees_.members)


def test_extra_trees_are_as_good_as_scikit_learns():
    """With the linear kernel, the forest has the loss of scikit-learn's, up to the seed."""
    X, Y, _ = continuous(0, n=400)
    losses = {"ours": [], "theirs": []}
    for seed in range(10):
        for name, model in (
            ("ours", OKExtraTrees(50, random_state=seed)),
            ("theirs", ExtraTreesRegressor(50, max_features="sqrt", random_state=seed)),
        ):
            predicted = model.fit(X[:200], Y[:200]).predict(X[200:])
            losses[name].append(((predicted - Y[200:]) ** 2).mean())
    spread = np.std(losses["ours"]) + np.std(losses["theirs"])
    assert abs(np.mean(losses["ours"]) - np.mean(losses["theirs"])) < spread


def test_shares_of_the_samples_are_rounded_up():
    """A float is a share of the rows, or of the rows that a bootstrap draws: 0.25 of 10 is 3."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    for name in ("min_samples_leaf", "min_samples_split"):
        for share, number in ((0.25, 3), (0.41, 5)):
            trees = [OKTree(random_state=0, **{name: v}).fit(X, X).trees_ for v in (share, number)]
            np.testing.assert_array_equal(trees[0].threshold, trees[1].threshold)
            forests = [
                OKBagging(5, max_samples=10, random_state=0, **{name: v}).fit(
                    np.tile(X, (4, 1)), np.tile(X, (4, 1))
                )
                for v in (share, number)
            ]
            np.testing.assert_array_equal(*(forest.trees_.threshold for forest in forests))
