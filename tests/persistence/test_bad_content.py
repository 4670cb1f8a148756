"""Intact files whose content cannot be a model: each fault has an error of its own."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import okforest
from okforest import OKTree
from okforest.persistence import FileFormatError
from okforest.persistence.container import write

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
Y = rng.normal(size=(20, 2))


class Mine(OKTree):
    """A model of a user, which may learn attributes of any name."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.okforest"


def assert_bad(path, *parts):
    for mmap in (False, True):
        with pytest.raises(FileFormatError) as error:
            okforest.load(path, mmap=mmap)
        message = str(error.value)
        assert str(path) in message
        assert all(part in message for part in parts), message


def write_model(path, model, arrays=()):
    file = io.BytesIO()
    write(file, {"okforest": "9.9", "model": model}, arrays)
    path.write_bytes(file.getvalue())


def deep(n):
    value = 0
    for _ in range(n):
        value = {"type": "tuple", "items": [value]}
    return value


def tree(**parts):
    return {"type": "okforest.models:OKTree", "params": {}, "fitted": {}} | parts


KERNEL = {"type": "okforest.kernels:Linear", "params": {}, "fitted": {}}


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (None, "it holds a NoneType, not a model"),
        ([], "it holds a list, not a model"),
        ({}, "it lacks the key 'type'"),
        (tree(type="os.system"), "unknown type 'os.system'"),
        (tree(type=["models.OKTree"]), "unknown type ['models.OKTree']"),
        (tree(type="models.OKTree"), "unknown type 'models.OKTree'"),
        (KERNEL, "it holds a Linear, not a model"),
        ({"type": "okforest.models:OKTree"}, "it lacks the key 'params'"),
        (tree(), "This OKTree instance is not fitted yet"),
        (tree(type="okforest.models:OKModel"), "Can't instantiate abstract class OKModel"),
        (tree(params={"colour": 1}), "OKTree.__init__() got an unexpected keyword argument"),
        *(
            (tree(fitted={name: 1}), f"{name!r} is not a fitted attribute of OKTree")
            for name in ("predict", "__class__", "_private_", "colour", "feature_importances_")
        ),
        ({"type": "array", "position": 0}, "range object index out of range"),
        ({"type": "array", "position": "0"}, "range indices must be integers"),
        ({"type": "float", "value": []}, "float() argument must be"),
        ({"type": "float", "value": "one"}, "could not convert string to float"),
        ({"type": "dict", "items": [[[], 0]]}, "unhashable type: 'list'"),
        ({"type": "set", "items": [[]]}, "unhashable type: 'list'"),
        ({"type": "slice", "items": []}, "slice expected at least 1 argument"),
        ({"type": "dtype", "value": "i4,f4"}, "unknown dtype 'i4,f4'"),
        ({"type": "scalar type", "value": "void"}, "unknown scalar type 'void'"),
        ({"type": "scalar", "value": 1}, "'int' object is not subscriptable"),
        ({"type": "objects", "shape": [10**15], "items": []}, "0 objects do not fill the shape"),
        ({"type": "trees", "fields": {}}, "Trees.__init__() missing 17 required"),
        (deep(450), "maximum recursion depth exceeded"),
    ],
    ids=lambda part: str(part)[:90],
)
def test_bad_models(path, model, problem):
    """JSON made on purpose."""
    write_model(path, model)
    assert_bad(path, f"cannot be loaded: {problem}", "It was written by okforest 9.9: load it with")


LAST = np.iinfo(np.int32).max
SPARSE_CHANGES = {
    "outside": ("indices", [0, 3], "indices of a sparse matrix are not all in 0…2"),
    "negative": ("indices", [0, -1], "indices of a sparse matrix are not all in 0…2"),
    "fewer indices": ("indices", [0], "2 values and 1 indices, but indptr counts 2"),
    "fewer values": ("data", [1.0], "1 values and 2 indices, but indptr counts 2"),
    "cut off": ("indptr", [0, 1, 1], "2 values and 2 indices, but indptr counts 1"),
    "too far": ("indptr", [0, 1, 3], "2 values and 2 indices, but indptr counts 3"),
    "backwards": ("indptr", [0, 3, 2], "indptr of a sparse matrix does not ascend from 0"),
    "backwards to the start": ("indptr", [0, 2, 0], "does not ascend from 0"),
    "not from 0": ("indptr", [1, 1, 2], "does not ascend from 0"),
    "short": ("indptr", [0, 2], "indptr of a sparse matrix has 2 entries, not 3"),
    "floats": ("indptr", [0.0, 1.0, 2.0], "indptr of a sparse matrix is not a 1-d array of"),
    "text": ("data", ["a", "b"], "data of a sparse matrix is not a 1-d array of"),
    "table": ("indices", [[0, 1]], "indices of a sparse matrix is not a 1-d array of"),
}


