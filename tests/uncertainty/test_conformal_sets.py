"""Conformal sets: p-values by definition, coverage, and true outputs that are not candidates."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import okforest
from okforest import OKExtraTrees, OKNeighbors, OKRandomForest, OKTree
from okforest.kernels import RBF, FromCallable, Precomputed
from okforest.segments import RandomSubseries, SegmentModel
from okforest.uncertainty import ConformalIntervals, ConformalSets
from reference import uncertainty as reference

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
LABELS = np.array(["a", "b", "c"])[
    (X[:, 0] + rng.normal(scale=0.7, size=60) > 0) * 2 - (X[:, 1] > 0)
]
ROUNDED = np.round(X + rng.normal(scale=0.3, size=X.shape))
EVERY_SCORE = ("margin", "distance", "normalized", "votes")


def oracle(fitted, calibration, new, name, candidates):
    """Return p-values, given (model, rows, outputs) of each part and one new input."""
    known, strange = [], []
    for model, rows, outputs in calibration:
        for w, y in zip(model.predict_weights(rows).toarray(), outputs, strict=True):
            y = np.array([y], dtype=candidates.dtype)
            known.append(reference.score(name, model.kernel_, model.outputs_, w, y, candidates))
            strange.append(model)
    values = []
    for j in range(len(candidates)):
        own_scores = {
            id(model): reference.score(
                name,
                model.kernel_,
                model.outputs_,
                model.predict_weights(new).toarray()[0],
                candidates[j : j + 1],
                candidates,
            )
            for model, _, _ in calibration
        }
        pairs = zip(known, strange, strict=True)
        count = sum(score >= own_scores[id(model)] - 1e-9 for score, model in pairs)
        values.append((1 + count) / (len(known) + 1))
    return values


@pytest.mark.parametrize("name", EVERY_SCORE)
@pytest.mark.parametrize(
    ("kernel", "y"), [("dirac", LABELS), (RBF(1.0), ROUNDED)], ids=["classes", "vectors"]
)
def test_p_values_by_definition(name, kernel, y, monkeypatch):
    """For a fitted model and for CV+, with all scores, whatever the blocks of rows."""
    monkeypatch.setattr("okforest.uncertainty.conformal.MAX_ENTRIES", 40)
    tree = OKExtraTrees(3, kernel=kernel, min_samples_leaf=4, random_state=0)
    model = clone(tree).fit(X[:30], y[:30])
    conformal = ConformalSets(model, method="prefit", conformity_score=name).fit(X[30:50], y[30:50])
    candidates = conformal.candidates_
    known = [np.array_equal(c, t) for t in y[30:50] for c in candidates]
    present = np.reshape(known, (20, len(candidates))).any(axis=1)
    found = conformal.p_values(X[50:53])
    # A missing truth counts as infinitely strange.
    parts = [(model, X[30:50][present], y[30:50][present])]
    for row, values in zip(X[50:53], found, strict=True):
        few = np.array(oracle(model, parts, row[None], name, candidates))
        expected = (few * (present.sum() + 1) + (~present).sum()) / 21
        np.testing.assert_allclose(values, expected)
    folds = KFold(3)
    cross = ConformalSets(
        tree, method="cross", conformity_score=name, cv=folds, candidates=candidates
    )
    cross.fit(X[:30], y[:30])
    parts = []
    for fitted, (_, left) in zip(cross.estimators_, folds.split(X[:30]), strict=True):
        parts.append((fitted, X[left], y[left]))
    assert cross.achievable_coverage_ == 1.0
    expected = oracle(None, parts, X[50:51], name, candidates)
    np.testing.assert_allclose(cross.p_values(X[50:51])[0], expected)


def test_sets_hold_outputs_of_high_p_values():
    """A set holds the candidates whose p-value exceeds 1 − coverage, most typical first."""
    model = ConformalSets(OKTree(kernel="dirac", max_depth=2), random_state=0).fit(X, LABELS)
    values = model.p_values(X)
    sizes = []
    for coverage in (0.3, 0.6, 0.9):
        sets = model.predict_sets(X, coverage)
        for members, row in zip(sets, values, strict=True):
            assert set(members) == set(model.candidates_[row > 1 - coverage + 1e-12])
            order = [row[model.candidates_.tolist().index(label)] for label in members]
            assert order == sorted(order, reverse=True)
        contained = [y in members for y, members in zip(LABELS, sets, strict=True)]
        assert sets.contain(LABELS).tolist() == contained
        assert sets.sizes.tolist() == [len(members) for members in sets]
        sizes.append(sets.sizes.sum())
    assert sizes == sorted(sizes)
    assert repr(sets).startswith("<PredictionSets of 60 rows, coverage 0.9, mean size")
    assert (sets[-1] == sets[59]).all()
    assert not sets.contain(["z"] * 60).any()
    with pytest.raises(ValueError, match="y has 2 outputs for 60 sets"):
        sets.contain(["a", "b"])
    with pytest.raises(IndexError):
        sets[60]


@pytest.mark.parametrize("name", EVERY_SCORE)
def test_coverage_of_split(name):
    """Over many calibrations of one model, the mean coverage lies in the proven range."""
    n, draws, coverage = 49, 60, 0.8
    rng = np.random.default_rng(3)

    def draw(n):
        X = rng.normal(size=(n, 2))
        return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.5)

    model = OKExtraTrees(20, kernel="dirac", min_samples_leaf=3, random_state=0).fit(*draw(200))
    reached = []
    for _ in range(draws):
        conformal = ConformalSets(model, method="prefit", conformity_score=name).fit(*draw(n))
        new, y = draw(100)
        reached.append(conformal.predict_sets(new, coverage).contain(y).mean())
    # At least 0.8, and with continuous scores at most 0.8 + 1/50; four standard errors of the mean.
    error = 4 * np.std(reached) / np.sqrt(draws)
    assert coverage - error < np.mean(reached) < coverage + 1 / (n + 1) + error + 0.02


@pytest.mark.parametrize("method", ["split", "cross", "oob"])
def test_methods_cover(method):
    """Every method reaches about the coverage, and its model predicts."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2))
    y = np.round(X[:, 0] + rng.normal(scale=0.8, size=500))
    forest = OKRandomForest(20, kernel=RBF(1.0), min_samples_leaf=5, random_state=0)
    model = ConformalSets(forest, method=method, random_state=0).fit(X[:250], y[:250])
    sets = model.predict_sets(X[250:], 0.8)
    assert 0.72 < sets.contain(y[250:]).mean() < 0.9
    assert model.n_calibration_ == {"split": 62, "cross": 250, "oob": 250}[method]
    assert len(model.estimators_) == (5 if method == "cross" else 1)
    assert (model.predict(X[:5]) == model.estimator_.predict(X[:5])).all()


