"""Arrays that are not valid trees are refused, with an error that names the problem."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from growing import grow
from okforest.engine import GrowthRules, Trees, check_trees
from reference import validity

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
N_FEATURES = 4


@pytest.fixture
def trees():
    return grow(X, X, GrowthRules(min_samples_leaf=3), n_trees=3)


def changed(trees, name, entry, value):
    array = getattr(trees, name).copy()
    array[entry] = value
    return dataclasses.replace(trees, **{name: array})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_draws": 30},
        {"row_weight": np.arange(30.0)},
        {"rules": GrowthRules(order="gain", max_leaf_nodes=5)},
        {"rules": GrowthRules(random_splits=True, max_features=1)},
        {"rules": GrowthRules(max_depth=0)},
    ],
)
def test_grown_trees_are_valid(options):
    """Grown trees of every kind pass the check, also one at a time, as views."""
    trees = grow(X, X, **{"rules": GrowthRules(), "n_trees": 3} | options)
    check_trees(trees, N_FEATURES)
    check_trees(trees[1], N_FEATURES)


CHANGES = {
    "cycle": ("left", 0, 0, "left child is not after the node"),
    "negative child": ("left", 0, -2, "left child is not after the node"),
    "far child": ("left", 0, 10**6, "child is outside its tree"),
    "largest child": ("left", 0, 2**31 - 1, "child is outside its tree"),
    "no feature": ("feature", 0, -1, r"tests a feature outside 0…3"),
    "no such feature": ("feature", 0, 4, r"tests a feature outside 0…3"),
    "leaf with a feature": ("feature", -1, 0, "a leaf tests a feature"),
    "negative begin": ("begin", 0, -1, "range of members"),
    "empty": ("begin", 0, 30, "range of members"),
    "end": ("end", 0, 31, "range of members"),
    "negative member": ("members", 3, -1, r"outside the training rows 0…29"),
    "member": ("members", 3, 30, r"outside the training rows 0…29"),
    "no weight": ("weight", 0, 0.0, "weight is not a positive number"),
    "NaN weight": ("weight", 0, np.nan, "weight is not a positive number"),
    "infinite weight": ("weight", 0, np.inf, "weight is not a positive number"),
    "negative row": ("row_weight", 0, -1.0, "weight is not a number ≥ 0"),
    "NaN row": ("row_weight", 0, np.nan, "weight is not a number ≥ 0"),
    "first offset": ("node_offsets", 0, 1, "node_offsets does not go from 0"),
    "last offset": ("node_offsets", -1, 10, "node_offsets does not go from 0"),
    "descending": ("node_offsets", 1, 10**6, "node_offsets does not ascend"),
    "huge": ("node_offsets", 1, -(2**63), "node_offsets does not ascend"),
    "members' offset": ("member_offsets", 1, 91, "member_offsets does not ascend"),
}


@pytest.mark.parametrize(("name", "entry", "value", "problem"), CHANGES.values(), ids=CHANGES)
def test_entries(trees, name, entry, value, problem):
    """A single wrong entry is found."""
    with pytest.raises(ValueError, match=problem):
        check_trees(changed(trees, name, entry, value), N_FEATURES)


def test_two_parents(trees):
    """Two paths to the same node are not a cycle, but not a tree either."""
    split = np.flatnonzero(trees[0].left >= 0)
    with pytest.raises(ValueError, match="two parents"):
        check_trees(changed(trees, "left", split[0], trees.left[split[1]]), N_FEATURES)


def test_arrays(trees):
    """Wrong types, shapes, layouts and lengths are found."""
    for name, array, problem in (
        ("left", list(trees.left), "left is not an array"),
        ("left", trees.left.astype(np.int64), "left is of type int64, not int32"),
        ("threshold", trees.threshold.astype(">f8"), "threshold is of type >f8"),
        ("weight", trees.weight[:, None], "weight has 2 dimensions"),
        ("members", np.repeat(trees.members, 2)[::2], "members is not contiguous"),
        ("variance", trees.variance[1:], "variance has .* entries for .* nodes"),
        ("node_offsets", trees.node_offsets[:1], "node_offsets has 1 entries"),
        ("member_offsets", trees.member_offsets[1:], "member_offsets has 3 entries"),
    ):
        with pytest.raises(ValueError, match=problem):
            check_trees(dataclasses.replace(trees, **{name: array}), N_FEATURES)


ADDED = ("missing_left", "subset", "subset_offsets", "subset_words", "n_categories")
CategoricalTrees = Trees
if "subset" not in {field.name for field in dataclasses.fields(Trees)}:
    CategoricalTrees = dataclasses.make_dataclass(
        "CategoricalTrees", ADDED, bases=(Trees,), frozen=True
    )


@pytest.fixture
def categorical(trees):
    """Return trees whose roots test a feature of 70 categories."""
    n_nodes = len(trees.feature)
    roots = trees.node_offsets[:-1]
    subset = np.full(n_nodes, -1, np.int32)
    subset[roots] = 0
    feature = trees.feature.copy()
    feature[roots] = 2
    return CategoricalTrees(
        **vars(trees)
        | {
            "feature": feature,
            "missing_left": np.zeros(n_nodes, bool),
            "subset": subset,
            "subset_offsets": np.array([0, 2, 4, 6]),
            "subset_words": np.zeros(6, np.uint64),
            "n_categories": np.array([0, 0, 70, 0], np.int32),
        }
    )


def test_categorical_tests(categorical):
    """The words of categorical tests must be within the words of their tree."""
    check_trees(categorical, N_FEATURES)
    words = categorical.subset_words
    for change, problem in (
        ({"subset_words": words[:-1]}, "subset_offsets does not go from 0 to 5"),
        ({"subset_words": words.astype(np.int64)}, "subset_words is of type int64"),
        ({"n_categories": np.array([0, 0, 129, 0], np.int32)}, "subset is outside its tree's"),
        ({"n_categories": np.array([0, 0, 0, 0], np.int32)}, "on a numeric feature"),
        ({"n_categories": np.array([0, 0, 70], np.int32)}, "for each of 4 features"),
        ({"n_categories": np.array([0, 0, -1, 0], np.int32)}, "for each of 4 features"),
        ({"subset": np.where(categorical.subset == 0, 1, -1).astype(np.int32)}, "is outside its"),
        ({"subset": np.where(categorical.subset == 0, -9, -1).astype(np.int32)}, "is outside its"),
        ({"missing_left": np.full(len(categorical.left), 2, np.uint8).view(bool)}, "0 and 1"),
    ):
        with pytest.raises(ValueError, match=problem):
            check_trees(dataclasses.replace(categorical, **change), N_FEATURES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_judged_as_by_the_reference(categorical, data):
    """Whatever entry is changed: the compiled check finds a fault where the reference does."""
    name = data.draw(st.sampled_from([field.name for field in dataclasses.fields(Trees)]))
    array = getattr(categorical, name)
    if not len(array):
        return
    entry = data.draw(st.integers(0, len(array) - 1))
    if array.dtype == bool:
        changed_trees = dataclasses.replace(
            categorical, **{name: np.full(len(array), data.draw(st.integers(0, 3)), "u1").view("?")}
        )
    elif array.dtype.kind == "f":
        values = st.sampled_from([-1.0, -0.0, 0.0, 0.5, np.nan, np.inf, -np.inf])
        changed_trees = changed(categorical, name, entry, data.draw(values))
    else:
        near = [-(2**31), -2, -1, 0, 1, 2, 3, 4, 29, 30, 31, 64, 65, 128, 129, 2**31 - 1]
        values = st.sampled_from([x for x in near if x >= np.iinfo(array.dtype).min])
        changed_trees = changed(categorical, name, entry, data.draw(values))
    assert problem(check_trees, changed_trees) == problem(validity.check_trees, changed_trees)


def problem(check, trees):
    """Return whether a check refuses trees."""
    try:
        check(trees, N_FEATURES)
    except ValueError:
        return True
    return False
