"""Groups of features: how well each predicts links, and how much of each a model uses."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from okforest._compat import rows_of
from okforest._sparse import check_sparse
from okforest._typing import Floats
from okforest.network._base import LinkPredictor
from okforest.network._models import final_model
from okforest.network.evaluation import Evaluation, cross_validate_links

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
