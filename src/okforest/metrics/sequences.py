"""How well predicted strings and sequences agree with the true ones."""

from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length

from okforest._typing import Floats, Outputs
from okforest.kernels._strings import edit_distances, read_sequences
from okforest.metrics._weights import check_score_weight


def edit_distance(
    y_true: Any, y_pred: Any, *, normalize: bool = False, sample_weight: Any = None
) -> float:
    """Return the mean edit distance of true and predicted sequences.

    It is the least number of symbols to insert, delete or replace that turns one into the other
    (Levenshtein).

    Parameters
    ----------
    y_true, y_pred : array-like
        True and predicted strings, or sequences of symbols such as ("a", "b").
    normalize : bool, default=False
        Whether to divide each distance by the length of the longer sequence, so that it is from 0
        to 1.
    sample_weight : array-like of shape (n,), optional
        Weights of the sequences.

    Returns
    -------
    distance : float
        The mean; 0 is best.

    See Also
    --------
    exact_match : The share of sequences that are predicted without an error.
    okforest.kernels.EditDistance : A kernel of edit distances.

    Examples
    --------
    >>> from okforest.metrics import edit_distance
    >>> edit_distance(["forest", "tree"], ["forests", "three"])
    1.0
    """
    true, predicted, weight = _sequences(y_true, y_pred, sample_weight)
    pairs = ((true[i : i + 1], predicted[i : i + 1]) for i in range(len(true)))
    distances = np.array([edit_distances(a, b)[0, 0] for a, b in pairs])
    if normalize:
        longer = [max(len(a), len(b), 1) for a, b in zip(true, predicted, strict=True)]
        distances = distances / np.array(longer)
    return float(np.average(distances, weights=weight))


def exact_match(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of sequences that are predicted exactly.

    Parameters
    ----------
    y_true, y_pred : array-like
        True and predicted strings, or sequences of symbols such as ("a", "b").
    sample_weight : array-like of shape (n,), optional
        Weights of the sequences.

    Returns
    -------
    share : float
        From 0 to 1, the best.

    See Also
    --------
    edit_distance : Counts the symbols that are wrong.

    Examples
    --------
    >>> from okforest.metrics import exact_match
    >>> exact_match(["forest", "tree"], ["forest", "three"])
    0.5
    """
    true, predicted, weight = _sequences(y_true, y_pred, sample_weight)
    equal = [a == b for a, b in zip(true, predicted, strict=True)]
    return float(np.average(equal, weights=weight))


def _sequences(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Outputs, Outputs, Floats]:
    true, predicted = read_sequences(y_true), read_sequences(y_pred)
    check_consistent_length(true, predicted)
    weight = check_score_weight(sample_weight, true)
    return true, predicted, weight


edit_distance_scorer = make_scorer(edit_distance, greater_is_better=False)
exact_match_scorer = make_scorer(exact_match)

# Scorers are objects: their docstrings are set here, with an example for each.
for _name, _scorer, _summary, _value in (
    ("edit_distance_scorer", edit_distance_scorer, "minus the mean edit distance", "-0.5"),
    ("exact_match_scorer", exact_match_scorer, "the share that is exactly right", "0.5"),
):
    _scorer.__doc__ = f"""Score predicted strings and sequences by {_summary}; for searches.

Examples
--------
>>> from okforest import OKTree
>>> from okforest.kernels import Spectrum
>>> from okforest.metrics import {_name}
>>> tree = OKTree(kernel=Spectrum(2)).fit([[0], [1]], ["tree", "forest"])
>>> {_name}(tree, [[0], [1]], ["tree", "forests"])
{_value}
"""
