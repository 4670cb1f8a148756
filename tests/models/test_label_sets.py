"""Models of label sets: outputs return in the form of y; probabilities; tuned decoders."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import okforest
from okforest import (
    OKBoost,
    OKExtraTrees,
    OKNeighbors,
    OKRandomForest,
    OKRidge,
    OKTree,
    select_power,
    tune_decoder,
)
from okforest.decode import ExpectedLoss, Parts, Sharpened, Threshold, TunableDecoder
from okforest.decode.base import HeldOut
from okforest.kernels import Hamming, Hierarchy, Normalized, Tuples
from okforest.metrics import (
    au_prc_scorer,
    example_f1_scorer,
    make_output_scorer,
    micro_f1_scorer,
    set_f1_score,
)
from okforest.uncertainty import ConformalSets, probabilities
from okforest.weights import SharpenedWeights, SparseWeights

X, Y = make_multilabel_classification(120, n_features=8, n_classes=4, random_state=0)
NAMES = np.array(["sea", "sand", "sun", "snow"])
SETS = [set(NAMES[row == 1].tolist()) for row in Y]
MODELS = [
    OKTree(max_depth=4),
    OKRandomForest(20, random_state=0),
    OKBoost(20, random_state=0),
    OKRidge(1.0),
    OKNeighbors(5),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kernel", ["hamming", "jaccard", "dice"])
def test_forms_of_y(model, kernel):
    """Sets, integers, booleans, sparse matrices and frames come back as what they were."""
    model = clone(model).set_params(kernel=kernel)
    expected = model.fit(X, Y).predict(X[:20])
    assert expected.dtype == Y.dtype
    assert set(np.unique(expected)) <= {0, 1}
    booleans = model.fit(X, Y.astype(bool)).predict(X[:20])
    assert booleans.dtype == bool
    assert (booleans == expected).all()
    sparse = model.fit(X, sp.csr_matrix(Y)).predict(X[:20])
    assert sp.issparse(sparse)
    assert (sparse.toarray() == expected).all()
    frame = model.fit(X, pd.DataFrame(Y, columns=NAMES)).predict(X[:20])
    assert frame.columns.tolist() == NAMES.tolist()
    assert (frame.to_numpy() == expected).all()
    named = model.fit(X, SETS).predict(X[:20])
    # Labels are sorted: ties of expected F1 may be broken differently.
    assert all(isinstance(labels, frozenset) for labels in named)
    scores = [
        set_f1_score(SETS[:20], [set(NAMES[row == 1]) for row in expected]),
        set_f1_score(SETS[:20], named),
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.1)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_probabilities(model):
    """Probabilities are weighted shares, between 0 and 1, with a column for each label."""
    model = clone(model).set_params(kernel="hamming").fit(X, SETS)
    assert model.classes_.tolist() == sorted(NAMES)
    P = model.predict_proba(X[:9])
    indicators = np.array([[label in s for label in sorted(NAMES)] for s in SETS])
    expected = np.clip(model.predict_weights(X[:9]) @ indicators, 0, 1)
    np.testing.assert_allclose(P, expected, atol=1e-9)


def test_other_kernels_have_no_probabilities():
    """The method exists with kernels on classes and label sets only."""
    model = OKTree().fit(X, Y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "classes_")


def test_linear_kernel_with_decoders_of_sets():
    """The linear kernel on indicators predicts means by default, and sets with their decoders."""
    model = OKRandomForest(20, decoder="expected_f1", random_state=0).fit(X, Y)
    assert set(np.unique(model.predict(X))) <= {0, 1}
    with pytest.raises(ValueError, match="predicts sets of labels"):
        OKTree(decoder="threshold").fit(X, X)


@pytest.mark.parametrize("y", [Y, SETS], ids=["matrix", "sets"])
def test_thresholds_tuned_out_of_bag(y):
    """A forest tunes its thresholds when it is fitted, and predicts with them."""
    decoder = Threshold("macro_f1")
    forest = OKRandomForest(30, kernel="hamming", decoder=decoder, oob_score=True, random_state=0)
    forest.fit(X, y)
    assert forest.decoder_.threshold.shape == (4,)
    assert forest.decoder == decoder
    by_hand = forest.decoder_.decode(forest.weight_matrix(X), forest.span_)
    assert list(map(str, forest.predict(X))) == list(map(str, by_hand))
    known = np.diff(forest.oob_weights_.indptr) > 0
    assert known.all()
    fixed = clone(forest).set_params(decoder="threshold").fit(X, y)
    assert not hasattr(fixed, "decoder_")
    score = set_f1_score(y, forest.oob_prediction_, average="macro")
    assert score >= set_f1_score(y, fixed.oob_prediction_, average="macro")
    assert forest.set_params(decoder="mode").predict(X).shape[0] == len(X)  # without another fit


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_tuned_decoders_inside_others(power):
    """Thresholds are tuned on sharpened weights, and on the part of a tuple."""
    forest = OKRandomForest(30, kernel="hamming", oob_score=True, random_state=0)
    sharpened = clone(forest).set_params(decoder=Sharpened(Threshold("macro_f1"), power)).fit(X, Y)
    W = SharpenedWeights(SparseWeights(sharpened.oob_weights_), power)
    held_out = [HeldOut(W, sharpened.span_, Y)]
    expected = Threshold("macro_f1").tune(held_out, sharpened.span_).threshold
    np.testing.assert_allclose(sharpened.decoder_.decoder.threshold, expected)
    found = sharpened.predict(X)
    assert found.shape == Y.shape
    if power == 1.0:
        pairs = list(zip(X[:, 0].tolist(), map(frozenset, SETS), strict=True))
        kernel = Tuples(["linear", "hamming"])
        both = clone(forest).set_params(
            kernel=kernel, decoder=Parts(["auto", Threshold("macro_f1")])
        )
        thresholds = both.fit(X, pairs).decoder_.decoders[1].threshold
        assert thresholds.shape == (4,)
        assert len(np.unique(thresholds)) > 1
        assert isinstance(both.predict(X[:1])[0][1], frozenset)


def test_power_of_a_tuned_decoder():
    """Thresholds are tuned again for each power."""
    forest = OKRandomForest(
        30, kernel="hamming", decoder=Threshold("macro_f1"), oob_score=True, random_state=0
    ).fit(X, Y)
    choice = select_power(forest, lambda true, found: float((true != found).mean()), [1.0, 3.0])
    losses = []
    for power in (1.0, 3.0):
        sharpened = clone(forest).set_params(decoder=Sharpened(Threshold("macro_f1"), power))
        losses.append((sharpened.fit(X, Y).oob_prediction_ != Y).mean())
    np.testing.assert_allclose(choice.losses, losses)


def test_decoders_set_after_the_fit():
    """They are tuned on the out-of-bag weights, if these were kept; never left from before."""
    forest = OKRandomForest(30, kernel="hamming", oob_score=True, random_state=0)
    for name in ("macro_f1", "micro_f1", "hamming"):
        expected = clone(forest).set_params(decoder=Threshold(name)).fit(X, Y).decoder_
        forest = forest if hasattr(forest, "trees_") else forest.fit(X, Y)
        forest.set_params(decoder=Threshold(name)).predict(X[:1])
        np.testing.assert_array_equal(forest.decoder_.threshold, expected.threshold)
    forest.set_params(decoder__threshold="micro_f1").predict(X[:1])
    assert np.ndim(forest.decoder_.threshold) == 0
    plain = OKRandomForest(5, kernel="hamming", random_state=0).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"no out-of-bag weights.*oob_score=True, or .*tune_decoder"
    ):
        plain.set_params(decoder=Threshold("macro_f1")).predict(X)


def test_tuning_in_a_pipeline():
    """The steps before the model are fitted in every fold."""
    model = OKBoost(10, kernel="hamming", random_state=0)
    alone = tune_decoder(model, X, Y, Threshold("macro_f1"))
    pipeline = make_pipeline(FunctionTransformer(), model)
    found = tune_decoder(pipeline, X, Y, Threshold("macro_f1"))
    np.testing.assert_array_equal(found.threshold, alone.threshold)
    pipeline.set_params(okboost__decoder=found).fit(X, Y).predict(X)


def test_models_without_out_of_bag_rows():
    """They raise an error that names the remedy, which works."""
    boost = OKBoost(15, kernel="hamming", decoder=Threshold("micro_f1"), random_state=0)
    with pytest.raises(ValueError, match="tune_decoder"):
        boost.fit(X, Y)
    with pytest.raises(ValueError, match="tune_decoder"):
        OKExtraTrees(5, kernel="hamming", decoder=Threshold("micro_f1")).fit(X, Y)
    decoder = tune_decoder(boost, X, Y)
    assert isinstance(decoder, Threshold)
    assert isinstance(decoder.threshold, float)
    assert not hasattr(boost, "outputs_")
    boost.set_params(decoder=decoder).fit(X, Y).predict(X)
    with pytest.raises(ValueError, match="nothing to tune"):
        tune_decoder(boost, X, Y, "threshold")


def test_tuning_with_labels_missing_in_a_fold():
    """A label that a fold has not seen is never predicted in it."""
    rare = [labels | ({"rare"} if i == 0 else set()) for i, labels in enumerate(SETS)]
    decoder = tune_decoder(OKTree(kernel="hamming"), X, rare, Threshold("macro_f1"))
    assert decoder.threshold.shape == (5,)


def test_untuned_decoders_of_users():
    """Any decoder with `tune` is tuned by forests."""

    class Sharpened(Threshold):
        def tune(self, held_out, span):
            assert len(held_out[0].outputs) > 100
            return Sharpened(0.25)

    forest = OKRandomForest(30, kernel="hamming", decoder=Sharpened("hamming"), random_state=0)
    assert forest.fit(X, Y).decoder_.threshold == 0.25
    assert issubclass(Sharpened, TunableDecoder)


def test_scikit_learn_tools():
    """Cross-validation, searches and scorers work with sets, and scorers with sparse matrices."""
    model = OKRandomForest(10, kernel="hamming", random_state=0)
    for y in (SETS, Y):
        assert cross_val_score(model, X, y, scoring=example_f1_scorer, cv=3).mean() > 0.4
        assert cross_val_score(model, X, y, scoring=micro_f1_scorer, cv=3).mean() > 0.4
        assert cross_val_score(model, X, y, scoring=au_prc_scorer, cv=3).mean() > 0.5
        assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()
    sparse = sp.csr_array(Y)  # cross_val_score does not take it
    assert example_f1_scorer(model.fit(X, sparse), X, sparse) > 0.4
    assert len(cross_val_predict(model, X, SETS, cv=3)) == len(X)
    score = make_output_scorer(lambda a, b: len(a ^ b))
    assert np.isfinite(cross_val_score(model, X, SETS, scoring=score, cv=3)).all()
    differences = make_output_scorer(lambda a, b: (a != b).sum())
    expected = differences(model.fit(X, Y), X, Y)
    for y in (sp.csr_array(Y), pd.DataFrame(Y, columns=NAMES)):
        assert differences(model.fit(X, y), X, y) == expected
    scores = {
        decoder: cross_val_score(
            clone(model).set_params(decoder=decoder), X, SETS, scoring=example_f1_scorer, cv=3
        ).mean()
        for decoder in ("threshold", "mode")
    }
    search = GridSearchCV(model, {"decoder": list(scores)}, scoring=example_f1_scorer, cv=3)
    search.fit(X, SETS)
    assert abs(scores["threshold"] - scores["mode"]) > 0.01
    assert search.cv_results_["mean_test_score"].tolist() == list(scores.values())
    assert search.best_params_["decoder"] == max(scores, key=scores.get)


@pytest.mark.parametrize("y", [SETS, Y, sp.csr_matrix(Y)], ids=["sets", "matrix", "sparse"])
def test_saving(tmp_path, y):
    """A loaded model has the labels, the form of y and the tuned thresholds."""
    model = OKRandomForest(10, kernel="hamming", decoder=Threshold("micro_f1"), random_state=0)
    model.fit(X, y)
    okforest.save(model, tmp_path / "sets.okforest")
    loaded = okforest.load(tmp_path / "sets.okforest")
    first, second = model.predict(X[:5]), loaded.predict(X[:5])
    assert type(first) is type(second)
    if sp.issparse(first):
        first, second = first.toarray(), second.toarray()
    assert first.tolist() == second.tolist()
    assert loaded.decoder_.threshold == model.decoder_.threshold


def test_candidates_and_top():
    """Candidates may be any sets; an empty list is an error."""
    model = OKRandomForest(10, kernel="jaccard", random_state=0).fit(X, SETS)
    candidates = [{"sea", "moon"}, {"snow"}]
    assert set(model.predict(X[:5], candidates=candidates)) <= set(map(frozenset, candidates))
    outputs, losses = model.predict_top(X[:2], 3)
    assert outputs.shape == losses.shape == (2, 3)
    with pytest.raises(ValueError, match="candidates is empty"):
        model.predict(X[:1], candidates=[])


def test_weights_of_labels():
    """Weights follow labels by name; trees then care for heavy labels most."""
    weights = {"sea": 100.0, "sand": 1.0, "sun": 1.0, "snow": 1.0}
    model = OKTree(kernel=Hamming(weights), max_depth=2).fit(X, SETS)
    single = OKTree(kernel="dirac", max_depth=1).fit(X, ["sea" in labels for labels in SETS])
    assert model.trees_.feature[0] == single.trees_.feature[0]


def test_hierarchies():
    """Class paths come back as class paths; other forms as they were; predictions are closed."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 3))
    paths = np.where(
        inputs[:, 0] > 0,
        np.where(inputs[:, 1] > 0, "1/1", "1/2"),
        np.where(inputs[:, 2] > 0, "2", "1@2"),
    )
    for model in (OKRandomForest(20, random_state=0), OKBoost(30, random_state=0), OKRidge(0.1)):
        model.set_params(kernel=Hierarchy())
        found = model.fit(inputs, paths.tolist()).predict(inputs)
        assert set(found) <= {"1/1", "1/2", "1", "2", "1@2", "1/1@2", "1/2@2", "1/1@1/2", ""}
        assert (found == paths).mean() > 0.7
        assert model.classes_.tolist() == ["1", "2", "1/1", "1/2"]
        assert au_prc_scorer(model, inputs, paths.tolist()) > 0.9
    names = ["1", "2", "1/1", "1/2"]
    parents = {"1": None, "2": None, "1/1": "1", "1/2": "1"}
    matrix = Hierarchy().check(paths.tolist())
    frame = pd.DataFrame([[int(name in s) for name in names] for s in matrix], columns=names)
    model = OKRandomForest(20, kernel=Hierarchy(parents), random_state=0).fit(inputs, frame)
    found = model.predict(inputs)
    assert found.columns.tolist() == names
    assert (found["1"] >= found["1/1"]).all()
    positions = OKRandomForest(20, kernel=Hierarchy([-1, -1, 0, 0]), random_state=0)
    again = positions.fit(inputs, frame.to_numpy()).predict(inputs)
    assert (again == found.to_numpy()).all()
    assert (positions.fit(inputs, frame).predict(inputs) == found).all(axis=None)


