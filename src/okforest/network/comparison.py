"""Comparison of models of links, and of groups of features, on the same folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import stdtr
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import rows_of
from okforest._utils.report import Table
from okforest.models.wrapping import final_model
from okforest.network.evaluation import (
    Evaluation,
    Metric,
    check_evaluations,
    check_metric,
    cross_validate_links,
    scores_of,
)
from okforest.network.graphs import PairKind
from okforest.network.links import LinkPredictor


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


# For each group, its columns: a slice, or a list of names or positions.
Groups = Mapping[str, Any]


def compare_groups(
    model: LinkPredictor,
    X: Any,
    graph: Any,
    groups: Groups,
    names: Any = None,
    *,
    all_features: bool = True,
    **options: Any,
) -> dict[str, Evaluation]:
    """Evaluate a model on each group of features separately, and on all features.

    Parameters
    ----------
    model : LinkPredictor
        A model of links; it is cloned.
    X : array-like, frame or sparse matrix of shape (n, p)
        Features, one row per vertex.
    graph : adjacency matrix, networkx graph or edge list
        The links.
    groups : dict of str to slice or list
        The columns of each group, by position or, in a data frame, by name.
    names : array-like of shape (n,), optional
        Names of the rows.
    all_features : bool, default=True
        Whether to evaluate all columns of X as well, under the name "all".
    **options
        Other arguments of :func:`cross_validate_links`.

    Returns
    -------
    evaluations : dict of str to Evaluation
        One result for each group, on the same folds.

    See Also
    --------
    group_importances : How much of each group a single model uses.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion, compare_groups
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> links = np.abs(X[:, 0] - X[:, :1]) < 0.3
    >>> groups = {"relevant": [0], "noise": slice(1, 3)}
    >>> results = compare_groups(NetworkCompletion(), X, links, groups, cv=3)
    >>> {name: bool(r.kinds["with-new"].auc.mean() > 0.75) for name, r in results.items()}
    {'relevant': True, 'noise': False, 'all': True}
    """
    check_sparse(X, "X")
    _check_groups(groups)
    if all_features and "all" in groups:
        raise ValueError(
            "a group is named 'all', which is the name for all features; rename it, or use "
            "all_features=False."
        )
    parts = {name: _columns_of(X, columns, name) for name, columns in groups.items()}
    if all_features:
        parts["all"] = X
    return {
        name: cross_validate_links(model, part, graph, names, **options)
        for name, part in parts.items()
    }


def group_importances(model: Any, groups: Groups) -> dict[str, float]:
    """Return the share of each group in the variance reduction of a fitted model, largest first.

    Parameters
    ----------
    model : NetworkCompletion
        A fitted model with trees.
    groups : dict of str to slice or list
        The columns of each group, by position, or by name if the model was fitted to a data frame.

    Returns
    -------
    importances : dict of str to float
        The sum of the importances of the features of each group.

    See Also
    --------
    okforest.inspection.plot_importances : Plot the importances of features or groups.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.network import NetworkCompletion, group_importances
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> links = np.abs(X[:, 0] - X[:, :1]) < 0.3
    >>> model = NetworkCompletion().fit(X, links)
    >>> list(group_importances(model, {"noise": slice(1, 3), "relevant": [0]}))
    ['relevant', 'noise']
    """
    check_is_fitted(model)
    _check_groups(groups)
    trees = final_model(getattr(model, "model_", model))
    if not hasattr(trees, "feature_importances_"):
        raise TypeError(
            f"{type(trees).__name__} has no feature importances; use trees, such as "
            "NetworkCompletion(OKExtraTrees())."
        )
    importances = trees.feature_importances_
    columns = getattr(trees, "feature_names_in_", np.arange(len(importances)))
    sums = {
        name: float(_importances_of(group, name, importances, columns).sum())
        for name, group in groups.items()
    }
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _importances_of(group: Any, name: str, importances: Floats, columns: Any) -> Floats:
    _check_group(group, name)
    by_name = not isinstance(group, slice) and isinstance(group[0], str)
    chosen = np.flatnonzero(np.isin(columns, group)) if by_name else group
    if by_name and len(chosen) < len(group):
        raise ValueError(_unknown(name))
    try:
        found: Floats = importances[chosen]
    except IndexError:
        raise ValueError(_unknown(name)) from None
    if len(found) == 0:
        raise ValueError(_empty(name))
    return found


def _columns_of(X: Any, columns: Any, name: str) -> Any:
    _check_group(columns, name)
    try:
        part = rows_of(X, columns, axis=1)
    except (LookupError, ValueError) as error:
        raise ValueError(f"{_unknown(name)} ({error})") from None
    if part.shape[1] == 0:
        raise ValueError(_empty(name))
    return part


def _check_groups(groups: Any) -> None:
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            f"groups={groups!r}; pass a dict of at least one group and its columns, such as "
            "{'first three': slice(0, 3)}."
        )


def _check_group(columns: Any, name: str) -> None:
    if isinstance(columns, slice):
        return
    if isinstance(columns, str) or not hasattr(columns, "__len__"):
        raise TypeError(
            f"group {name!r} is {columns!r}; use a slice or a list of columns, such as "
            f"[{columns!r}]."
        )
    if len(columns) == 0:
        raise ValueError(_empty(name))


def _empty(name: str) -> str:
    return f"group {name!r} has no features; add some, or remove the group."


def _unknown(name: str) -> str:
    return f"group {name!r} has unknown features; use the names of columns, or their positions."