def test_missing_truths_are_detected():
    """Where outputs are new, the warning gives the coverage that can be reached."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(400, 1)), np.arange(400.0)
    y[::2] = 0.0  # half of the outputs are unique
    forest = OKRandomForest(40, kernel=RBF(10.0), min_samples_leaf=5, random_state=0)
    train, test = slice(0, 300), slice(300, 400)
    for method in ("split", "cross", "oob"):
        model = ConformalSets(forest, method=method, random_state=0).fit(X[train], y[train])
        assert abs(model.achievable_coverage_ - 0.5) < 0.1
        with pytest.warns(UserWarning, match=r"5\d\.\d% .* are not among the candidates|cannot be"):
            sets = model.predict_sets(X[test], 0.9)
        assert (sets.sizes == len(model.candidates_)).all()
        assert sets.contain(y[test]).mean() == 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict_sets(X[test], 0.3)


def test_a_few_missing_truths_are_made_up_for():
    """Sets grow, so that the coverage holds although some outputs cannot be in a set.

    If calibration leaves out the rows whose output is missing, the coverage is too low.
    """
    rng = np.random.default_rng(4)
    reached, plain = [], []
    for seed in range(12):
        X = rng.normal(size=(500, 1))
        y = np.round(X[:, 0] * 2 + rng.normal(size=500))
        known = y[:400]
        candidates = np.unique(known)
        candidates = candidates[np.abs(candidates - 1.0) > 0.1]  # 1 is missing: about 16 %
        forest = OKExtraTrees(10, kernel=RBF(1.0), min_samples_leaf=5, random_state=seed)
        model = ConformalSets(
            forest, conformity_score="distance", candidates=candidates, random_state=seed
        )
        model.fit(X[:400], known)
        assert 0.7 < model.achievable_coverage_ < 0.95
        reached.append(model.predict_sets(X[400:], 0.6).contain(y[400:]).mean())
        finite = np.sort(model.scores_[0][np.isfinite(model.scores_[0])])
        assert len(finite) < len(model.scores_[0])
        model.scores_, model.n_calibration_ = [finite], len(finite)
        plain.append(model.predict_sets(X[400:], 0.6).contain(y[400:]).mean())
    assert abs(np.mean(reached) - 0.6) < 0.06
    assert np.mean(plain) < 0.54  # without the missing rows, about 0.84 · 0.6


def test_missing_truths_of_few_rows_are_detected():
    """It warns whenever sets hold every candidate because of missing truths, and only then."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    forest = OKRandomForest(20, kernel="dirac", random_state=0).fit(X, rng.integers(0, 6, 60))
    y = np.append(rng.integers(0, 6, 23), [77, 78])
    model = ConformalSets(forest, method="prefit").fit(X[:25], y)
    assert model.achievable_coverage_ == pytest.approx(0.92)
    with pytest.warns(UserWarning, match=r"8\.0% of the true outputs"):
        assert (model.predict_sets(X, 0.9).sizes == 6).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (model.predict_sets(X, 0.88).sizes < 6).any()


