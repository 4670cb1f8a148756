"""Overlap and boundaries of label maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score

from okforest.metrics import boundary_f1, intersection_over_union


@given(st.integers(0, 1000), st.integers(1, 4))
def test_overlap_equals_scikit_learn(seed, n_labels):
    """Over all pixels, it is the Jaccard score."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n_labels, (2, 3, 4, 5))
    labels = np.union1d(a, b)
    expected = jaccard_score(a.ravel(), b.ravel(), labels=labels, average=None)
    np.testing.assert_allclose(intersection_over_union(a, b, average=None), expected)
    np.testing.assert_allclose(intersection_over_union(list(a), list(b)), expected.mean())


def test_overlap_of_given_labels():
    """A label that does not occur is NaN, and left out of the mean."""
    a = [[[0, 0], [1, 1]]]
    scores = intersection_over_union(a, a, labels=[1, 7], average=None)
    assert scores[0] == 1.0
    assert np.isnan(scores[1])
    assert intersection_over_union(a, a, labels=[1, 7]) == 1.0


@given(st.integers(0, 1000), st.sampled_from([0.0, 1.0, 2.5]))
def test_boundaries_equal_the_oracle(seed, tolerance):
    """Precision and recall of boundary pixels, by all distances between them."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, 5, 6))

    def boundary(labels):
        found = []
        for i in range(5):
            for j in range(6):
                near = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
                near = [(k, m) for k, m in near if 0 <= k < 5 and 0 <= m < 6]
                if any(labels[k, m] != labels[i, j] for k, m in near):
                    found.append((i, j))
        return np.array(found)

    p, q = boundary(a), boundary(b)
    distances = np.linalg.norm(p[:, None] - q[None], axis=2) <= tolerance
    recall, precision = distances.any(axis=1).mean(), distances.any(axis=0).mean()
    total = precision + recall
    expected = 2 * precision * recall / total if total else 0.0
    np.testing.assert_allclose(boundary_f1([a], [b], tolerance), expected)


def test_maps_without_boundaries():
    """Two uniform maps agree; a uniform one and another do not."""
    plain, half = np.zeros((4, 4)), np.repeat([[0, 0, 1, 1]], 4, axis=0)
    assert boundary_f1([plain, plain], [plain, half]) == 0.5


def test_errors():
    """Maps must have the same sizes."""
    with pytest.raises(ValueError, match=r"map 0 has shape \(2, 2\) in y_true and \(2, 3\)"):
        boundary_f1([np.zeros((2, 2))], [np.zeros((2, 3))])
    with pytest.raises(ValueError, match="expected a list of maps"):
        intersection_over_union(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"'average' parameter .* Got 'micro'"):
        intersection_over_union([np.zeros((2, 2))], [np.zeros((2, 2))], average="micro")
    with pytest.raises(ValueError, match="no maps"):
        boundary_f1([], [])
