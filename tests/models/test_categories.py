"""Categories with many levels as coordinates, in every model that takes them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import okforest
from okforest import (
    OKBagging,
    OKBoost,
    OKEnsemble,
    OKExtraTrees,
    OKRandomForest,
    OKTotallyRandomTrees,
    OKTree,
)
from okforest._utils.codings import N_FOLDS, encode_levels, level_means
from okforest.engine import apply, check_trees, move_members
from okforest.inspection import export_text, leaf_clusters, leaf_rules
from okforest.kernels import Kendall
from reference.categories import coordinates, cross_fitted, moved, nested

MODELS = [OKExtraTrees, OKRandomForest, OKBagging, OKTree, OKBoost]


def table(n=400, n_levels=30, seed=0, n_outputs=1):
    """Return a frame with many levels, three levels and a number, on which outputs depend."""
    rng = np.random.default_rng(seed)
    city, colour = rng.integers(0, n_levels, n), rng.integers(0, 3, n)
    x = rng.standard_normal(n)
    effects = rng.standard_normal((n_levels, n_outputs))
    y = effects[city] + 0.5 * x[:, None] + 0.3 * colour[:, None]
    y += 0.3 * rng.standard_normal((n, n_outputs))
    X = pd.DataFrame({"city": [f"c{k:02}" for k in city], "x": x, "colour": colour})
    X["colour"] = pd.Categorical(np.array(["red", "green", "blue"])[colour])
    return X, y[:, 0] if n_outputs == 1 else y


def small(cls, **parameters):
    if cls is not OKTree:
        parameters = {"n_estimators": 8, **parameters}
    return cls(random_state=0, **parameters)


@given(
    seed=st.integers(0, 2**16),
    n=st.integers(12, 60),
    n_levels=st.integers(1, 12),
    r=st.integers(1, 5),
    weighted=st.booleans(),
)
def test_coordinates_equal_the_reference(seed, n, n_levels, r, weighted):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    Z = (
        rng.standard_normal((n, r)) * 2.0 ** -np.arange(r)
        + rng.standard_normal((n_levels, r))[level]
    )
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    weight[:2] = 1.0
    found, prior, reliability = level_means(level, Z, weight, n_levels + 2)
    centred = Z - np.average(Z, axis=0, weights=weight)
    expected, V, m, gap = coordinates(level, centred, weight, n_levels + 2)
    assume(gap > 1e-4)
    scale = np.abs(Z).max()
    signs = np.sign((V * found.directions).sum(axis=0))
    assert found.means.shape == expected.shape
    np.testing.assert_allclose(found.directions * signs, V, atol=1e-6)
    np.testing.assert_allclose(found.means * signs, expected, atol=1e-6 * scale, rtol=1e-6)
    np.testing.assert_allclose(prior, m, rtol=1e-4)
    assert 0.0 < reliability <= 1.0


def test_training_rows_are_encoded_by_the_other_folds():
    rng = np.random.default_rng(0)
    level, Z = rng.integers(0, 20, 120), rng.standard_normal((120, 1))
    weight = rng.choice([0.0, 1.0, 2.0], 120)
    coded = encode_levels(level[:, None].astype(float), {0: 20}, Z, weight, seed=7)
    fold = np.random.default_rng([7, N_FOLDS]).permutation(120) % N_FOLDS
    centred = Z - np.average(Z, axis=0, weights=weight)
    expected, V, m, _ = coordinates(level, centred, weight, 22)
    np.testing.assert_allclose(abs(coded.codings[0]), abs(expected), atol=1e-12)
    np.testing.assert_allclose(coded.values, coded.codings[0][level])
    cross = cross_fitted(level, fold, centred, weight, m)
    np.testing.assert_allclose(coded.growth * np.sign(V[0, 0]), cross, atol=1e-12)


def test_own_output_does_not_enter_the_coordinates_of_growth():
    rng = np.random.default_rng(1)
    codes, Z = rng.integers(0, 25, (200, 1)).astype(float), rng.standard_normal((200, 1))
    weight = np.ones(200)
    before = encode_levels(codes, {0: 25}, Z, weight, seed=3).growth
    Z[5] += 1e-4  # the prior, the mean and the scale hardly change
    after = encode_levels(codes, {0: 25}, Z, weight, seed=3)
    same_level = codes[:, 0] == codes[5, 0]
    assert abs(after.growth - before)[5] < 1e-6
    assert abs(after.growth - before)[same_level].max() > 1e-6


@pytest.mark.parametrize("cls", MODELS)
def test_many_levels_are_learnt_without_a_limit(cls):
    X, y = table(n=3000, n_levels=1500)
    model = small(cls).fit(X, y)
    assert [coding is None for coding in model.codings_] == [False, True, True]
    assert model.codings_[0].shape == (len(model.categories_[0]) + 2, 1)
    assert model.feature_importances_.shape == (3,)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_[0] > 0.3
    assert model.predict(X[:5]).shape == (5,)
    with pytest.raises(ValueError, match=r"has 1[0-9]{3} categories; at most 1024 are allowed"):
        small(cls, categorical_encoding="subsets").fit(X, y)


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("encoding", ["auto", "subsets", "target"])
def test_which_columns_are_encoded(cls, encoding):
    X, y = table()
    model = small(cls, categorical_encoding=encoding).fit(X, y)
    coded = {"auto": [True, False, False], "subsets": [False] * 3, "target": [True, False, True]}
    codings = getattr(model, "codings_", [None] * 3)
    assert [coding is not None for coding in codings] == coded[encoding]


@pytest.mark.parametrize("cls", MODELS)
def test_unknown_and_missing_levels_have_the_prior_mean(cls):
    X, y = table()
    model = small(cls).fit(X, y)
    rows = X[:3].assign(city=["new", None, np.nan])
    rows["x"], rows["colour"] = 0.0, "red"
    predicted = model.predict(rows)
    assert predicted[0] == predicted[1] == predicted[2]
    assert (model.codings_[0][-2:] == 0.0).all()


def test_missing_values_are_a_level():
    X, y = table()
    X.loc[::4, "city"] = None
    y[::4] += 5.0
    model = small(OKExtraTrees).fit(X, y)
    assert model.has_missing_.tolist() == [True, False, False]
    assert model.codings_[0][-2, 0] > model.codings_[0][:-2, 0].max()
    assert (model.codings_[0][-1] == 0.0).all()
    assert " or missing" in export_text(model, max_depth=3)


@pytest.mark.parametrize("cls", MODELS)
def test_leaves_hold_the_rows_that_reach_them(cls):
    X, y = table()
    model = small(cls).fit(X, y)
    if cls is OKBoost:
        return
    leaves = np.asarray(model.apply(X)).reshape(len(X), -1)
    trees = model.trees_
    assert (leaves[trees.members, trees.member_trees] == trees.member_leaves).all()
    check_trees(trees, len(trees.n_categories))
    W = model.predict_weights(X)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_moved_members_equal_the_reference(bootstrap):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    weight = rng.choice([0.5, 1.0, 2.0], 80)
    cls = OKRandomForest if bootstrap else OKExtraTrees
    trees = cls(6, random_state=0).fit(X, y, weight).trees_
    other = X + rng.standard_normal(X.shape)
    leaves = apply(trees, other)
    found = move_members(trees, leaves)
    check_trees(found, 2)
    for t in range(len(trees)):
        before, after = trees[t], found[t]
        leaf_of = {int(row): leaves[row, t] for row in before.members}
        assert nested(after) == moved(before, leaf_of)
        times = dict(zip(before.members, before.times, strict=True)) if bootstrap else {}
        for node in range(len(after.left)):
            rows = after.members[after.begin[node] : after.end[node]]
            drawn = np.array([times.get(row, 1) for row in rows])
            np.testing.assert_allclose(after.weight[node], (trees.row_weight[rows] * drawn).sum())
    assert (apply(found, other)[found.members, found.member_trees] == found.member_leaves).all()


@pytest.mark.parametrize("cls", [*MODELS, OKEnsemble])
def test_files_restore_the_encoding(cls, tmp_path):
    X, y = table()
    model = OKEnsemble([OKTree(), OKBoost(5)]) if cls is OKEnsemble else small(cls)
    model.fit(X, y)
    okforest.save(model, tmp_path / "model.okforest")
    loaded = okforest.load(tmp_path / "model.okforest")
    assert (loaded.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda codings: codings[0].__setitem__((0, 0), np.nan), "not finite"),
        (lambda codings: codings.__setitem__(0, codings[0][1:]), "a row for each of the 30"),
        (lambda codings: codings.__setitem__(1, codings[0]), "coordinates of a numeric column"),
        (lambda codings: codings.pop(), "2 entries, not 3"),
        (lambda codings: codings.__setitem__(0, None), "n_categories differ"),
    ],
)
def test_broken_codings_are_not_saved(change, message, tmp_path):
    model = small(OKTree).fit(*table())
    change(model.codings_)
    with pytest.raises(ValueError, match=message):
        okforest.save(model, tmp_path / "model.okforest")


@pytest.mark.parametrize("cls", [OKExtraTrees, OKRandomForest, OKBoost])
@pytest.mark.parametrize("n_levels", [30, 150])
def test_a_warm_start_equals_one_fit(cls, n_levels):
    X, y = table(n_levels=n_levels)
    whole = small(cls).fit(X, y)
    parts = small(cls, n_estimators=3, warm_start=True).fit(X, y)
    parts.set_params(n_estimators=8).fit(X, y)
    assert (parts.predict(X) == whole.predict(X)).all()
    parts.set_params(n_estimators=9)
    with pytest.raises(ValueError, match="y differs from the previous fit"):
        parts.fit(X, y + 1.0)
    with pytest.raises(ValueError, match=r"X (or categorical_encoding )?differs"):
        parts.fit(X.assign(x=-X["x"]), y)
    with pytest.raises(ValueError, match="X or categorical_encoding differs"):
        parts.set_params(categorical_encoding="subsets").fit(X, y)


def test_trees_that_ignore_outputs_split_subsets():
    X, y = table()
    assert not hasattr(small(OKTotallyRandomTrees).fit(X, y), "codings_")
    with pytest.raises(TypeError, match="has no parameter 'categorical_encoding'"):
        OKTotallyRandomTrees(categorical_encoding="target")
    with pytest.raises(ValueError, match="at most 1024 are allowed"):
        small(OKTotallyRandomTrees).fit(*table(n=3000, n_levels=2000))


def test_rules_name_the_levels_on_each_side():
    X, y = table()
    tree = OKTree(max_depth=3, random_state=0, categorical_features=["city"]).fit(X[["city"]], y)
    for cluster in leaf_clusters(tree):
        levels = set(X["city"].iloc[cluster.members])
        (condition,) = cluster.rule.conditions
        assert levels == set(condition.categories)
        np.testing.assert_allclose(cluster.variance, np.var(y[cluster.members]))
    sides = [set(rule.conditions[0].categories) for rule in leaf_rules(tree)]
    assert sum(map(len, sides)) == len(set().union(*sides)) == X["city"].nunique()


def test_several_outputs_have_several_coordinates():
    X, y = table(n=1000, n_outputs=6)
    model = OKExtraTrees(20, random_state=0).fit(X[:700], y[:700])
    assert model.codings_[0].shape[1] == 4
    assert model.trees_.n_categories.tolist() == [0, 0, 0, 0, 0, 3]
    subsets = OKExtraTrees(20, random_state=0, categorical_encoding="subsets").fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > subsets.score(X[700:], y[700:]) + 0.05


@pytest.mark.parametrize("kernel", ["dirac", "rbf", "kendall"])
def test_any_kernel(kernel):
    X, y = table(n=600, n_outputs=4)
    y = {
        "dirac": np.digitize(y[:, 0], [-1, 0, 1]),
        "kendall": 1 + np.argsort(np.argsort(y, 1), 1),
    }.get(kernel, y)
    kernel = Kendall() if kernel == "kendall" else kernel
    scores = [
        OKExtraTrees(20, kernel=kernel, random_state=0, categorical_encoding=encoding)
        .fit(X[:400], y[:400])
        .score(X[400:], y[400:])
        for encoding in ("target", "subsets")
    ]
    assert scores[0] > scores[1]


def test_gram_and_features_give_the_same_coordinates():
    X, y = table(n=200, n_outputs=3)
    features = OKTree(embedding="features", random_state=0).fit(X, y)
    gram = OKTree(embedding="gram", random_state=0).fit(X, y)
    for a, b in zip(features.codings_[0].T, gram.codings_[0].T, strict=True):
        np.testing.assert_allclose(a, b * np.sign(a @ b), atol=1e-8)


def test_the_frobenius_criterion_splits_coordinates():
    X, y = table(n=120)
    model = OKTree(criterion="frobenius", categorical_encoding="target", max_depth=3)
    assert model.fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match="set categorical_encoding='target'"):
        OKTree(criterion="frobenius").fit(X, y)


def test_out_of_bag_estimates_are_honest():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"k{k}" for k in rng.integers(0, 150, 400)]})
    forest = OKRandomForest(50, oob_score=True, random_state=0).fit(X, rng.standard_normal(400))
    assert forest.oob_score_ < 0.0  # levels are noise


def test_a_level_with_one_row_is_not_fitted():
    """Radon: one category and one binary column; full trees must not split noise within levels."""
    rng = np.random.default_rng(0)
    level, floor = rng.integers(0, 85, 900), rng.random(900) < 0.2
    y = 0.3 * rng.standard_normal(85)[level] - 0.6 * floor + 0.75 * rng.standard_normal(900)
    X = pd.DataFrame({"county": [f"c{k}" for k in level], "floor": floor.astype(float)})
    forest = OKRandomForest(40, random_state=0).fit(X[:600], y[:600])
    subsets = OKRandomForest(40, random_state=0, categorical_encoding="subsets").fit(
        X[:600], y[:600]
    )
    assert forest.score(X[600:], y[600:]) > subsets.score(X[600:], y[600:]) - 0.05


def test_max_features_counts_columns():
    X, y = table(n=300, n_outputs=6)
    rules = OKExtraTrees(max_features=1)._rules(3, 300.0, 6)
    assert rules.max_features == 2
    assert OKExtraTrees(max_features=None)._rules(3, 300.0, 6).max_features == 6
    assert OKExtraTrees(max_features="sqrt")._rules(9, 300.0, 9).max_features == 3
    OKExtraTrees(2, max_features=2).fit(X, y)


def test_categorical_columns_are_read_as_their_values():
    """The order of the categories, unused ones and missing values make no difference."""
    X, y = table()
    X.loc[::7, "city"] = None
    values = X["city"].to_numpy(dtype=object, na_value=None)
    order = [*np.random.default_rng(0).permutation(pd.unique(X["city"].dropna())), "unused"]
    stored = X.assign(city=pd.Categorical(values, categories=order))
    text, codes = small(OKRandomForest).fit(X, y), small(OKRandomForest).fit(stored, y)
    assert codes.categories_[0].tolist() == text.categories_[0].tolist()
    new = stored[:6].assign(city=pd.Categorical(["unused", None, *values[1:5]], categories=order))
    plain = X[:6].assign(city=["unused", None, *values[1:5]])
    for frames in ((X, stored), (plain, new)):
        assert (text.predict(frames[0]) == codes.predict(frames[1])).all()
