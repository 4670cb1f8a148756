"""Comparison of models of links that were evaluated on the same folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import stdtr

from okforest._report import Table
from okforest.network._base import LinkPredictor
from okforest.network._pairs import PairKind
from okforest.network.evaluation import (
    Evaluation,
    Metric,
    check_evaluations,
    check_metric,
    cross_validate_links,
    scores_of,
)


@dataclass(frozen=True)
class Comparison:
    """The difference between two models, on the same folds.

    Parameters
    ----------
    difference : float
        The mean over folds of the first model's score minus the second's.
    p_value : float
        The probability of a difference at least this large between equally good models (two-sided).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, compare_links, cross_validate_links
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> links = np.abs(X - X.T) < 0.3
    >>> result = cross_validate_links(InputSimilarity(), X, links, cv=4)
    >>> compare_links(result, result)
    Comparison(difference=0.0, p_value=1.0)
    """

    difference: float
    p_value: float


def compare_links(
    first: Evaluation,
    second: Evaluation,
    kind: PairKind = "with-new",
    metric: Metric = "auc",
) -> Comparison:
    """Test whether one model is better than another, on the same folds.

    This is a paired t-test corrected for the overlap of the training sets: with n folds, the
    variance of the mean difference is 1/n + 1/(n − 1) times the variance of the differences.

    Parameters
    ----------
    first, second : Evaluation
        Results of :func:`cross_validate_links`, with the same ``cv`` and ``random_state``.
    kind : str, default="with-new"
        The kind of pair.
    metric : {"auc", "aupr"}, default="auc"
        The score to compare.

    Returns
    -------
    comparison : Comparison
        The mean difference and its p-value.

    References
    ----------
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning 52 (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion, compare_links, cross_validate_links
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> links = np.abs(X[:, 0] - X[:, :1]) < 0.3
    >>> model = NetworkCompletion()
    >>> good = cross_validate_links(model, X[:, [0]], links, cv=4)
    >>> bad = cross_validate_links(model, X[:, [1]], links, cv=4)
    >>> compare_links(good, bad).difference > 0
    True
    """
    check_metric(metric)
    scores = [getattr(scores_of(result, kind), metric) for result in (first, second)]
    if len(scores[0]) != len(scores[1]):
        raise ValueError(
            f"the first result has {len(scores[0])} folds and the second {len(scores[1])}; compare "
            "results on the same folds."
        )
    differences = scores[0] - scores[1]
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    mean = float(differences.mean()) if n else float("nan")
    if n < 2:
        return Comparison(mean, float("nan"))
    error = sqrt((1 / n + 1 / (n - 1)) * differences.var(ddof=1))
    if error == 0:
        return Comparison(mean, 1.0 if mean == 0 else 0.0)
    return Comparison(mean, float(2 * stdtr(n - 1, -abs(mean) / error)))


def compare_deletions(
    model: LinkPredictor,
    X: Any,
    graph: Any,
    names: Any = None,
    *,
    shares: Sequence[float] = (0.0, 0.2, 0.5, 0.8),
    **options: Any,
) -> dict[float, Evaluation]:
    """Evaluate a model with increasing shares of the training links deleted.

    Parameters
    ----------
    model : LinkPredictor
        A model of links; it is cloned.
    X, graph, names
        As in :func:`cross_validate_links`.
    shares : sequence of float, default=(0.0, 0.2, 0.5, 0.8)
        Shares of the training links to delete.
    **options
        Other arguments of :func:`cross_validate_links`.

    Returns
    -------
    evaluations : dict of float to Evaluation
        One result for each share.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, compare_deletions
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> links = np.abs(X - X.T) < 0.3
    >>> list(compare_deletions(InputSimilarity(), X, links, shares=(0.0, 0.5), cv=3))
    [0.0, 0.5]
    """
    if np.ndim(shares) != 1 or len(shares) == 0:
        raise ValueError(
            f"shares={shares!r}; pass a list of at least one share of links, such as [0.0, 0.5]."
        )
    return {
        share: cross_validate_links(model, X, graph, names, deleted=share, **options)
        for share in shares
    }


def format_table(evaluations: Mapping[str, Evaluation], kind: PairKind = "with-new") -> str:
    """Return a Markdown table of models and their scores for a kind of pair.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Results by name.
    kind : str, default="with-new"
        The kind of pair.

    Returns
    -------
    table : str
        Means over folds, with standard deviations in parentheses.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import InputSimilarity, cross_validate_links, format_table
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> result = cross_validate_links(InputSimilarity(), X, np.abs(X - X.T) < 0.3, cv=4)
    >>> format_table({"similarity": result}).startswith("|")
    True
    """
    check_evaluations(evaluations)
    by_name = {name: scores_of(result, kind) for name, result in evaluations.items()}
    ks = list(next(iter(by_name.values())).precision)
    rows = [
        [
            name,
            *(f"{np.nanmean(s):.3f} ({np.nanstd(s):.3f})" for s in (scores.auc, scores.aupr)),
            *(f"{np.nanmean(scores.precision[k]):.3f}" for k in ks),
            f"{evaluations[name].seconds.mean():.1f}",
        ]
        for name, scores in by_name.items()
    ]
    header = ["", "AUC", "AUPR", *(f"precision at {k}" for k in ks), "seconds per fold"]
    return Table(header, rows).markdown()