def test_few_calibration_rows():
    """A coverage that needs more rows warns; sets then hold every candidate."""
    model = ConformalSets(OKTree(kernel="dirac"), calibration_size=5 / 60, random_state=0)
    model.fit(X, LABELS)
    with pytest.warns(UserWarning, match="needs at least 9 calibration rows, and there are 5"):
        sets = model.predict_sets(X[:3], 0.9)
    assert sets.sizes.tolist() == [3, 3, 3]


def test_objects_pipelines_and_saving(tmp_path):
    """Sets of labels, scaled inputs, pickle and okforest.save."""
    y = [frozenset({"x"}) if label == "a" else frozenset({"x", label}) for label in LABELS]
    kernel = FromCallable(lambda a, b: float(len(a & b)), elementwise=True)
    pipeline = make_pipeline(StandardScaler(), OKNeighbors(5, kernel=kernel))
    model = ConformalSets(pipeline, method="cross", random_state=0).fit(X, y)
    sets = model.predict_sets(X[:4], 0.8)
    assert all(isinstance(output, frozenset) for members in sets for output in members)
    assert model.n_features_in_ == 2
    model = ConformalSets(OKTree(kernel="dirac", max_depth=3), random_state=0).fit(X, LABELS)
    okforest.save(model, tmp_path / "model.okforest")
    for copy in (okforest.load(tmp_path / "model.okforest"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.p_values(X), model.p_values(X))


def test_positions_frames_and_segments():
    """Positions in a Gram matrix stay positions; frames keep names; objects have no features."""
    kernel = RBF(base=Precomputed(X @ X.T))
    positions = rng.integers(0, 6, 60)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ConformalSets(OKExtraTrees(5, kernel=kernel, random_state=0), random_state=0)
    sets = model.fit(frame, positions).predict_sets(frame, 0.5)
    assert sets[0].dtype == positions.dtype
    assert model.feature_names_in_.tolist() == ["a", "b"]
    series = [rng.normal(size=20) + i % 2 for i in range(40)]
    learner = SegmentModel(RandomSubseries(n_segments=5), OKTree(kernel="dirac", random_state=0))
    model = ConformalSets(learner, random_state=0).fit(series, [i % 2 for i in range(40)])
    assert set(model.predict_sets(series[:3], 0.8)[1]) <= {0, 1}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "jackknife"}, "'method' parameter of ConformalSets .* 'jackknife'"),
        ({"conformity_score": "aps"}, "'conformity_score' parameter of ConformalSets .* 'aps'"),
        ({"calibration_size": 1.0}, r"'calibration_size' parameter .* in the range \(0.0, 1.0\)"),
        ({"candidates": []}, "candidates is empty"),
        ({"method": "oob"}, "method='oob' needs a bootstrapped forest"),
        ({"method": "oob", "estimator": OKExtraTrees(kernel="dirac")}, "has bootstrap=False"),
    ],
)
def test_errors(parameters, message):
    """Parameters that cannot work are named."""
    with pytest.raises(ValueError, match=message):
        ConformalSets(**{"estimator": OKTree(kernel="dirac")} | parameters).fit(X, LABELS)


