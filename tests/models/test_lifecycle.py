"""Out-of-bag estimates, warm starts, callbacks, pruning and compact models."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.tree import DecisionTreeRegressor

import okforest
from okforest import (
    OKBagging,
    OKExtraTrees,
    OKRandomForest,
    OKTotallyRandomTrees,
    OKTree,
    select_ccp_alpha,
)
from okforest.engine import apply
from okforest.kernels import RBF, Dirac, Linear, Normalized, Precomputed
from okforest.metrics import kernel_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2] > 0] + 0.1 * rng.normal(size=(80, 2))
LABELS = np.where(X[:, 0] > 0, "up", "down")


@pytest.mark.parametrize("weight", [None, rng.integers(1, 3, 80)], ids=["equal", "weighted"])
def test_out_of_bag_by_hand(weight):
    """Each row's weights are the mean over the trees it was not drawn for."""
    model = OKBagging(60, oob_score=True, random_state=0).fit(X, Y, weight)
    expected = np.zeros((80, 80))
    for i in range(80):
        trees = [t for t in range(60) if i not in model.trees_[t].members]
        for t in trees:
            tree = model.trees_[t]
            leaf = apply(tree, X[i : i + 1])[0, 0]
            members = slice(tree.begin[leaf], tree.end[leaf])
            times = tree.times[members]
            expected[i, tree.members[members]] += times / times.sum() / len(trees)
    np.testing.assert_allclose(model.oob_weights_.toarray(), expected)
    np.testing.assert_allclose(model.oob_prediction_, expected @ Y)
    score = r2_score(Y, expected @ Y, sample_weight=weight, multioutput="variance_weighted")
    assert model.oob_score_ == pytest.approx(score)


def test_out_of_bag_of_other_outputs():
    """Labels and RBF outputs have out-of-bag predictions too; a good model scores well."""
    model = OKRandomForest(50, kernel=Dirac(), oob_score=True, random_state=0).fit(X, LABELS)
    assert (model.oob_prediction_ == LABELS).mean() > 0.8
    model = OKRandomForest(50, kernel=RBF(), oob_score=True, random_state=0).fit(X, Y)
    assert 0.2 < model.oob_score_ < model.score(X, Y)


