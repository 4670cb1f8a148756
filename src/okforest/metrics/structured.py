"""How well predicted rankings, curves, strings and sequences agree with the true ones."""

from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length

from okforest._utils.arrays import Floats, Outputs
from okforest.kernels import Curves, Spearman
from okforest.kernels.ranking_forms import check_separators, labels_in, ranks_of
from okforest.kernels.rankings import expected_ranks, pair_signs
from okforest.kernels.sequences import edit_distances, read_sequences
from okforest.metrics.losses import check_score_weight


def kendall_tau(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the mean of Kendall's τ between true and predicted rankings.

    It is the number of pairs of labels that both rankings order alike, less the number of pairs
    that they order differently, divided by the number of pairs that the true ranking orders. For
    complete rankings without ties it is τ. Pairs that the true ranking leaves open, because they
    are tied or a label has no rank, are left out (a partial τ); a pair that only the prediction
    leaves open counts as zero.

    Parameters
    ----------
    y_true, y_pred : array-like
        True and predicted rankings: matrices of ranks, orders of labels, or text such as "b>a=c".
    sample_weight : array-like of shape (n,), optional
        Weights of the rankings.

    Returns
    -------
    tau : float
        The mean, from −1 to 1. Rankings that order no pair are left out; NaN if there is no other.

    Examples
    --------
    >>> from okforest.metrics import kendall_tau
    >>> kendall_tau(["a>b>c", "a>c"], ["b>a>c", "a>b>c"]).__round__(3)
    0.667
    """
    true, predicted, weight = _ranks(y_true, y_pred, sample_weight)
    first, second = pair_signs(true), pair_signs(predicted)
    n_pairs = np.abs(first).sum(axis=1)
    return _mean((first * second).sum(axis=1), n_pairs, weight)


def spearman_rho(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the mean of Spearman's ρ between true and predicted rankings.

    Parameters
    ----------
    y_true, y_pred : array-like
        True and predicted rankings: matrices of ranks, orders of labels, or text such as "b>a=c".
        In partial rankings, ranks are replaced by their means over all completions.
    sample_weight : array-like of shape (n,), optional
        Weights of the rankings.

    Returns
    -------
    rho : float
        The mean correlation of ranks, from −1 to 1. True rankings in which all labels are tied are
        left out; a prediction in which all are tied counts as zero.

    Examples
    --------
    >>> from okforest.metrics import spearman_rho
    >>> spearman_rho(["a>b>c"], ["b>a>c"])
    0.5
    """
    true, predicted, weight = _ranks(y_true, y_pred, sample_weight)
    first, second = expected_ranks(true), expected_ranks(predicted)
    squares, predicted_squares = ((ranks**2).sum(axis=1) for ranks in (first, second))
    norms = np.sqrt(squares * np.where(predicted_squares > 0, predicted_squares, 1.0))
    return _mean((first * second).sum(axis=1), norms, weight)


def _ranks(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    kernel = Spearman().learn_form(y_true)  # the names of columns
    true, predicted = kernel.check(y_true), kernel.check(y_pred)
    check_consistent_length(true, predicted)
    if true.ndim != predicted.ndim or true.shape[1:] != predicted.shape[1:]:
        raise ValueError(
            f"y_true has shape {true.shape} and y_pred {predicted.shape}; pass rankings of the "
            "same labels in the same form."
        )
    check_separators(true)
    labels = labels_in(true if true.ndim == 2 else np.concatenate([true, predicted]))
    weight = check_score_weight(sample_weight, true)
    return ranks_of(true, labels), ranks_of(predicted, labels), weight


def _mean(sums: Floats, totals: Floats, weight: Floats) -> float:
    defined = (totals > 0) & (weight > 0)
    if not defined.any():
        return float("nan")
    return float(np.average(sums[defined] / totals[defined], weights=weight[defined]))


kendall_tau_scorer = make_scorer(kendall_tau)
spearman_rho_scorer = make_scorer(spearman_rho)

# Scorers are objects: their docstrings are set here, with an example for each.
for _name, _scorer, _summary, _value in (
    ("kendall_tau_scorer", kendall_tau_scorer, "Kendall's τ", "0.667"),
    ("spearman_rho_scorer", spearman_rho_scorer, "Spearman's ρ", "0.75"),
):
    _scorer.__doc__ = f"""Score predicted rankings by the mean {_summary}; for searches.

Examples
--------
>>> from okforest import OKTree
>>> from okforest.metrics import {_name}
>>> tree = OKTree(kernel="kendall").fit([[0], [1]], ["a>b>c", "c>b>a"])
>>> round({_name}(tree, [[0], [1]], ["a>b>c", "c>a>b"]), 3)
{_value}
"""


def integrated_squared_error(
    y_true: Any, y_pred: Any, *, points: Any = None, sample_weight: Any = None
) -> float:
    """Return the mean of ∫ (f − g)² between true and predicted curves, by the trapezoidal rule.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n, m)
        True and predicted curves, one per row, sampled at the same points.
    points : array-like of shape (m,), optional
        Where the curves are sampled, ascending; evenly spaced on [0, 1] by default.
    sample_weight : array-like of shape (n,), optional
        Weights of the curves.

    Returns
    -------
    error : float
        The mean; 0 is best.

    See Also
    --------
    okforest.kernels.Curves : The kernel whose squared distance is this error.

    Examples
    --------
    >>> from okforest.metrics import integrated_squared_error
    >>> round(integrated_squared_error([[0.0, 1.0, 0.0]], [[0.0, 3.0, 0.0]]), 3)
    2.0
    """
    kernel = Curves(points)
    true, predicted = kernel.check(y_true), kernel.check(y_pred)
    if true.shape != predicted.shape:
        raise ValueError(
            f"y_true has shape {true.shape} and y_pred {predicted.shape}; pass as many curves, at "
            "the same points. Predictions of Curves(n_points=...) are resampled: resample the true "
            "curves alike."
        )
    weight = check_score_weight(sample_weight, true)
    return float(np.average(kernel.diag(true - predicted), weights=weight))


integrated_squared_error_scorer = make_scorer(integrated_squared_error, greater_is_better=False)
integrated_squared_error_scorer.__doc__ = """Score by minus the mean of ∫ (f − g)²; for searches.

Points are evenly spaced on [0, 1]. For others, pass
``sklearn.metrics.make_scorer(integrated_squared_error, greater_is_better=False, points=points)``.

Examples
--------
>>> from okforest import OKTree
>>> from okforest.metrics import integrated_squared_error_scorer
>>> tree = OKTree(kernel="linear").fit([[0], [1]], [[0.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
>>> round(integrated_squared_error_scorer(tree, [[0]], [[0.0, 3.0, 0.0]]), 3)
-2.0
"""


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
