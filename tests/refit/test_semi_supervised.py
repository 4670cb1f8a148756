"""Forests refitted on labelled and unlabelled rows: the linear problem, outputs, lifecycle."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV

import okforest
from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees
from okforest.kernels import RBF, FromCallable, Linear, Precomputed
from okforest.refit import Bounds, LabelledKFold, SemiSupervisedForest, knn_laplacian
from okforest.refit.laplacian import solve_smooth
from okforest.refit.leaves import Adjustments, LeafExpansion
from reference import refit as reference

INPUTS, SPECIES = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
X, LABELS = INPUTS[ORDER], SPECIES[ORDER]
Y = np.where(np.arange(150) < 30, LABELS, -1)
FOREST = OKExtraTrees(15, kernel="dirac", min_samples_leaf=2, random_state=0)


def moons(seed, n=300, n_labels=10):
    """Return two moons, and labels of which all but a few are -1."""
    inputs, moon = make_moons(n, noise=0.08, random_state=seed)
    rng = np.random.default_rng(seed)
    half = n_labels // 2
    labelled = [rng.choice(np.flatnonzero(moon == k), half, replace=False) for k in (0, 1)]
    y = np.full(n, -1)
    y[np.concatenate(labelled)] = moon[np.concatenate(labelled)]
    return inputs, moon, y


@given(st.integers(0, 1000), st.floats(0.01, 10.0), st.booleans())
def test_solution_is_stationary(seed, C, direct):
    """The direct and the iterative solution set the derivative by every leaf value to zero."""
    rng = np.random.default_rng(seed)
    inputs, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    forest = OKExtraTrees(5, min_samples_leaf=2, random_state=0).fit(inputs[:20], y[:20])
    expansion = LeafExpansion(forest.trees_)
    L = expansion.rows(forest.apply(inputs))
    B = Adjustments.create(L, expansion.means, "leaves", 0.5, 1.0)
    smooth = sp.csr_array(C * knn_laplacian(inputs, 4))
    weight = np.where(np.arange(50) < 20, 1.5, 0.0)
    f0 = forest.predict(inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("okforest.refit.laplacian.DENSE", 50 if direct else 49)
        found = solve_smooth(B, f0, y, weight, smooth, tol=1e-9, max_iter=2000)
    assert found.converged
    dense = reference.leaf_matrix(forest, inputs)
    assert dense.shape == L.shape
    change = B.leaf_values(found.v)
    f = f0 + L @ change
    slope = weight[:, None] * (f - y) + smooth @ f
    gradient = L.T @ slope + 0.5 / 5 * change
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    expected = 0.5 * (
        0.5 / 5 * (change**2).sum()
        + (weight[:, None] * (f - y) ** 2).sum()
        + np.trace(f.T @ (smooth @ f))
    )
    assert found.objective == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("priors", [[], [Bounds(-100.0)]], ids=["direct", "priors"])
def test_objective_by_definition(priors):
    """The attribute is the minimum of the programme as it is printed, by both solvers."""
    if priors:
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
    forest = OKExtraTrees(10, min_samples_leaf=3, random_state=0)
    y = np.where(np.arange(150) < 40, X[:, 0] * 2.0, np.nan)
    model = SemiSupervisedForest(
        forest, laplacian_penalty=0.3, leaf_penalty=0.5, priors=priors, tol=1e-8
    ).fit(X, y)
    values = model.leaf_adjustments_ @ model.basis_ @ y[:40]
    f, away = model.predict(X), model.predict(X) - y[:40].mean()
    smooth = 0.3 * away @ (knn_laplacian(X, 7) @ away)
    expected = ((f[:40] - y[:40]) ** 2).sum() + smooth + 0.5 / 10 * (values**2).sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-4)


def test_columns_do_not_matter():
    """Solving for features, or for the weights of outputs, gives the same predictions in H."""
    kernel = Precomputed(np.equal.outer(LABELS, LABELS).astype(float))
    # The structure of these trees does not depend on the outputs.
    trees = OKTotallyRandomTrees(15, kernel="dirac", min_samples_leaf=2, random_state=0)
    by_features = SemiSupervisedForest(trees, regrow=False).fit(X, Y)
    same = OKTotallyRandomTrees(15, kernel=kernel, min_samples_leaf=2, random_state=0)
    positions = np.where(Y >= 0, np.arange(150), -1)
    by_outputs = SemiSupervisedForest(same).fit(X, positions)
    assert by_features.basis_.shape == (3, 30)
    assert by_outputs.basis_.shape == (30, 30)
    one_hot = np.eye(3)[LABELS[:30]]
    np.testing.assert_allclose(
        by_features.predict_weights(X) @ one_hot,
        by_outputs.predict_weights(X) @ one_hot,
        atol=1e-8,
    )
    np.testing.assert_array_equal(LABELS[by_outputs.predict(X)], by_features.predict(X))


@pytest.mark.parametrize("adjust", ["leaves", "outputs"])
def test_training_rows_are_predicted_as_fitted(adjust):
    """Predictions of the training inputs are those that the refit found, and labels are kept."""
    model = SemiSupervisedForest(FOREST, adjust=adjust, regrow=False).fit(X, Y)
    predicted = model.predict(X)
    np.testing.assert_array_equal(model.transduction_[30:], predicted[30:])
    np.testing.assert_array_equal(model.transduction_[:30], LABELS[:30])
    assert (predicted == LABELS).mean() > 0.9
    assert model.predict_weights(X).shape == (150, 30)


def test_outputs_form_is_that_of_the_slides():
    """With adjusted outputs, f = K'Y' and the unlabelled Y' solve the least-squares problem.

    Y' is penalised by its distance from the forest's predictions, and f is smooth around the mean.
    """
    forest = OKExtraTrees(10, min_samples_leaf=3, random_state=0)
    y = np.where(np.arange(150) < 40, X[:, 0] * 2.0, np.nan)
    model = SemiSupervisedForest(
        forest, adjust="outputs", laplacian_penalty=0.3, output_penalty=0.02
    ).fit(X, y)
    L = reference.leaf_matrix(model.estimator_, X)
    counts = (L > 0).sum(axis=0)
    K = 10 * (L / counts) @ L.T
    laplacian = knn_laplacian(X).toarray()
    known, unknown = K[:, :40], K[:, 40:]
    Q = np.diag((np.arange(150) < 40).astype(float)) + 0.3 * laplacian
    mean = y[:40].mean()
    f0 = known @ y[:40] + unknown @ model.estimator_.predict(X[40:])
    target = np.where(np.arange(150) < 40, y - mean, 0.0)
    right = -unknown.T @ (Q @ (f0 - mean) - target)
    new = np.linalg.solve(unknown.T @ Q @ unknown + 0.02 * np.eye(110), right)
    np.testing.assert_allclose(model.predict(X), f0 + unknown @ new, atol=1e-8)
    huge = SemiSupervisedForest(forest, adjust="outputs", output_penalty=1e14).fit(X, y)
    np.testing.assert_allclose(huge.predict(X), f0, atol=1e-8)


@pytest.mark.parametrize("adjust", ["leaves", "outputs"])
def test_the_origin_does_not_matter(adjust):
    """Adding a constant to all outputs adds it to predictions, also with priors."""
    forest = OKExtraTrees(10, min_samples_leaf=3, random_state=0)
    y = np.where(np.arange(150) < 40, X[:, 0] * 2.0, np.nan)
    model = SemiSupervisedForest(forest, adjust=adjust, laplacian_penalty=0.3)
    expected = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X, y + 1e4).predict(X) - 1e4, expected, atol=1e-5)
    if adjust == "leaves":
        pytest.importorskip("clarabel", reason="Clarabel is not installed")
        bounded = SemiSupervisedForest(
            forest, laplacian_penalty=0.3, leaf_penalty=0.01, priors=[Bounds(-1e9)]
        )
        np.testing.assert_allclose(bounded.fit(X, y + 1e4).predict(X) - 1e4, expected, atol=1e-3)


def test_large_penalty_is_the_forest():
    """As the penalty grows, predictions approach the forest of the labelled rows."""
    for forest in (FOREST, OKRandomForest(15, kernel="dirac", random_state=0)):
        huge = SemiSupervisedForest(forest, leaf_penalty=1e12, regrow=False).fit(X, Y)
        plain = huge.estimator_.predict_weights(X).toarray()
        np.testing.assert_allclose(huge.predict_weights(X).toarray(), plain, atol=1e-9)
    none = SemiSupervisedForest(OKExtraTrees(10, random_state=0), laplacian=None)
    none.fit(X, X[:, 0] + 0.0)
    np.testing.assert_allclose(none.predict(X), X[:, 0], atol=1e-10)


def test_two_moons():
    """Ten labels and totally randomised trees separate two moons, also at new points."""
    trees = OKTotallyRandomTrees(50, kernel="dirac", random_state=0)
    found, new = [], []
    for seed in range(6):
        inputs, moon, y = moons(seed)
        model = SemiSupervisedForest(trees).fit(inputs, y)
        found.append((model.transduction_ == moon)[y < 0].mean())
        strong = SemiSupervisedForest(trees, laplacian_penalty=1.0).fit(inputs, y)
        inputs, moon, _ = moons(seed + 10)
        new.append((strong.predict(inputs) == moon).mean())
    assert np.mean(found) >= 0.98
    assert np.mean(new) >= 0.99


def test_new_rows_of_classes_follow_the_transduction():
    """Weights belong to a forest of all rows, whose outputs are one labelled row each."""
    trees = OKTotallyRandomTrees(20, kernel="dirac", random_state=0)
    model = SemiSupervisedForest(trees, laplacian_penalty=1.0).fit(X, Y)
    assigned = model.regrown_on_.toarray()
    np.testing.assert_array_equal(assigned.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.outputs_[assigned.argmax(axis=1)], model.transduction_)
    np.testing.assert_array_equal(assigned[:30], np.eye(30))
    plain = OKTotallyRandomTrees(20, kernel="dirac", random_state=0).fit(X, model.transduction_)
    np.testing.assert_allclose(model.predict_proba(X + 0.1), plain.predict_proba(X + 0.1))
    weights = model.predict_weights(X + 0.1).toarray()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    # A label of weight zero is predicted like an unlabelled row.
    weight = np.where(np.arange(150) == 3, 0.0, 1.0)
    wrong = np.where(np.arange(150) == 3, (LABELS[3] + 1) % 3, Y)
    model.fit(X, wrong, weight)
    assert model.outputs_[model.regrown_on_.toarray()[3].argmax()] == LABELS[3]


def test_leaves_without_labels():
    """Rows are renormalised over the leaves with labels; without any, the mean is predicted."""
    trees = OKTotallyRandomTrees(3, min_samples_leaf=1, random_state=0)
    y = np.full(150, np.nan)
    y[:4] = [0.0, 1.0, 2.0, 5.0]
    model = SemiSupervisedForest(trees, laplacian=None, leaf_penalty=1e12).fit(X, y)
    sums = np.asarray(model.predict_weights(X).sum(axis=1)).ravel()
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)
    reached = np.asarray(
        (
            LeafExpansion(model.estimator_.trees_).rows(model.estimator_.apply(X))
            @ model.leaf_means_
        ).sum(axis=1)
    ).ravel()
    assert (reached == 0).any()
    np.testing.assert_allclose(model.predict(X)[reached == 0], 2.0, atol=1e-9)


OUTPUTS = {
    "strings": ("dirac", [["a", "b", "c"][k] if k >= 0 else None for k in Y]),
    "object array": (
        "dirac",
        np.array([["a", "b", "c"][k] if k >= 0 else None for k in Y], dtype=object),
    ),
    "numbers": ("linear", np.where(Y >= 0, X[:, 0], np.nan)),
    "vectors": (RBF(1.0), np.where(Y[:, None] >= 0, X[:, :2], np.nan)),
    "masked": ("linear", np.ma.masked_array(X[:, 0], mask=Y < 0)),
    "series": ("linear", pd.Series(np.where(Y >= 0, X[:, 0], np.nan))),
    "frame": ("linear", pd.DataFrame(np.where(Y[:, None] >= 0, X[:, :2], np.nan))),
    "objects": (
        FromCallable(lambda a, b: len(a & b), elementwise=True),
        [frozenset([int(k)]) if k >= 0 else None for k in Y],
    ),
    "times": ("survival", np.where(Y[:, None] >= 0, X[:, [0, 0]], [-np.inf, np.inf])),
    "NaN times": ("survival", np.where(Y[:, None] >= 0, X[:, [0, 0]], np.nan)),
    "masked times": (
        "survival",
        np.ma.masked_array(
            np.rec.fromarrays([X[:, 0] > 0, X[:, 0]], names="event,time"),
            mask=[(bool(k < 0),) * 2 for k in Y],
        ),
    ),
    "masked and NaN": (
        "linear",
        np.ma.masked_array(np.where(Y >= 0, X[:, 0], np.nan), mask=np.arange(150) > 100),
    ),
    "lists of vectors": (
        "linear",
        [list(row) if k >= 0 else [float("nan")] * 2 for k, row in zip(Y, X[:, :2], strict=True)],
    ),
    "text and -1": (
        "dirac",
        np.array([["a", "b", "c"][k] if k >= 0 else -1 for k in Y], dtype=object),
    ),
    "list of NumPy integers": ("dirac", list(Y)),
    "integers as objects": ("dirac", Y.astype(object)),
    "column": ("linear", np.where(Y >= 0, X[:, 0], np.nan)[:, None]),
    "frame of labels": ("dirac", pd.DataFrame({"y": Y})),
    "float labels": ("dirac", Y.astype(float)),
    "None and -1": ("dirac", [int(k) if k >= 0 else [-1, None][i % 2] for i, k in enumerate(Y)]),
    "NA among text": (
        "dirac",
        pd.Series([["a", "b", "c"][k] if k >= 0 else pd.NA for k in Y], dtype="string"),
    ),
    "NA among booleans": (
        "dirac",
        pd.Series([bool(k) if k >= 0 else pd.NA for k in Y], dtype="boolean"),
    ),
}


@pytest.mark.parametrize(("kernel", "y"), OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_of_all_kinds(kernel, y):
    """Missing outputs are found in every form of y, and every kernel is predicted."""
    forest = OKExtraTrees(10, kernel=kernel, min_samples_leaf=2, random_state=0)
    model = SemiSupervisedForest(forest, laplacian_penalty=0.01, leaf_penalty=0.03).fit(X, y)
    np.testing.assert_array_equal(model.labelled_, Y >= 0)
    assert len(model.outputs_) == 30
    assert len(model.predict(X[:7])) == 7
    assert len(model.transduction_) == 150
    if model.kernel_.numeric:
        found, plain = (np.asarray(one.predict(X)) for one in (model, model.estimator_))
        assert ((found - plain) ** 2).mean() < 0.1 * np.var(plain)
    else:
        assert [str(v) for v in model.predict(X)] != []


LOOK_WRONG = {
    "-1 is a class": (np.where(np.arange(150) % 2, 1, -1), "all labelled rows have the class 1"),
    "text": (np.array(["a", "b", "-1"])[Y], "the text '-1' in y is a class"),
}


@pytest.mark.parametrize(("y", "message"), LOOK_WRONG.values(), ids=LOOK_WRONG)
def test_labels_that_look_wrong(y, message):
    """Outputs that are probably not what their type says give a warning."""
    with pytest.warns(UserWarning, match=message):
        SemiSupervisedForest(FOREST).fit(X, y)


def test_real_numbers_are_no_classes():
    """The Dirac kernel refuses real numbers, and says which kernel takes them."""
    with pytest.raises(ValueError, match="a number and not a class; use kernel='linear'"):
        SemiSupervisedForest(FOREST).fit(X, X[:, 0])


def test_regrow():
    """With vectors, a forest of the refitted predictions; weights are over labelled outputs."""
    y = np.where(Y[:, None] >= 0, X[:, :2], np.nan)
    forest = OKExtraTrees(15, kernel=RBF(1.0), min_samples_leaf=2, random_state=0)
    model = SemiSupervisedForest(forest, regrow=True).fit(X, y)
    expected = model.regrown_.predict_weights(X) @ model.regrown_on_
    np.testing.assert_allclose(model.predict_weights(X).toarray(), expected, atol=1e-12)
    default = SemiSupervisedForest(forest).fit(X, y)
    assert not hasattr(default, "regrown_")
    plain = default.predict_weights(X).toarray()
    np.testing.assert_allclose(model.regrown_on_, plain, atol=1e-12)


def test_weights_of_rows():
    """A labelled row of weight zero is as if it were unlabelled, for totally randomised trees."""
    trees = OKTotallyRandomTrees(10, kernel="dirac", min_samples_leaf=5, random_state=0)
    weight = np.ones(150)
    weight[:10] = 1e-30
    model = SemiSupervisedForest(trees, leaf_penalty=1e-4).fit(X, Y, weight)
    fewer = SemiSupervisedForest(trees, leaf_penalty=1e-4).fit(X, np.where(weight < 1, -1, Y))
    assert (model.predict(X) == fewer.predict(X)).mean() > 0.9


@pytest.mark.parametrize("regrow", [False, True])
def test_lifecycle(tmp_path, regrow):
    """Frames, saving, pickling; the score is the kernel R²."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SemiSupervisedForest(FOREST, regrow=regrow).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    okforest.save(model, tmp_path / "model")
    for same in (okforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict(frame), model.predict(frame))
    assert 0.5 < model.score(frame, LABELS) < 1
    model.basis_ = model.basis_[:, :-1]
    with pytest.raises(ValueError, match="basis_ has shape"):
        model.check_state()


