"""Invalid input raises a clear error in every model, and never crashes."""

from fractions import Fraction

import numpy as np
import pytest

from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTotallyRandomTrees, OKTree
from okforest.decode import Candidates, ExpectedLoss, Support
from okforest.kernels import FromCallable, Precomputed

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
y = rng.normal(size=20)

CASES = {
    "lengths differ": (X, y[:-1], {}, "inconsistent numbers of samples"),
    "no rows": (X[:0], y[:0], {}, "0 sample"),
    "one row": (X[:1], y[:1], {}, "minimum of 2 is required"),
    "no columns": (X[:, :0], y, {}, "0 feature"),
    "1-d inputs": (y, y, {}, "Expected 2D array"),
    "infinity in X": (np.where(X > 1, np.inf, X), y, {}, "Input X contains infinity"),
    "text in X": (np.full((20, 3), "a"), y, {}, "X has text in columns 0, 1, 2, such as 'a'"),
    "NaN in y": (X, np.where(y > 0, np.nan, y), {}, "Input y contains NaN"),
    "text in y": (X, ["a"] * 20, {}, r"y holds text, such as 'a'.*use kernel=Dirac\(\)"),
    "Gram matrix as y": (X, X @ X.T, {"kernel": Precomputed(X @ X.T)}, "must hold integer pos"),
    "position out of range": (X, np.arange(1, 21), {"kernel": Precomputed(X @ X.T)}, "position 20"),
    "unknown kernel": (X, y, {"kernel": "gaussian"}, "kernel='gaussian' is not known"),
    "capital letters": (X, y, {"kernel": "RBF"}, "kernel='RBF' is not known; did you mean 'rbf'"),
    "Gram matrix as kernel": (X, y, {"kernel": X @ X.T}, r"kernel=Precomputed\(K\)"),
    "wrong shape": (X, y, {"kernel": lambda a, b: a}, r"returned an array of shape \(20,\)"),
    "asymmetric": (X, y, {"kernel": lambda a, b: a[:, None] - b}, "is asymmetric"),
    "indefinite": (X, y, {"kernel": lambda a, b: -1.0 * np.equal.outer(a, b)}, "is indefinite"),
    "kernel fails": (X, y, {"kernel": FromCallable(lambda a, b: 1 / 0)}, "division by zero"),
    "unknown embedding": (X, y, {"embedding": "eigen"}, "'embedding' parameter of"),
    "no features": (X, y, {"kernel": "rbf", "embedding": "features"}, "lacks; use 'auto'"),
    "negative depth": (X, y, {"max_depth": -1}, "'max_depth' parameter of"),
    "zero leaf": (X, y, {"min_samples_leaf": 0}, "'min_samples_leaf' parameter of"),
}


@pytest.mark.parametrize(("X", "y", "params", "message"), CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "model", [OKTree, OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees]
)
def test_bad_fits(model, X, y, params, message):
    """The error names the value, what is expected, and a remedy."""
    with pytest.raises((ValueError, ZeroDivisionError), match=message):
        model(**params).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 0}, "'n_estimators' parameter"),
        ({"max_features": "all"}, "'max_features' parameter"),
        ({"max_features": 1.5}, "'max_features' parameter"),
        ({"max_features": True}, "'max_features' parameter"),
        ({"min_samples_leaf": True}, "'min_samples_leaf' parameter"),
        ({"max_features": np.float32(1.5)}, "'max_features' parameter"),
        ({"max_leaf_nodes": 1}, "'max_leaf_nodes' parameter"),
        ({"min_impurity_decrease": -1.0}, "'min_impurity_decrease' parameter"),
        ({"bootstrap": False, "max_samples": 5}, "has no effect with bootstrap=False"),
        ({"bootstrap": False, "oob_score": True}, "oob_score=True needs bootstrap=True"),
        ({"ccp_alpha": -0.1}, "'ccp_alpha' parameter"),
        ({"callback": 3}, "'callback' parameter"),
    ],
)
def test_bad_forest_parameters(params, message):
    """Parameters of forests."""
    with pytest.raises(ValueError, match=message):
        OKBagging(**params).fit(X, y)


def test_numbers_of_any_type():
    """Fractions may be numbers of NumPy or of the standard library."""
    for half in (np.float32(0.5), np.float16(0.5), Fraction(1, 2)):
        options = {"max_features": half, "max_samples": half, "min_samples_leaf": half / 10}
        found, expected = (
            OKBagging(3, random_state=0, **chosen).fit(X, y)
            for chosen in (options, {name: float(value) for name, value in options.items()})
        )
        np.testing.assert_array_equal(found.apply(X), expected.apply(X))


