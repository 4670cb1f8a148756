"""Extreme outputs and weights, memory of large leaves, and misuse."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

import okforest.weights.leaves as leaves
import okforest.weights.span as span_module
from okforest import OKBagging, OKExtraTrees, OKTree
from okforest.kernels import RBF, Polynomial, Precomputed
from okforest.metrics import kernel_loss, output_loss

rng = np.random.default_rng(0)
X = rng.uniform(size=(200, 4)).astype(np.float32)
Y = rng.normal(size=(200, 3))


@pytest.mark.parametrize(
    "y",
    {
        "clusters": np.where(np.arange(200)[:, None] < 100, Y + 100, Y),
        "outlier": np.where(np.arange(200)[:, None] == 0, 1e5, Y),
        "offset": Y + 1e8,
        "small": Y * 1e-8,
        "large": Y * 1e8,
    }.values(),
    ids=["clusters", "outlier", "offset", "small", "large"],
)
@pytest.mark.parametrize("model", [OKTree, OKExtraTrees, OKBagging])
def test_every_form_grows_the_same_trees(model, y):
    """Gram matrix, factor and features agree as long as rounding errors allow."""
    models = [
        model(embedding=embedding, random_state=1).fit(X, y)
        for embedding in ("features", "gram", "factor")
    ]
    for other in models[1:]:
        assert np.array_equal(other.trees_.feature, models[0].trees_.feature)
        assert np.array_equal(other.trees_.threshold, models[0].trees_.threshold)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("model", [OKTree(), OKExtraTrees(2)], ids=["best", "random"])
def test_far_clusters_are_fitted_as_by_scikit_learn(model, n_outputs):
    """Outputs that differ by 1e-7 of their distance from the centre have leaves of their own."""
    far = np.where(X[:, :1] > 0.5, 1e7, -1e7)
    y = far + Y[:, :n_outputs]
    found = model.set_params(random_state=0).fit(X, y).predict(X)
    assert (model.trees_.left < 0).sum() == 200 * len(model.trees_)
    theirs = DecisionTreeRegressor(random_state=0).fit(X, y).predict(X).reshape(y.shape)
    assert ((found.reshape(y.shape) - y) ** 2).sum() <= ((theirs - y) ** 2).sum() + 1e-10


@pytest.mark.parametrize(
    ("criterion", "exponents"), [("variance", (-139, 139)), ("frobenius", (-69, 69))]
)
def test_all_scales_that_are_accepted_grow_the_same_trees(criterion, exponents):
    """Sums over rows and their squares neither overflow nor underflow at the limits."""
    model = OKTree(criterion=criterion, max_depth=4, random_state=0)
    expected = model.fit(X, Y).apply(X)
    for exponent in exponents:
        np.testing.assert_array_equal(model.fit(X, Y * 10.0**exponent).apply(X), expected)
        with pytest.raises(ValueError, match="squared norms of up to"):
            model.fit(X, Y * 10.0 ** (exponent + np.sign(exponent) * 3))


def test_the_frobenius_criterion_names_itself():
    """Where the other criterion can grow a tree, the error suggests it."""
    for scale in (1e75, 1e-75):
        with pytest.raises(ValueError, match="use criterion='variance'"):
            OKTree(criterion="frobenius").fit(X, Y * scale)
        OKTree().fit(X, Y * scale)


@pytest.mark.parametrize("outlier", [1e5, 1e7, 1e9])
def test_outliers_do_not_stop_the_growth(outlier):
    """Differences that are small beside an outlier are still learnt, as in scikit-learn."""
    y = Y[:, 0].copy()
    y[0] = outlier
    ours = OKTree(random_state=0).fit(X, y)
    theirs = DecisionTreeRegressor(random_state=0).fit(X, y)
    if outlier < 1e9:  # beyond, theirs only separates the outlier
        assert len(ours.trees_.feature) == theirs.tree_.node_count
    np.testing.assert_allclose(ours.predict(X), y)


@pytest.mark.parametrize("embedding", ["features", "gram", "factor"])
def test_least_decrease_is_met_up_to_rounding(embedding):
    """A decrease equal to min_impurity_decrease, up to rounding, is enough in every form."""
    labels = np.array(["a", "b", "c"] * 10)
    codes = np.unique(labels, return_inverse=True)[1][:, None].astype(float)
    model = OKTree(kernel="dirac", min_impurity_decrease=1 / 3, embedding=embedding)
    assert len(model.fit(codes, labels).trees_.feature) == 5


def test_large_leaves_make_no_large_matrix(monkeypatch):
    """With an explicit feature map, prediction allocates no n × n_train matrix."""
    model = OKExtraTrees(3, max_depth=2, random_state=0).fit(X, Y)
    labels = OKTree(kernel="dirac", max_depth=2).fit(X, Y[:, 0] > 0)
    expected = model.predict_weights(X) @ Y

    def refuse(*args):
        raise AssertionError("the matrix of weights was made")

    monkeypatch.setattr(leaves, "leaf_weights", refuse)
    monkeypatch.setattr(span_module, "BLOCK_BYTES", 1000)
    np.testing.assert_allclose(model.predict(X), expected)
    assert model.score(X, Y) < 1
    assert model.predict_kernel(X, scheme="average").shape == (200, 200)
    assert labels.score(X, Y[:, 0] > 0) < 1
    assert labels.predict(X).shape == (200,)


def test_rows_drawn_in_a_bootstrap():
    """As in scikit-learn: as many as in X, an integer, or a fraction of the sum of weights."""
    weight = np.where(np.arange(200) < 50, 0.0, 1000.0)
    for max_samples, weights, expected in (
        (None, None, 200),
        (None, weight, 150),  # rows of weight zero do not count
        (70, weight, 70),
        (0.5, None, 100),
        (0.5, weight, 75_000),
    ):
        model = OKBagging(5, max_samples=max_samples, random_state=0).fit(X, Y, weights)
        assert model.trees_.times.sum() == 5 * expected
    with pytest.warns(UserWarning, match="draws 1 rows for each tree. Rescale sample_weight"):
        assert OKBagging(5, max_samples=0.5).fit(X, Y, np.full(200, 0.01)).trees_.times.sum() == 5
    with pytest.warns(UserWarning, match=r"max_samples=0.01 of 200 rows draws 2 .* Increase it"):
        OKBagging(5, max_samples=0.01).fit(X, Y)
    for scale in (0.25, 3.0, 1e80):
        other = OKBagging(5, random_state=0).fit(X, Y, weight * scale)
        same = OKBagging(5, random_state=0).fit(X, Y, weight)
        np.testing.assert_array_equal(other.trees_.times, same.trees_.times)
    with pytest.raises(ValueError, match="would draw 75000000000 rows for each tree; at most"):
        OKBagging(5, max_samples=0.5).fit(X, Y, weight * 1e6)


def test_outputs_of_another_width_are_refused():
    """Outputs of different lengths are not broadcast."""
    model = OKTree(max_depth=3).fit(X, Y)
    message = "y has 1 values in each output; the training outputs have 3"
    with pytest.raises(ValueError, match=message):
        model.score(X, Y[:, 0])
    with pytest.raises(ValueError, match="candidates has 2 values"):
        model.predict(X, candidates=Y[:, :2])
    with pytest.raises(ValueError, match="y_pred has 1 values"):
        output_loss(RBF(1.0), Y, Y[:, 0])
    labels = OKTree(kernel="dirac").fit(X, np.where(Y[:, 0] > 0, "a", "b"))
    with pytest.raises(ValueError, match="text never equals a number"):
        labels.score(X, Y[:, 0] > 0)


@pytest.mark.filterwarnings("ignore:the kernel of this")
def test_a_fitted_model_keeps_its_kernel():
    """Changing a parameter of the kernel later, or in a search, does not affect fitted models."""
    model = OKTree(kernel=Polynomial(2), max_depth=3).fit(X, Y)
    before = model.score(X, Y)
    model.set_params(kernel__degree=4)
    assert model.score(X, Y) == before
    grams = [Y @ Y.T, np.eye(200)]
    base = OKTree(kernel=Precomputed(grams[0]))
    GridSearchCV(base, {"kernel__gram": grams}, cv=3).fit(X, np.arange(200))
    assert base.kernel.gram is grams[0]


def test_unfitted_models_raise():
    """Before fit, every method raises NotFittedError."""
    model = OKTree()
    for call in (model.predict, model.predict_weights, model.predict_kernel, model.apply):
        with pytest.raises(NotFittedError):
            call(X)
    for call in (model.score, lambda *args: kernel_loss(model, *args)):
        with pytest.raises(NotFittedError):
            call(X, Y)


def test_weights_of_scores_are_checked():
    """As in fit: one weight per row, finite and not negative."""
    model = OKTree(max_depth=3).fit(X, Y)
    for weight in (np.ones(3), -np.ones(200), np.full(200, np.nan)):
        with pytest.raises(ValueError, match=r"sample_weight|Negative|NaN"):
            model.score(X, Y, weight)


def test_inputs_inside_records():
    """A field of a structured array, whose rows are not contiguous, is accepted as X."""
    records = np.zeros(200, dtype=[("tag", "i1"), ("x", "f8", (4,))])
    records["x"] = X
    model = OKTree(random_state=0).fit(records["x"], Y)
    np.testing.assert_allclose(model.predict(records["x"]), Y)