def encode_sparse(kind, shape, parts):
    names = ("data", "indices", "indptr")
    return {"type": kind, "shape": shape} | {
        name: {"type": "array", "position": i} for i, name in enumerate(names) if name in parts
    }


@pytest.mark.parametrize(("name", "value", "problem"), SPARSE_CHANGES.values(), ids=SPARSE_CHANGES)
@pytest.mark.parametrize(("kind", "shape"), [("csr_array", [2, 3]), ("csc_matrix", [3, 2])])
def test_bad_sparse_matrices(path, name, value, problem, kind, shape):
    """The three arrays of a sparse matrix fit each other, whatever it belongs to."""
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}
    matrix = encode_sparse(kind, shape, parts)
    write_model(path, tree(params={"categorical_features": matrix}), list(parts.values()))
    assert_bad(path, "not fitted yet")  # the matrix itself is fine
    parts[name] = np.array(value)
    write_model(path, tree(params={"categorical_features": matrix}), list(parts.values()))
    assert_bad(path, problem)


def test_sparse_matrices_whose_differences_overflow(path):
    """An indptr that descends, although the differences of its entries wrap to positive numbers."""
    indptr = np.array([0, 1, -LAST - 1, -1, 0, 2], dtype=np.int32)
    assert (np.diff(indptr) >= 0).all()
    parts = {"data": np.ones(2), "indices": np.zeros(2, np.int32), "indptr": indptr}
    write_model(path, encode_sparse("csr_array", [5, 3], parts), list(parts.values()))
    assert_bad(path, "does not ascend from 0")


def circle(model):
    left = model.trees_.left.copy()
    left[np.flatnonzero(left >= 0)[-1]] = 0
    model.trees_ = replace(model.trees_, left=left)


def cut_off(model):
    model.matrix_.indptr[-1] = 0


def set_to(name, value):
    return lambda model: setattr(model, name, value)


NO_TEXT = np.array([0x110000], "<u4").view("<U1")
NO_BOOLEANS = np.array([0, 1, 2], np.uint8).view(bool)
MODEL_CHANGES = {
    "circle": (circle, "left child is not after the node"),
    "sparse": (cut_off, "indptr of a sparse matrix does not ascend from 0"),
    "no trees": (set_to("trees_", 0), "trees_ is 0, not a Trees"),
    "outputs": (set_to("outputs_", Y[1:]), "outputs_ has 19 entries, not 20"),
    "list": (set_to("outputs_", [0] * 20), "outputs_ is [0, 0, 0, 0"),
    "kernel": (set_to("kernel_", "rbf"), "kernel_ is 'rbf', not an OutputKernel"),
    "features": (set_to("n_features_in_", 2), "categories_ has 3 entries, not 2"),
    "half": (set_to("n_features_in_", 2.5), "n_features_in_ is 2.5, not an int"),
    "names": (set_to("feature_names_in_", X[0, :1]), "feature_names_in_ has 1 entries, not 3"),
    "categories": (set_to("categories_", [None]), "categories_ has 1 entries, not 3"),
    "text": (set_to("text_", NO_TEXT), "characters that do not exist"),
    "big-endian text": (
        set_to("text_", NO_TEXT.byteswap().view(">U1")),
        "characters that do not exist",
    ),
    "booleans": (set_to("flags_", NO_BOOLEANS), "values other than 0 and 1"),
}


def save_unchecked(model, path):
    """Save a model in a state that okforest.save refuses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("okforest.persistence.saving._restore", lambda *args: None)
        patch.setattr("okforest.persistence.encoding.check_sparse", lambda *args: None)
        patch.setattr("okforest.persistence.encoding.check_trees", lambda *args: None)
        okforest.save(model, path)


@pytest.mark.parametrize(("change", "problem"), MODEL_CHANGES.values(), ids=MODEL_CHANGES)
def test_models_that_would_crash(path, change, problem):
    """A file whose parts do not fit each other is refused, with right checksums, and not made."""
    model = Mine().fit(X, Y)
    model.matrix_ = csr_array(np.eye(3))
    change(model)
    with pytest.raises(ValueError, match=re.escape(problem)):
        okforest.save(model, path)
    assert not path.exists()
    save_unchecked(model, path)
    assert_bad(path, problem)


def test_models_within_models(path):
    """The state of a nested model is checked, wherever it is."""
    model = Mine().fit(X, Y)
    inner = OKTree().fit(X, Y)
    model.nested_ = {"a": [inner]}
    okforest.save(model, path)
    assert okforest.load(path).nested_["a"][0].score(X, Y) == 1.0
    inner.outputs_ = Y[1:]
    save_unchecked(model, path)
    assert_bad(path, "outputs_ has 19 entries, not 20")
