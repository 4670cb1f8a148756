"""Descriptions of files: nothing is loaded, and nothing is left out."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import okforest
from okforest import OKExtraTrees, OKNeighbors, OKRidge
from okforest.kernels import RBF, Hamming, Precomputed
from okforest.persistence import FileFormatError
from okforest.persistence.container import write

X = np.random.default_rng(0).normal(size=(20, 3))
MODELS = {
    "forest": (OKExtraTrees(3, kernel=RBF(2.0)), X[:, :2]),
    "sets": (OKExtraTrees(3, kernel=Hamming()), [{"a"}, {"b"}] * 10),
    "Gram matrix": (OKExtraTrees(3, kernel=Precomputed(X @ X.T)), np.arange(20)),
    "neighbours": (OKNeighbors(3, kernel="dirac"), ["a", "b"] * 10),
    "ridge": (OKRidge(0.1, kernel=RBF() + RBF(3.0)), X[:, :2]),
    "pipeline": (make_pipeline(StandardScaler(), OKExtraTrees(3)), X[:, 0]),
}


@pytest.mark.parametrize(("model", "y"), MODELS.values(), ids=MODELS)
def test_descriptions(tmp_path, model, y):
    """The version, the class and all parameters; the training outputs are listed by name."""
    path = tmp_path / "model"
    okforest.save(model.fit(X, y), path)
    found = okforest.describe(path)
    assert found.okforest == okforest.__version__
    assert (found.format, found.n_bytes) == (2, path.stat().st_size)
    assert found.model.endswith(f":{type(model).__name__}")
    assert found.params.keys() == model.get_params(deep=False).keys()
    outputs = next(text for name, text in found.parts.items() if name.endswith("outputs_"))
    assert outputs.startswith("(20,")
    lines = repr(found).splitlines()
    assert f"written by okforest {okforest.__version__}" in lines[0]
    assert len(lines) == 3 + len(found.params) + len(found.parts)


def test_parameters_as_text(tmp_path):
    path = tmp_path / "model"
    okforest.save(OKExtraTrees(3, kernel=RBF(2.0)).fit(X, X), path)
    found = okforest.describe(path)
    assert found.params["kernel"].startswith("RBF(")
    assert "sigma=2.0" in found.params["kernel"]
    assert found.params["n_estimators"] == "3"
    assert found.parts["outputs_"] == "(20, 3) float64, 480 bytes"


def test_classes_are_not_needed(tmp_path):
    """A file whose class does not exist here is described, and not loaded."""

    class Mine(RBF):
        pass

    okforest.save(OKExtraTrees(3, kernel=Mine(2.0)).fit(X, X), tmp_path / "model")
    del Mine
    assert "Mine(" in okforest.describe(tmp_path / "model").params["kernel"]


def test_other_files(tmp_path):
    (tmp_path / "text").write_text("text")
    with pytest.raises(FileFormatError, match="was not written by"):
        okforest.describe(tmp_path / "text")
    with open(tmp_path / "list", "wb") as file:
        write(file, [1], [])
    with pytest.raises(FileFormatError, match="does not hold a model"):
        okforest.describe(tmp_path / "list")
