"""Decoders that search, average or vote, and those made of others: optimal by brute force.

Decoders of sets, hierarchies, rankings, strings and curves are in test_structured.py, decoders of a
loss and the fixed point in test_expected_loss.py.
"""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from okforest.decode import (
    CandidateLists,
    Candidates,
    Hierarchical,
    Majority,
    Mean,
    Medoid,
    Parts,
    Sharpened,
    Support,
    TrainingSet,
)
from okforest.decode.strings import eulerian_path
from okforest.kernels import Dirac, Hierarchy, Jaccard, Kendall, Linear, Tuples
from okforest.kernels.sequences import kmers
from okforest.survival import Survival, SurvivalTime
from okforest.weights import Span
from reference import outputs as slow

SETS = [frozenset(s) for s in slow.subsets("abc")]
ORDERS = [tuple(p) for p in permutations("abc")]
PARENTS = {"a": None, "b": None, "c": "a", "d": ["a", "b"], "e": "d"}


def span_of(kernel, y):
    y = kernel.check(y)
    return Span(kernel.resolve(y), y)


def signed(n):
    """Weights of both signs; some are zero."""
    values = st.sampled_from([-0.5, -0.25, 0.0, 0.0, 0.1, 0.3, 0.7, 1.0])
    return arrays(np.float64, n, elements=values)


def distance(span, w, candidate):
    """Return ‖φ(c) − F‖² − ‖F‖², by the definition."""
    c = span.kernel.check([candidate])
    values = [w[i] * span.kernel(span.outputs[[i]], c)[0, 0] for i in range(len(w))]
    return span.kernel(c)[0, 0] - 2.0 * sum(values)


@given(st.data())
def test_searches_are_optimal(data):
    """In the feature space of sets and of rankings, no allowed candidate is nearer."""
    kernel, space = data.draw(
        st.sampled_from([(Jaccard(labels=list("abc")), SETS), (Kendall(list("abc")), ORDERS)])
    )
    y = data.draw(st.lists(st.sampled_from(space), min_size=1, max_size=6))
    given_ones = data.draw(st.lists(st.sampled_from(space), min_size=1, max_size=6))
    w = data.draw(signed(len(y)))
    span = span_of(kernel, y)
    support = [output for output, weight in zip(y, w, strict=True) if weight] or y
    for decoder, allowed in (
        (TrainingSet(), y),
        (Support(), support),
        (Candidates(given_ones), given_ones),
        (TrainingSet().with_candidates(CandidateLists([given_ones])), given_ones),
    ):
        (found,) = decoder.decode([w], span)
        assert found in allowed
        best = min(distance(span, w, c) for c in allowed)
        assert distance(span, w, found) == pytest.approx(best, abs=1e-9)


@given(st.data())
def test_the_closed_forms_are_optimal(data):
    """No label is nearer than the majority, and no vector than the mean."""
    n = data.draw(st.integers(1, 7))
    w = data.draw(signed(n))
    y = data.draw(st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))
    span = span_of(Dirac(), y)
    (found,) = Majority().decode([w], span)
    assert distance(span, w, found) == pytest.approx(min(distance(span, w, c) for c in set(y)))
    vectors = data.draw(arrays(np.float64, (n, 2), elements=st.floats(-2, 2, width=16)))
    span = span_of(Linear(), vectors)
    (found,) = Mean().decode([w], span)
    moves = np.array([[-1, 0], [1, 0], [0, -1], [0, 1], [1, 1], [-1, -1]]) * 0.01
    assert all(distance(span, w, found + move) > distance(span, w, found) for move in moves)


@given(st.data())
def test_the_medoid_of_signed_weights_is_optimal(data):
    """No output with a weight, of either sign, has a smaller weighted sum of distances."""
    y = data.draw(st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=6, unique=True))
    w = data.draw(signed(len(y)))
    (found,) = Medoid().decode([w], span_of(Linear(), y))
    costs = {c: sum(wi * abs(yi - c) for wi, yi in zip(w, y, strict=True)) for c in y}
    support = [output for output, weight in zip(y, w, strict=True) if weight] or y
    assert found in support
    assert costs[found] == pytest.approx(min(costs[c] for c in support), abs=1e-6)