def test_compact():
    """A compact model predicts the same outputs from a smaller Gram matrix."""
    K = np.equal.outer(LABELS, LABELS).astype(float)
    forest = OKExtraTrees(10, kernel=Precomputed(K), min_samples_leaf=2, random_state=0)
    model = SemiSupervisedForest(forest).fit(X, np.where(Y >= 0, np.arange(150), -1))
    small = model.compact()
    assert small.kernel_ is not model.kernel_
    assert len(pickle.dumps(small)) < len(pickle.dumps(model)) / 2
    np.testing.assert_array_equal(small.predict(X), model.predict(X))


def test_a_compact_model_has_a_compact_regrown_forest():
    """The out-of-bag estimates of that forest are dropped, too."""
    forest = OKRandomForest(30, kernel="dirac", oob_score=True, min_samples_leaf=2, random_state=0)
    model = SemiSupervisedForest(forest).fit(X, Y)
    small = model.compact()
    assert len(pickle.dumps(small.regrown_)) < len(pickle.dumps(model.regrown_)) / 2
    np.testing.assert_array_equal(small.predict(X), model.predict(X))


class LargeLeaves(Linear):
    """A kernel with a default for trees."""

    default_min_samples_leaf = 7


def test_leaves_of_the_regrown_forest():
    """They are as large as the first forest's, although its kernel differs."""
    y = np.where(np.arange(150) < 60, X[:, 0], np.nan)
    forest = OKExtraTrees(5, kernel=LargeLeaves(), random_state=0)
    model = SemiSupervisedForest(forest, regrow=True).fit(X, y)
    assert model.estimator_.min_samples_leaf_ == model.regrown_.min_samples_leaf_ == 7


