"""The examples of CONTRIBUTING.md work as they are printed."""

import pickle
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import okforest
from okforest import OKBoost, OKExtraTrees, OKTree

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="CONTRIBUTING.md is in the source tree")

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2))
LABELS = [{"sea"}, {"sea", "sand"}, {"forest"}, {"forest", "snow"}]
Y = [LABELS[i] for i in (X[:, 0] > 0) * 2 + (X[:, 1] > 0)]


@pytest.fixture
def page(monkeypatch, tmp_path):
    """Return the module that results from running the examples in a folder."""
    module = ModuleType("contributing")
    monkeypatch.setitem(sys.modules, "contributing", module)
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, PAGE, "exec"), vars(module))
    return module


def test_examples(page):
    """Every example runs, and there is one for each part."""
    assert {"SharedLabels", "FrequentLabels", "NearestRow", "Sentences"} <= vars(page).keys()
    assert Path("labels.okforest").exists()


def test_the_kernel(page):
    """It is positive semi-definite and refuses other outputs."""
    kernel = page.SharedLabels(0.5)
    outputs = kernel.check([*LABELS, set()])
    gram = kernel(outputs)
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    np.testing.assert_allclose(kernel.diag(outputs), np.diag(gram))
    np.testing.assert_allclose(gram[1], [2**-0.25, 2**0.5, 0, 0, 0])
    with pytest.raises(ValueError, match="y holds text; pass a set of labels for each row"):
        OKTree(kernel=kernel).fit(X, ["sea"] * 24)


def test_the_decoder(page):
    """Labels are counted; other outputs are refused when a model is fitted."""
    model = OKTree(kernel=page.SharedLabels(), decoder=page.FrequentLabels(), max_depth=1)
    predicted = model.fit([[0], [0], [0], [1]], [*LABELS[:2], LABELS[0], LABELS[2]]).predict([[0]])
    assert predicted.tolist() == [{"sea"}]
    with pytest.raises(ValueError, match="FrequentLabels predicts sets of labels; use"):
        OKTree(decoder=page.FrequentLabels()).fit(X, X)


@pytest.mark.parametrize("name", ["tree", "forest", "boosting", "model", "boosted model"])
def test_together(page, name, tmp_path):
    """They are searched, cloned, pickled and saved, with okforest's models and with each other."""
    model = {
        "tree": OKTree(random_state=0),
        "forest": OKExtraTrees(3, random_state=0),
        "boosting": OKBoost(3, learning_rate=1.0, random_state=0),
        "model": page.NearestRow(),
        "boosted model": OKBoost(3, learning_rate=1.0, base=page.NearestRow()),
    }[name].set_params(kernel=page.SharedLabels(), decoder=page.FrequentLabels())

    def accuracy(model, X, y):
        return np.mean([a == b for a, b in zip(model.predict(X), y, strict=True)])

    grid = {"kernel__power": [0.0, 1.0], "decoder__threshold": [0.3, 0.6]}
    search = GridSearchCV(clone(model), grid, scoring=accuracy, cv=2).fit(X, Y)
    model = search.best_estimator_
    assert accuracy(model, X, Y) > 0
    okforest.save(model, tmp_path / "model")
    for same in (pickle.loads(pickle.dumps(model)), okforest.load(tmp_path / "model")):
        assert same.predict(X).tolist() == model.predict(X).tolist()
        assert same.get_params().keys() == model.get_params().keys()


def test_the_state_of_the_model(page, tmp_path):
    """A file whose parts do not fit each other is refused."""
    model = page.NearestRow().fit(X, X)
    model.inputs_ = X[1:]
    okforest.save(model, tmp_path / "model")
    with pytest.raises(okforest.persistence.FileFormatError, match=r"inputs_ has shape \(23, 2\)"):
        okforest.load(tmp_path / "model")