def test_rows_without_out_of_bag_trees():
    """Rows that were drawn for every tree give a warning and NaN predictions."""
    with pytest.warns(UserWarning, match="have no out-of-bag prediction; grow more trees"):
        model = OKBagging(2, oob_score=True, random_state=0).fit(X, Y)
    unknown = np.diff(model.oob_weights_.indptr) == 0
    assert unknown.any()
    assert np.isnan(model.oob_prediction_[unknown]).all()
    assert np.isfinite(model.oob_prediction_[~unknown]).all()
    assert np.isfinite(model.oob_score_)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_warm_start_gives_the_forest_grown_at_once(bootstrap):
    """warm_start adds trees; the forest does not depend on the number of steps."""
    at_once = OKExtraTrees(9, bootstrap=bootstrap, random_state=3).fit(X, Y)
    model = OKExtraTrees(4, bootstrap=bootstrap, random_state=3, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=9).fit(X, Y)
    for name, array in vars(at_once.trees_).items():
        assert np.array_equal(array, getattr(model.trees_, name)), name
    with pytest.warns(UserWarning, match="grows no trees"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="less than the 9 trees grown so far"):
        model.set_params(n_estimators=3).fit(X, Y)
    model.set_params(n_estimators=12)
    for X_new, Y_new, weight, message in (
        (
            X[:70],
            Y[:70],
            None,
            "X has 70 rows and differs from the previous fit; warm_start=True continues",
        ),
        (-X, Y, None, "X differs from the previous fit"),
        (X, -Y, None, "y differs from the previous fit"),
        (X, Y, np.arange(1.0, 81.0), "sample_weight differs"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X_new, Y_new, weight)
    with pytest.raises(ValueError, match="bootstrap differs"):
        model.set_params(bootstrap=not bootstrap).fit(X, Y)


@pytest.mark.parametrize(
    ("first", "then", "what"),
    [
        ({"kernel": "rbf"}, {"kernel": "linear"}, "kernel"),
        ({"kernel": RBF(1.0)}, {"kernel__sigma": 2.0}, "kernel"),
        ({"kernel": "rbf"}, {"embedding": "nystrom"}, "embedding or embedding_rank"),
        (
            {"kernel": "rbf", "embedding": "nystrom", "embedding_rank": 20},
            {"embedding_rank": 30},
            "embedding or embedding_rank",
        ),
        ({"kernel": "rbf", "embedding": "nystrom"}, {"embedding": "cholesky"}, "embedding or"),
        ({}, {"search_rank": 1}, "search_rank"),
        ({"search_rank": 1}, {"search_rank": None}, "search_rank"),
    ],
)
def test_warm_start_with_other_outputs_to_grow_on(first, then, what):
    """Trees of different kernels or approximations do not make one forest."""
    model = OKExtraTrees(2, warm_start=True, random_state=0, **first).fit(X, Y)
    with pytest.raises(ValueError, match=f"{what}.* differs from the previous fit"):
        model.set_params(n_estimators=4, **then).fit(X, Y)
    assert model.predict(X).shape == Y.shape  # the trees are still there


def test_warm_start_with_other_rules():
    """Exact forms of outputs are the same; rules of growth apply to new trees."""
    model = OKExtraTrees(2, kernel="rbf", warm_start=True, random_state=0).fit(X, Y)
    model.set_params(n_estimators=4, embedding="gram", max_depth=1, kernel=RBF()).fit(X, Y)
    nodes = np.diff(model.trees_.node_offsets)
    assert (nodes[:2] > 3).all()
    assert (nodes[2:] == 3).all()


def test_warm_start_with_outputs_that_the_previous_fit_lacked():
    """Totally randomised trees take y from the first fit on, or never."""
    model = OKTotallyRandomTrees(2, warm_start=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match="y differs from the previous fit"):
        model.set_params(n_estimators=4).fit(X, Y)
    assert len(model.fit(X).trees_) == 4


@pytest.mark.parametrize("bootstrap", [False, True])
def test_warm_start_with_weights(tmp_path, bootstrap):
    """Also after saving; weights changed in place are noticed, and do not change the model."""
    weight = np.arange(1.0, 81.0)
    at_once = OKExtraTrees(6, bootstrap=bootstrap, random_state=3).fit(X, Y, weight)
    model = OKExtraTrees(3, bootstrap=bootstrap, random_state=3, warm_start=True)
    okforest.save(model.fit(X, Y, weight), tmp_path / "model")
    model = okforest.load(tmp_path / "model").set_params(n_estimators=6)
    np.testing.assert_array_equal(model.fit(X, Y, weight).predict(X), at_once.predict(X))
    at_once.set_params(n_estimators=9, warm_start=True)
    weight[:40] = 1.0
    np.testing.assert_array_equal(model.predict(X), at_once.predict(X))
    with pytest.raises(ValueError, match="sample_weight differs from the previous fit"):
        at_once.fit(X, Y, weight)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    """After a refit with invalid arguments, the previous fit is complete."""
    model = OKBagging(20, oob_score=True, random_state=0).fit(X, Y)
    before, score = model.predict(X), model.oob_score_
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(X[:, :2], Y, sample_weight=-np.ones(80))
    assert model.oob_score_ == score
    np.testing.assert_array_equal(model.predict(X), before)


def test_out_of_bag_with_one_weight_for_all():
    """A scalar sample_weight applies to every row."""
    a = OKBagging(30, oob_score=True, max_samples=80, random_state=0).fit(X, Y, 2.0)
    b = OKBagging(30, oob_score=True, max_samples=80, random_state=0).fit(X, Y)
    assert a.oob_score_ == pytest.approx(b.oob_score_)


def test_callback_sees_progress_and_can_stop():
    """The callback receives the number of trees grown; an exception from it stops the fit."""
    seen = []
    model = OKExtraTrees(20, callback=seen.append, warm_start=True).fit(X, Y)
    assert seen[-1] == 20
    model.set_params(n_estimators=25).fit(X, Y)
    assert seen[-1] == 25

    def stop(done):
        raise StopIteration("enough")

    model = OKExtraTrees(20, callback=stop)
    with pytest.raises(StopIteration, match="enough"):
        model.fit(X, Y)
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize("seed", range(5))
def test_pruning_is_scikit_learns(seed):
    """With the linear kernel, the path and the pruned trees equal DecisionTreeRegressor's."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(150, 4)).astype(np.float32)
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=150)
    ours = OKTree(min_samples_leaf=8, random_state=0)
    theirs = DecisionTreeRegressor(min_samples_leaf=8, random_state=0)
    our_path = ours.cost_complexity_pruning_path(X, y)
    their_path = theirs.cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(our_path.ccp_alphas, their_path.ccp_alphas, atol=1e-12)
    np.testing.assert_allclose(our_path.impurities, their_path.impurities)
    for alpha in np.append(our_path.ccp_alphas[::4] * 1.0001, 0.01):
        ours.set_params(ccp_alpha=alpha).fit(X, y)
        theirs.set_params(ccp_alpha=alpha).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
        assert len(ours.trees_.feature) == theirs.tree_.node_count


@pytest.mark.parametrize("kernel", [Linear(), RBF(1.0)], ids=repr)
def test_pruned_trees_are_the_best_by_brute_force(kernel):
    """No pruned version of a small tree has a lower cost than the one chosen."""
    whole = OKTree(kernel=kernel, max_depth=3, random_state=0).fit(X[:40], Y[:40]).trees_[0]
    total = whole.weight[0]

    def prunings(node):
        yield whole.variance[node] / total, 1
        if whole.left[node] >= 0:
            for cost_l, n_l in prunings(whole.left[node]):
                for cost_r, n_r in prunings(whole.left[node] + 1):
                    yield cost_l + cost_r, n_l + n_r

    for alpha in (0.001, 0.01, 0.03, 0.1, 1.0):
        model = OKTree(kernel=kernel, max_depth=3, ccp_alpha=alpha, random_state=0)
        tree = model.fit(X[:40], Y[:40]).trees_
        leaves = tree.left < 0
        cost = tree.variance[leaves].sum() / total + alpha * leaves.sum()
        assert cost == pytest.approx(min(c + alpha * n for c, n in prunings(0)))


def test_pruned_forests_keep_their_contract():
    """Weights of pruned trees with categories and a bootstrap still sum to one."""
    codes = np.c_[X, rng.integers(0, 20, 80)]
    model = OKBagging(5, ccp_alpha=0.01, categorical_features=[4], random_state=0).fit(codes, Y)
    whole = OKBagging(5, categorical_features=[4], random_state=0).fit(codes, Y)
    assert len(model.trees_.feature) < len(whole.trees_.feature)
    np.testing.assert_allclose(model.predict_weights(codes).sum(axis=1), 1.0)


def test_alpha_by_cross_validation():
    """The chosen alpha has the lowest mean loss, which refitting pruned trees confirms."""
    X, y = load_diabetes(return_X_y=True)
    tree = OKTree(random_state=0)
    folds = KFold(4)
    choice = select_ccp_alpha(tree, X, y, cv=folds)
    assert choice.losses.min() == choice.losses[choice.values == choice.best][0]
    losses = []
    for train, test in folds.split(X):
        tree.set_params(ccp_alpha=choice.best).fit(X[train], y[train])
        losses.append(kernel_loss(tree, X[test], y[test]))
    assert np.mean(losses) == pytest.approx(choice.losses.min())
    assert tree.ccp_alpha > 0
    smaller = select_ccp_alpha(tree, X, y, cv=folds, one_standard_error=True)
    assert smaller.best >= choice.best
    assert len(choice.values) <= 100
    single = select_ccp_alpha(tree, X, y, cv=ShuffleSplit(1), one_standard_error=True)
    assert single.best > 0


@pytest.mark.parametrize(
    "kernel",
    [
        Precomputed(Y @ Y.T),
        RBF(1.0, base=Precomputed(Y @ Y.T)),
        Normalized(Precomputed(Y @ Y.T)) + 2.0 * Precomputed(np.eye(80)),
    ],
    ids=["plain", "base", "composed"],
)
def test_compact_keeps_the_training_block(kernel):
    """A compact model keeps the training block of the Gram matrix, and its predictions."""
    train = np.arange(10, 50)
    model = OKBagging(20, kernel=kernel, oob_score=True, random_state=0).fit(X[train], train)
    compact = model.compact()
    np.testing.assert_array_equal(compact.predict(X), model.predict(X))
    assert compact.score(X[train], train) == pytest.approx(model.score(X[train], train))
    assert not hasattr(compact, "oob_weights_")
    assert hasattr(model, "oob_weights_")
    with pytest.raises(ValueError, match="position 60, which is not in this block"):
        compact.score(X[60:62], np.array([60, 61]))


def test_compact_blocks_are_small():
    """The block is as large as the training set."""
    model = OKTree(kernel=Precomputed(np.eye(80))).fit(X[:5], np.arange(5)).compact()
    assert model.kernel_.gram.shape == (5, 5)
    assert model.kernel.gram.shape == (5, 5)


def test_the_span_follows_the_kernel_and_the_outputs():
    """Nothing that was kept for predictions outlives what it was computed from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = OKTree(kernel=RBF(1.0), max_depth=2).fit(X, X)
    model.predict(X)
    model.kernel_ = RBF(3.0)
    assert model.span_.kernel is model.kernel_
    model.outputs_ = X[::-1].copy()
    assert model.span_.outputs is model.outputs_


def test_limits_beyond_any_tree_are_no_limits():
    """Integers too large for the engine are as good as None."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    expected = OKTree(random_state=0, max_leaf_nodes=30).fit(X, X).trees_
    model = OKTree(random_state=0, max_depth=2**70, max_leaf_nodes=2**70).fit(X, X)
    assert len(model.trees_.left) == len(expected.left)