ERRORS = {
    "all unlabelled": (Y * 0 - 1, "y has 0 labelled rows among 150"),
    "one label": (np.where(np.arange(150) == 3, 1, -1), "y has 1 labelled rows"),
    "length": (Y[:10], "inconsistent numbers of samples"),
    "partly missing": (np.tile([1.0, np.nan], (150, 1)), r"y\[0\] is partly NaN"),
    "none": (None, "requires y"),
}


@pytest.mark.parametrize(("y", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(y, message):
    """Each kind of bad output has its own error."""
    with pytest.raises(ValueError, match=message):
        SemiSupervisedForest(FOREST).fit(X, y)


def test_needs_trees():
    """Only trees and forests have leaves to refit."""
    with pytest.raises(TypeError, match="needs the leaves of a tree or a forest"):
        SemiSupervisedForest(OKBoost(kernel="dirac")).fit(X, Y)


def test_progress(capsys, monkeypatch):
    """Iterations of large problems are shown."""
    monkeypatch.setattr("okforest.refit.laplacian.DENSE", 10)
    SemiSupervisedForest(FOREST, verbose=1).fit(X, Y)
    assert "refit iterations" in capsys.readouterr().err


def test_score_of_labelled_rows():
    """Unlabelled rows do not count in the score, so that searches work on partly labelled data."""
    model = SemiSupervisedForest(FOREST).fit(X, Y)
    assert model.score(X, Y) == model.score(X[:30], LABELS[:30])
    weight = np.linspace(1.0, 2.0, 150)
    assert model.score(X, Y, weight) == model.score(X[:30], LABELS[:30], weight[:30])
    with pytest.raises(ValueError, match="y has no labelled row to score"):
        model.score(X, np.full(150, -1))
    search = GridSearchCV(
        SemiSupervisedForest(FOREST),
        {"laplacian_penalty": [0.1, 10.0]},
        cv=LabelledKFold(3),
        error_score="raise",
    )
    for y in (Y, [["a", "b", "c"][k] if k >= 0 else None for k in Y]):
        assert search.fit(X, y).best_params_ == {"laplacian_penalty": 0.1}


def test_labelled_folds():
    """Test parts share out the labelled rows, and training parts hold all unlabelled ones."""
    parts = list(LabelledKFold(3, shuffle=True, random_state=0).split(X, Y))
    tests = np.concatenate([test for _, test in parts])
    np.testing.assert_array_equal(np.sort(tests), np.arange(30))
    for train, test in parts:
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(150))
        assert set(LABELS[test]) == {0, 1, 2}
    numbers = np.where(np.arange(150) < 31, X[:, 0], np.nan)
    assert sorted(len(test) for _, test in LabelledKFold().split(X, numbers)) == [6, 6, 6, 6, 7]
    assert LabelledKFold(4).get_n_splits() == 4
    with pytest.raises(ValueError, match="y has 2 labelled rows"):
        next(LabelledKFold(3).split(X[:3], [0, 1, -1]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (3, "y is the single value 3"),
        ("abc", "y is the single value 'abc'"),
        (sp.csr_array(np.eye(20)), r"y is a sparse matrix.*pass y\.toarray\(\)"),
    ],
)
def test_outputs_that_are_no_collection(y, message):
    with pytest.raises(ValueError, match=message):
        SemiSupervisedForest().fit(np.ones((20, 2)), y)


def test_categories_have_no_distances():
    """The remedy in the message works."""
    frame = pd.DataFrame({"a": np.arange(20.0), "b": pd.Categorical(list("xyxz") * 5)})
    y = np.array([0, 1, -1, 1, -1] * 4)
    with pytest.raises(ValueError, match=r"complete numbers in X .*or pass laplacian=None"):
        SemiSupervisedForest().fit(frame, y)
    SemiSupervisedForest(laplacian=None).fit(frame, y)