@pytest.mark.parametrize(
    "model", [OKTree, OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees]
)
def test_misspelt_parameters(model):
    """The error names the class, not a private base class."""
    message = rf"{model.__name__}\.__init__\(\) got an unexpected keyword argument 'n_estimator'"
    with pytest.raises(TypeError, match=message):
        model(n_estimator=5)


@pytest.mark.parametrize("model", [OKTree, OKExtraTrees, OKRandomForest, OKBagging])
def test_missing_outputs(model):
    """All models but totally randomised trees require y."""
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        model().fit(X, None)


def test_bad_weights():
    """Weights must be one per row, finite, non-negative, and positive for at least two rows."""
    for weight, message in (
        (np.ones(19), "sample_weight.shape"),
        (-np.ones(20), "Negative values"),
        (np.full(20, np.nan), "contains NaN"),
        (np.zeros(20), "at least one non-zero number|has 0 positive entries|leaves 0 rows"),
        (np.eye(20)[0], "has 1 positive entries; at least 2 rows must"),
        (np.full(20, 1e200), "rescale it to between 1e-100 and 1e100"),
        (np.full(20, 1e-200), "rescale it to between 1e-100 and 1e100"),
    ):
        with pytest.raises(ValueError, match=message):
            OKTree().fit(X, y, sample_weight=weight)


def test_bad_predictions():
    """Inputs that differ from the training inputs, and unknown decoders."""
    model = OKTree().fit(X, y)
    for method in (model.predict, model.predict_weights, model.apply, model.tree_kernel):
        with pytest.raises(ValueError, match="X has 2 features, but OKTree is expecting 3"):
            method(X[:, :2])
        with pytest.raises(ValueError, match="Input X contains infinity"):
            method(np.full((2, 3), np.inf))
    with pytest.raises(ValueError, match="decoder='nearest' is not known"):
        model.set_params(decoder="nearest").predict(X)


def test_constant_inputs_and_outputs_are_one_leaf():
    """A sample that cannot be split is a leaf, not an error."""
    for inputs, outputs in ((np.ones((20, 3)), y), (X, np.ones(20))):
        model = OKTree().fit(inputs, outputs)
        assert len(model.trees_.feature) == 1
        np.testing.assert_allclose(model.predict(X), outputs.mean())
        assert (model.feature_importances_ == 0).all()


def test_huge_values():
    """Values near the limits of float64 cause neither a crash nor an endless loop."""
    huge = np.array([[-1e308], [-1.0], [1.0], [1e308]])
    for random in ("best", "random"):
        model = OKTree(splitter=random, random_state=0).fit(huge, [0.0, 1.0, 2.0, 3.0])
        np.testing.assert_allclose(model.predict(huge), [0.0, 1.0, 2.0, 3.0])


def test_decoders_are_checked_before_growing():
    """Candidates unlike the outputs are an error of fit, not of the first prediction."""
    X = np.arange(12.0).reshape(-1, 2)
    with pytest.raises(ValueError, match="candidates has 3 values in each output"):
        OKTree(decoder=Candidates(np.zeros((2, 3)))).fit(X, X)
    with pytest.raises(ValueError, match="'majority' needs one label per row"):
        OKTree(decoder="majority").fit(X, X)


@pytest.mark.parametrize("method", ["predict", "predict_top"])
def test_decoders_are_not_candidates(method):
    """Only Candidates are, where the nearest are searched; its outputs are for other decoders."""
    X, Y = np.arange(6.0).reshape(-1, 1), np.arange(6.0)
    tree = OKTree().fit(X, Y)
    decoder = Candidates(Y[:2])
    with pytest.raises(ValueError, match="decoder Support; pass outputs, candidates=outputs"):
        getattr(tree, method)(X, candidates=Support())
    np.testing.assert_array_equal(tree.predict(X, candidates=decoder), [0, 1, 1, 1, 1, 1])
    tree.set_params(decoder=ExpectedLoss(lambda y, c: abs(y - c)))
    with pytest.raises(ValueError, match="decoder Candidates; pass outputs, candidates=candidates"):
        getattr(tree, method)(X, candidates=decoder)


def test_probabilities_need_classes():
    """The error names the kernels that have them."""
    tree = OKTree(kernel="rbf").fit([[0.0], [1.0]], [0.0, 1.0])
    assert not hasattr(tree, "predict_proba")
    with pytest.raises(AttributeError, match=r"kernel='rbf'.*with kernel='dirac'"):
        tree.predict_proba([[0.0]])