@given(st.data())
def test_sets_of_a_hierarchy_are_optimal(data):
    """Predicted sets are closed under ancestors, and no closed set is nearer."""
    kernel = Hierarchy(PARENTS, decay=data.draw(st.sampled_from([0.5, 0.75, 1.0])))
    closed = sorted(set(kernel.check([frozenset(s) for s in slow.subsets("abcde")])), key=sorted)
    y = data.draw(st.lists(st.sampled_from(closed), min_size=1, max_size=5))
    w = data.draw(signed(len(y)))
    span = span_of(kernel, y)
    (found,) = Hierarchical(0.5).decode([w], span)
    assert found in closed
    best = min(distance(span, w, c) for c in closed)
    assert distance(span, w, found) == pytest.approx(best, abs=1e-6)


@given(st.data())
def test_the_hierarchical_f1_score_is_optimal(data):
    """Predicted sets are closed under ancestors, and no closed set has a larger score."""
    parents = data.draw(st.sampled_from([PARENTS, PARENTS | {"d": "a"}]))
    kernel = Hierarchy(parents, decay=data.draw(st.sampled_from([0.5, 0.75, 1.0])))
    closed = sorted(set(kernel.check([frozenset(s) for s in slow.subsets("abcde")])), key=sorted)
    y = data.draw(st.lists(st.sampled_from(closed), min_size=1, max_size=5))
    w = data.draw(signed(len(y)))
    span = span_of(kernel, y)
    (found,) = Hierarchical().decode([w], span)
    assert found in closed
    p = {c: sum(wi for wi, output in zip(w, y, strict=True) if c in output) for c in "abcde"}
    weight = dict(zip(span.kernel.labels, span.kernel.weight_of_classes(), strict=True))
    not_empty = min(max(p["a"] + p["b"], 1e-9), 1.0)
    best = max(slow.hierarchical_f1(c, p, weight, not_empty) for c in closed)
    assert slow.hierarchical_f1(found, p, weight, not_empty) == pytest.approx(best, abs=1e-6)


@given(st.data())
def test_parts_of_tuples_are_optimal(data):
    """A tuple of the best parts is the best tuple of all, since distances of parts add up."""
    parts = st.tuples(st.sampled_from("xyz"), st.sampled_from(ORDERS))
    y = data.draw(st.lists(parts, min_size=2, max_size=5))
    w = data.draw(signed(len(y)))
    span = span_of(Tuples(["dirac", Kendall(list("abc"))], [1.0, 3.0]), y)
    (found,) = Parts().decode([w], span)
    labels = {label for label, _ in y}
    best = min(distance(span, w, (label, order)) for label in labels for order in ORDERS)
    assert distance(span, w, found) == pytest.approx(best, abs=1e-9)


@given(st.data())
def test_sharpened_weights_are_decoded(data):
    """The label with the largest sum of powers of its weights wins."""
    n = data.draw(st.integers(1, 6))
    y = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    w = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.4]), min_size=n, max_size=n)))
    power = data.draw(st.sampled_from([0.5, 1.0, 2.0, 3.0]))
    span = span_of(Dirac(), y)
    (found,) = Sharpened("majority", power).decode([w], span)
    votes = {c: sum(w[i] ** power for i in range(n) if y[i] == c and w[i] > 0) for c in y}
    assert votes[found] == pytest.approx(max(votes.values()))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=2, max_size=6),
    st.integers(0, 2**31),
)
def test_the_mean_time_is_the_area_under_the_curve(rows, seed):
    """Of the weighted mean of the curves, step by step up to the last time of the grid."""
    y = [(float(t), float(t) if event else np.inf) for t, event in [*rows, (5, True)]]
    span = span_of(Survival(), np.array(y))
    w = np.random.default_rng(seed).dirichlet(np.ones(len(y)))
    times = span.kernel.estimate.x
    area, before, height = 0.0, 0.0, 1.0
    for time, curve in zip(times, span.kernel.curves(span.outputs).T, strict=True):
        area += height * (time - before)
        before, height = time, w @ curve
    np.testing.assert_allclose(SurvivalTime().decode([w], span), area)


@given(st.text("abc", min_size=2, max_size=6), st.integers(2, 3), st.booleans())
def test_the_first_of_all_sequences_with_the_same_kmers(word, k, boundaries):
    """Of all sequences with these k-mers, the first in alphabetical order is found."""
    counts = Counter(kmers(word, k, boundaries))
    assume(counts)
    every = map("".join, product("abc", repeat=len(word)))
    same = [other for other in every if Counter(kmers(other, k, boundaries)) == counts]
    assert "".join(eulerian_path(counts, boundaries)) == min(same)
