"""The classes of the guide on extending work as they are printed."""

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
from okforest.metrics import make_output_scorer

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="docs/ is only in the source tree")

rng = np.random.default_rng(0)
X = rng.uniform(size=(24, 2))
HOURS = (24 * X[:, 0] + 20) % 24


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the module that results from running the examples in a folder."""
    module = ModuleType("extending_guide")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        patch.chdir(tmp_path_factory.mktemp("guide"))
        for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(code, PAGE, "exec"), vars(module))
        yield module


def test_examples(page):
    """Every example runs, and there is one for each part."""
    assert {"TimeOfDay", "MeanTime", "Smoother", "Sentences"} <= vars(page).keys()
    assert Path("clock.okforest").exists()


def test_the_kernel(page):
    """It is positive semi-definite, knows that midnight is a time, and refuses missing times."""
    kernel = page.TimeOfDay()
    outputs = kernel.check([0, 24, 12, 6.0, 23.5])
    gram = kernel(outputs)
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    np.testing.assert_allclose(kernel.diag(outputs), np.diag(gram))
    np.testing.assert_allclose(gram[0], [1, 1, -1, 0, np.cos(np.pi / 24)], atol=1e-15)
    with pytest.raises(ValueError, match=r"y has missing times; pass hours such as 23\.5"):
        OKTree(kernel=kernel).fit(X[:2], [1.0, np.nan])


def test_the_decoder(page):
    """Times around midnight have a mean at midnight; other outputs are refused by fit."""
    model = OKTree(kernel=page.TimeOfDay(), decoder=page.MeanTime(), max_depth=1)
    model.fit([[0], [0], [1]], [23.0, 1.0, 12.0])
    np.testing.assert_allclose((model.predict([[0], [1]]) + 6) % 24, [6, 18])
    with pytest.raises(ValueError, match="MeanTime decodes times of day; use decoder='auto'"):
        OKTree(decoder=page.MeanTime()).fit(X, X)


@pytest.mark.parametrize("name", ["tree", "forest", "boosting", "model", "boosted model"])
def test_together(page, name, tmp_path):
    """They are searched, cloned, pickled and saved, with okforest's models and with each other."""
    model = {
        "tree": OKTree(random_state=0),
        "forest": OKExtraTrees(3, random_state=0),
        "boosting": OKBoost(3, learning_rate=1.0, random_state=0),
        "model": page.Smoother(),
        "boosted model": OKBoost(3, learning_rate=1.0, base=page.Smoother()),
    }[name].set_params(kernel=page.TimeOfDay(), decoder=page.MeanTime())
    scoring = make_output_scorer(page.minutes_apart)
    grid = {"kernel__period": [24.0, 25.0]}
    search = GridSearchCV(clone(model), grid, scoring=scoring, cv=2).fit(X, HOURS)
    model = search.best_estimator_
    assert scoring(model, X, HOURS) > -240
    okforest.save(model, tmp_path / "model")
    for same in (pickle.loads(pickle.dumps(model)), okforest.load(tmp_path / "model")):
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        assert same.get_params().keys() == model.get_params().keys()


def test_the_state_of_the_model(page, tmp_path):
    """A model whose parts do not fit each other is not saved."""
    model = page.Smoother().fit(X, X)
    model.inputs_ = X[1:]
    with pytest.raises(ValueError, match=r"inputs_ has shape \(23, 2\)"):
        okforest.save(model, tmp_path / "model")


def test_the_segmenter(page):
    """Texts without sentences are refused; each sentence is a segment."""
    with pytest.raises(ValueError, match="a text has no sentences; leave it out"):
        page.styles.predict(["..."])
    assert page.Sentences().count(page.Sentences().check(page.texts)) == 7
