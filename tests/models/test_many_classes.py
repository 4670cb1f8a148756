"""Classes stay numbers through embedding, growth and prediction: memory does not grow with them."""

import tracemalloc

import numpy as np
import pytest

import okforest.weights.span as span_module
from okforest import OKBoost, OKExtraTrees, OKRandomForest, OKTree
from okforest.embedding import embed_for_search
from okforest.kernels import Dirac
from okforest.metrics import kernel_loss

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
LABELS = {
    "text": np.array(["b", "a", "d", "c", "e"])[(X[:, 0] * 2).astype(int) % 5],
    "integers": rng.integers(0, 40, 200) * 7,
    "objects": np.array([("x", str(i % 6)) for i in range(200)], dtype="U1")[:, 1].astype(object),
}
by_labels = pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
WEIGHT = rng.integers(0, 3, 200).astype(float)


@by_labels
def test_numbers_indicate_classes(y):
    """The embedding has the positions of classes; as a matrix it has the kernel's features."""
    kernel = Dirac().resolve(y)
    options = ("auto", None, "auto", np.ones(200), 0)
    embedding, search, share = embed_for_search(kernel, y, *options, classes=True)
    assert search is embedding
    assert (embedding.values.ndim, embedding.rank, share) == (1, len(kernel.classes), 1.0)
    np.testing.assert_array_equal(embedding.as_matrix().values, kernel.features(y))
    assert embed_for_search(kernel, y, *options)[0].values.ndim == 2
    assert (
        kernel.class_numbers(np.append(y[:3], y.dtype.type("zz" if y.dtype != int else -1))) is None
    )


@by_labels
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    "model",
    [
        OKTree(kernel="dirac", random_state=0),
        OKExtraTrees(5, kernel="dirac", random_state=0),
        OKRandomForest(5, kernel="dirac", random_state=0, max_leaf_nodes=20, ccp_alpha=0.1),
    ],
    ids=["tree", "extra-trees", "random forest"],
)
def test_trees_are_those_of_indicators(monkeypatch, model, y, weight):
    """Node for node, with the same variances and attributes."""
    found = model.fit(X, y, weight)
    trees, known = found.trees_, (found.embedding_, found.embedding_rank_, found.search_rank_)
    monkeypatch.setattr(Dirac, "class_numbers", lambda self, y: None)
    expected = model.fit(X, y, weight)
    for name, array in vars(expected.trees_).items():
        np.testing.assert_array_equal(getattr(trees, name), array)
    assert known == (expected.embedding_, expected.embedding_rank_, expected.search_rank_)


@by_labels
@pytest.mark.parametrize("model", [OKExtraTrees(5, random_state=0), OKBoost(3, random_state=0)])
def test_predictions_without_indicators(monkeypatch, model, y):
    """Labels, probabilities and losses are those of explicit features."""
    model.set_params(kernel="dirac").fit(X, y)
    assert model.span_.features is not None
    expected = model.predict(X), model.predict_proba(X), kernel_loss(model, X, y)
    expected += (model.score(X, y), model.predict_kernel(X[:9]))
    monkeypatch.setattr(span_module, "MANY_CLASSES", 1)
    monkeypatch.setattr(span_module, "CLASS_BYTES", 0)
    model.store_outputs(model.kernel_, model.outputs_)
    assert model.span_.features is None
    np.testing.assert_array_equal(model.predict(X), expected[0])
    np.testing.assert_allclose(model.predict_proba(X), expected[1], atol=1e-12)
    np.testing.assert_allclose(kernel_loss(model, X, y), expected[2], atol=1e-12)
    assert model.score(X, y) == pytest.approx(expected[3])
    np.testing.assert_allclose(model.predict_kernel(X[:9]), expected[4], atol=1e-12)


def test_memory_does_not_grow_with_classes():
    """Indicators of 4,000 labels of 3,000 classes would take 96 MB."""
    X, y = rng.normal(size=(4000, 3)), rng.integers(0, 3000, 4000)
    tracemalloc.start()
    forest = OKExtraTrees(2, kernel="dirac", random_state=0).fit(X, y)
    forest.predict(X[:100])
    forest.predict_proba(X[:100])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24e6
