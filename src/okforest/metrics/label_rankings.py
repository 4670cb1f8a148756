"""How well predicted rankings of labels agree with the true ones: Kendall's τ and Spearman's ρ."""

from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_consistent_length

from okforest._typing import Floats
from okforest.kernels import Spearman
from okforest.kernels._rankings import check_separators, labels_in, ranks_of
from okforest.kernels.rankings import expected_ranks, pair_signs
from okforest.metrics._weights import check_score_weight


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