def test_labels_of_another_type():
    """Text and numbers are not compared."""
    tree = OKTree(kernel="dirac").fit(X, LABELS)
    with pytest.raises(ValueError, match="text never equals a number"):
        ConformalSets(tree, method="prefit").fit(X, np.arange(len(X)))


def test_folds_of_any_integer():
    """Folds are shuffled, whatever the type of the number."""
    for cv in (4, np.int64(4)):
        model = ConformalSets(OKTree(kernel="dirac", max_depth=3), method="cross", cv=cv)
        model.set_params(random_state=0).fit(X, np.sort(LABELS))
        assert [len(one.classes_) for one in model.estimators_] == [3] * 4


def test_sets_are_ordered_by_their_scores():
    """With distances as scores, the outputs nearest to the mean come first."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 1))
    y = np.round(2 * X[:, 0] + rng.normal(size=200))
    tree = OKTree(max_depth=2, decoder="mean")
    model = ConformalSets(tree, conformity_score="distance", random_state=0).fit(X, y)
    sets = model.predict_sets(X[:20], 0.8)
    assert (sets.sizes > 1).all()
    for members, mean in zip(sets, model.predict(X[:20]), strict=True):
        assert (np.diff(np.abs(members - mean)) >= -1e-9).all()


def test_votes_for_outputs_that_are_not_candidates():
    """They count for no candidate."""
    X, y = np.zeros((10, 1)), np.array(list("aaaabbbccc"))
    tree = OKTree(kernel="dirac").fit(X, y)
    model = ConformalSets(
        tree, method="prefit", conformity_score="votes", candidates=["b", "c"]
    ).fit(X[4:], y[4:])
    sets = model.predict_sets(X[:1], 0.5)
    assert sets.sizes.tolist() == [2]
    np.testing.assert_allclose(sets.members.data, [-0.3, -0.3])


def test_normalized_scores_where_the_variance_is_zero():
    """A tree with one output in every leaf has no spread; the scores equal those by distance."""
    tree = OKTree(kernel=RBF(1.0), random_state=0).fit(X[:30], ROUNDED[:30])
    scores = {}
    for name in ("distance", "normalized"):
        model = ConformalSets(tree, method="prefit", conformity_score=name)
        scores[name] = model.fit(X[30:], ROUNDED[30:]).p_values(X[30:])
    np.testing.assert_allclose(scores["normalized"], scores["distance"])


@pytest.mark.parametrize("model", [ConformalSets, ConformalIntervals])
def test_inputs_without_rows(model):
    for inputs, message in (
        (None, "X is None; pass inputs"),
        (3.0, r"X is 3\.0; pass inputs"),
        ({"a": [1.0, 2.0]}, r"X is a dict.*pass a frame or an array: pandas\.DataFrame\(X\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model(OKTree()).fit(inputs, [1.0, 2.0])
