"""Trees as text and as Graphviz source."""

import re
import sys

import numpy as np
import pytest

from okforest import OKBagging, OKTotallyRandomTrees, OKTree
from okforest.inspection import export_graphviz, export_text
from okforest.inspection.tree_view import format_categories, format_number, format_output
from okforest.kernels import FromCallable

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.c_[X[:, 0] * X[:, 1], X[:, 2]]
NAMES = ["size", "age"]


def test_text(tree):
    """Branches, leaves and their outputs."""
    assert export_text(tree, feature_names=NAMES).splitlines() == [
        "├─ size ≤ 2.5 → leaf 1, n = 2, variance 0, output 0",
        "└─ size > 2.5",
        "   ├─ age ≤ 0.5 → leaf 3, n = 2, variance 0, output 6",
        "   └─ age > 0.5 → leaf 4, n = 2, variance 0, output 9",
    ]


def test_text_cut(tree):
    """Leaves below max_depth are counted; outputs can be omitted."""
    assert export_text(tree, max_depth=1, show_prototype=False).splitlines() == [
        "├─ x0 ≤ 2.5 → leaf 1, n = 2, variance 0",
        "└─ x0 > 2.5 → 2 leaves, n = 4, variance 2.25",
    ]
    assert export_text(tree, max_depth=0) == "3 leaves, n = 6, variance 14"


def test_text_of_a_leaf():
    """A tree with a single leaf is one line."""
    model = OKTree().fit(np.ones((3, 1)), [1.0, 2.0, 3.5])
    assert export_text(model) == "leaf 0, n = 3, variance 1.056, output 2"


def test_text_of_categories_and_missing_values(mixed_tree):
    """Branches show their categories, and whether missing values follow them."""
    assert export_text(mixed_tree, feature_names=["colour", "age"]).splitlines() == [
        "├─ colour in {red, blue} → leaf 1, n = 1, variance 0, output 0",
        "└─ (colour in {green} or missing)",
        "   ├─ age is not missing → leaf 3, n = 1, variance 0, output 1",
        "   └─ age is missing",
        "      ├─ (colour in {red} or missing) → leaf 5, n = 1, variance 0, output 2",
        "      └─ colour in {green, blue} → leaf 6, n = 1, variance 0, output 3",
    ]


def test_text_without_outputs():
    """Without y there is neither variance nor output."""
    model = OKTotallyRandomTrees(2, max_depth=1, random_state=0).fit(X)
    lines = export_text(model, tree=1).splitlines()
    assert len(lines) == 2
    assert all(re.fullmatch(r".─ x\d . -?[\d.]+ → leaf \d, n = \d+", line) for line in lines)


def test_samples_of_drawn_rows_are_counted_once():
    """The samples of a leaf are distinct rows, no matter how often they were drawn."""
    model = OKBagging(3, max_depth=2, random_state=0).fit(X, Y)
    counts = map(int, re.findall(r"n = (\d+)", export_text(model, tree=2)))
    assert sum(counts) == len(np.unique(model.trees_[2].members))


def test_deep_trees_need_no_recursion():
    """A tree deeper than Python's recursion limit, here a chain of leaves, is exported."""
    n = sys.getrecursionlimit() + 100
    model = OKTree(kernel="dirac").fit(np.arange(n)[:, None], np.arange(n))
    lines = export_text(model).splitlines()
    assert len(lines) == 2 * n - 2
    assert max(map(len, lines)) > 3 * sys.getrecursionlimit()


def test_any_outputs():
    """Outputs of any type are shown."""
    kernel = FromCallable(lambda a, b: np.array([[float(s[0] == t[0]) for t in b] for s in a]))
    model = OKTree(kernel=kernel).fit([[0], [1], [2], [3]], ["ab", "ac", "ba", "bb"])
    assert [line.split("output ")[1] for line in export_text(model).splitlines()] == [
        "'ab'",
        "'ba'",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.2, "3.2"),
        (-0.0, "0"),
        (12345.6789, "12345.679"),
        (0.00012345, "0.000123"),
        (-1e300, "-1e+300"),
        (100.0, "100"),
    ],
)
def test_numbers(value, text):
    """Trailing zeros are dropped; small and large numbers get significant digits."""
    assert format_number(value, 3) == text
    assert format_number(100.0, 0) == "100"


def test_outputs_are_abbreviated():
    """Vectors, matrices and long objects are abbreviated."""
    assert format_output(np.arange(3.0) / 3, 2) == "[0, 0.33, 0.67]"
    assert format_output(np.arange(100), 2) == "[0, 1, 2, …, 99]"
    assert format_output(np.eye(8), 2) == "array of shape (8, 8)"
    assert format_output(np.str_("cat"), 2) == "'cat'"
    assert len(format_output("x" * 1000, 2)) <= 40
    assert format_categories(range(9)) == "{0, 1, 2, 3, 4, … 4 more}"


@pytest.mark.parametrize("max_depth", [None, 2])
@pytest.mark.parametrize("filled", [True, False])
def test_dot(max_depth, filled):
    """Every node is exported, with an edge to each but the root."""
    model = OKTree(kernel="rbf", min_samples_leaf=4, random_state=0).fit(X, Y)
    dot = export_graphviz(model, max_depth=max_depth, filled=filled)
    nodes = set(map(int, re.findall(r"^  (\d+) \[label=", dot, re.MULTILINE)))
    edges = re.findall(r"^  (\d+) -> (\d+)", dot, re.MULTILINE)
    if max_depth is None:
        assert nodes == set(range(len(model.trees_.feature)))
    assert {int(child) for _, child in edges} == nodes - {0}
    assert len(edges) == len(nodes) - 1
    assert dot.count("fillcolor") == (len(nodes) if filled else 0)
    assert set(re.findall(r'fillcolor="(.*?)"', dot)) <= set(re.findall(r"#[0-9a-f]{6}", dot))


def test_dot_escapes_names(tree):
    """Quotes, backslashes and line breaks in names are escaped."""
    dot = export_graphviz(tree, feature_names=['a "b"\\', "c\nd"])
    assert r'label="a \"b\"\\ ≤ 2.5"' in dot
    assert r'label="c\nd ≤ 0.5"' in dot
    without_strings = re.sub(r'"(?:[^"\\\n]|\\.)*"', "", dot)
    assert '"' not in without_strings