def depth_difference(true, predicted):
    """Return a loss of class paths, which are text."""
    return abs(true.count("/") - predicted.count("/"))


@pytest.mark.parametrize("kernel", [Hierarchy(), Normalized(Hierarchy()), 2.0 * Hierarchy()])
def test_class_paths_everywhere(kernel):
    """Losses of users, candidates, sets and probabilities have class paths, as predict has."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 2))
    paths = np.where(inputs[:, 0] > 0, np.where(inputs[:, 1] > 0, "1/1", "1/2"), "2").tolist()
    forest = OKRandomForest(40, kernel=kernel, oob_score=True, random_state=0).fit(inputs, paths)
    known = set(paths)
    for predicted in (forest.predict(inputs), forest.oob_prediction_):
        assert {path for text in predicted for path in text.split("@")} <= known | {"1"}
    top, losses = forest.predict_top(inputs[:4], 2)
    assert top.shape == losses.shape == (4, 2)
    assert set(top.ravel()) <= known
    assert set(probabilities(forest, inputs[:1]).outputs) == known
    sets = ConformalSets(forest, random_state=0).fit(inputs, paths).predict_sets(inputs[:4])
    assert {path for one_set in sets for path in one_set} <= known
    assert [one_set.tolist() for one_set in sets[1:3]] == [sets[1].tolist(), sets[2].tolist()]
    assert make_output_scorer(depth_difference)(forest, inputs, paths) > -0.3
    forest.set_params(decoder=ExpectedLoss(depth_difference))
    assert set(forest.predict(inputs)) <= known
    assert select_power(forest, depth_difference, [1.0, 2.0]).losses.shape == (2,)


def test_class_paths_in_tuples():
    """A part of a tuple comes back as it was given."""
    inputs = np.arange(6.0).reshape(-1, 1)
    y = [(float(i), "1/1" if i < 3 else "2") for i in range(6)]
    tree = OKTree(kernel=Tuples(["linear", Hierarchy()])).fit(inputs, y)
    assert tree.predict(inputs).tolist() == y
    assert tree.predict_top(inputs[:1], 1)[0].tolist() == [[y[0]]]
    assert tree.score(inputs, y) == 1.0


def test_frames_of_other_order():
    """Columns are compared by name; frames of ranks keep their labels."""
    frame = pd.DataFrame(Y, columns=NAMES)
    model = OKTree(kernel="hamming", max_depth=3).fit(X, frame)
    assert model.score(X, frame[NAMES[::-1]]) == model.score(X, frame)
    ranks = pd.DataFrame(np.argsort(np.argsort(X[:, :4])) + 1, columns=NAMES)
    for kernel in ("kendall", "spearman", "mallows"):
        model = OKTree(kernel=kernel, max_depth=3).fit(X, ranks)
        assert model.predict(X).columns.tolist() == NAMES.tolist()
        assert model.score(X, ranks[NAMES[::-1]]) == model.score(X, ranks)
