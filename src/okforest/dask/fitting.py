"""Fitting a forest whose trees are grown by the workers of a cluster."""

from functools import partial
from typing import Any

from sklearn.base import clone

from okforest._utils.progress import progress_of
from okforest.dask._cluster import (
    cancelling,
    completed,
    find_client,
    replicated,
    watched,
    with_replicated,
)
from okforest.dask._collecting import collected
from okforest.dask._decoding import check_decoder
from okforest.dask._growing import check_plan, grow, grow_range, tree_ranges
from okforest.dask._keeping import keep_parts
from okforest.dask._parts import Part
from okforest.dask._row_plan import plan_rows
from okforest.dask._rows import grow_parts
from okforest.dask._transport import SentPlan
from okforest.dask.remote import RemoteForest
from okforest.engine import GrowthPlan, prune
from okforest.models.tree_model import TreeModel
from okforest.weights import Span


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Any:
    """Fit a forest with trees grown by the workers of a Dask cluster.

    The forest is the one that ``estimator.fit(X, y, sample_weight)`` grows, to the last bit, for
    any number of workers. X and the embedded outputs are sent once to every worker. For data that
    does not fit on one, see :func:`fit_remote`.

    Parameters
    ----------
    estimator : OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees or OKTree
        The forest to fit. With ``verbose=1``, a progress bar counts the trees.
    X : array-like, frame, sparse matrix, or Dask array or frame, of shape (n, p)
        Inputs.
    y : array-like of n outputs, or Dask array, series or frame
        Outputs.
    sample_weight : array-like of shape (n,) or Dask array or series, optional
        Weights of the rows.
    client : distributed.Client, optional
        The client of the cluster; by default the current one.

    Returns
    -------
    estimator : estimator
        The estimator that was passed, fitted. Nothing stays on the cluster.

    See Also
    --------
    fit_remote : For data or forests that one machine cannot hold.
    predict : Prediction for the partitions of a Dask collection.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKExtraTrees
    >>> from okforest.dask import fit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with Client(n_workers=2, processes=False, dashboard_address=":0") as client:
    ...     forest = fit(OKExtraTrees(random_state=0), X, y, client=client)
    >>> (forest.predict(X) == OKExtraTrees(random_state=0).fit(X, y).predict(X)).all()
    np.True_
    """
    check_forest(estimator)
    client = find_client(client)
    with watched(client):
        X, y, sample_weight = collected(client, X, y, sample_weight)
        return estimator.fit_by(partial(grow, client=client), X, y, sample_weight)


def fit_remote(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    partitioned: bool = False,
    client: Any = None,
) -> RemoteForest:
    """Fit a forest that stays on the workers of a Dask cluster.

    Parameters
    ----------
    estimator : OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees or OKTree
        The forest to fit; it does not change. An ``OKTree`` needs ``bootstrap=True`` if rows are
        in partitions.
    X : array-like, frame, sparse matrix, or Dask array or frame, of shape (n, p)
        Inputs.
    y : array-like of n outputs, or Dask array, series or frame
        Outputs.
    sample_weight : array-like of shape (n,) or Dask array or series, optional
        Weights of the rows.
    partitioned : bool, default=False
        False: X and y are sent once to every worker. True: X and y are Dask collections whose
        partitions stay where they are, for data that no worker can hold; every tree is grown on the
        rows that it draws (``bootstrap=True``, ``max_samples`` rows), which are sent to its worker.
        The rows and the trees are those of a local fit. The kernel must have explicit features, or
        ``embedding`` must be "nystrom" or "fourier".
    client : distributed.Client, optional
        The client of the cluster; by default the current one.

    Returns
    -------
    forest : RemoteForest
        The forest, to predict with or to bring here. Its predictions are lazy; if ``client`` is not
        the current one, compute them with ``client.compute(..., sync=True)``.

    See Also
    --------
    fit : Returns an ordinary estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest
    >>> from okforest.dask import fit_remote
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> with Client(n_workers=2, processes=False, dashboard_address=":0") as client:
    ...     model = OKRandomForest(10, max_samples=200, random_state=0)
    ...     forest = fit_remote(model, X, y, partitioned=True)
    ...     predicted = forest.predict(X).compute()
    ...     local = forest.to_local()
    >>> predicted.shape
    (442,)
    >>> len(local.trees_)
    10
    """
    check_forest(estimator)
    client = find_client(client)
    model = clone(estimator)
    with watched(client):
        if partitioned:
            return _fit_partitioned(client, model, X, y, sample_weight)
        return _fit_replicated(client, model, X, y, sample_weight)


def _fit_partitioned(
    client: Any, model: TreeModel, X: Any, y: Any, sample_weight: Any
) -> RemoteForest:
    plan = plan_rows(client, model, X, y, sample_weight)
    n_trees = model.n_estimators
    progress = progress_of(0, n_trees, model.verbose, model.callback)
    parts = grow_parts(client, plan, n_trees, progress)
    model.kernel_ = plan.recipe.outputs.kernel
    model.seed_, model.row_weight_ = plan.recipe.seed, plan.weight
    model.min_samples_leaf_ = int(plan.recipe.rules.min_samples_leaf)
    model.embedding_ = plan.recipe.outputs.kind
    model.embedding_residual_ = plan.recipe.outputs.residual
    model.embedding_rank_ = plan.recipe.outputs.embed(plan.reference[:2]).rank
    model.search_rank_, model.search_variance_ = model.embedding_rank_, 1.0
    return RemoteForest(client, model, parts, [1] * n_trees, plan.reference, plan.rows)


def _fit_replicated(
    client: Any, model: TreeModel, X: Any, y: Any, sample_weight: Any
) -> RemoteForest:
    if y is None:
        raise ValueError(
            "y is None; a forest on workers needs outputs to predict. For trees without outputs, "
            "use okforest.dask.fit."
        )
    if getattr(model, "oob_score", False):
        raise ValueError(
            "oob_score=True needs all trees in one place, and they stay on their workers; use "
            "oob_score=False, or okforest.dask.fit."
        )
    X, y, sample_weight = collected(client, X, y, sample_weight)
    model._validate_params()
    plan = model._plan(X, y, sample_weight)
    assert plan.target is not None
    known = plan.target.kernel, plan.target.outputs
    check_decoder(model, Span(*known), partitioned=False)
    limits = check_plan(client, plan.growth)
    ranges = tree_ranges(plan.trees, limits.n_threads)
    progress = progress_of(0, model.n_estimators, model.verbose, model.callback)

    sizes = [len(some) for some in ranges]

    def grow_all(data: Any) -> list[Any]:
        parts: list[Any] = []
        with replicated(client, known) as outputs, cancelling(client, parts, keep=True):
            for some in ranges:
                parts.append(
                    client.submit(_grow_part, data, outputs, some, model.ccp_alpha, pure=False)
                )
            size_of = {part.key: size for part, size in zip(parts, sizes, strict=True)}
            n_done = 0
            for part in completed(client, parts):
                n_done += size_of[part.key]
                progress(n_done)
            return keep_parts(client, parts)

    parts = with_replicated(client, SentPlan.of(plan.growth), grow_all)
    model._finish(plan, None)
    return RemoteForest(client, model, parts, sizes, model.outputs_)


def _grow_part(plan: GrowthPlan, known: Any, trees: range, ccp_alpha: float) -> Part:
    grown = grow_range(plan, trees)
    return Part(prune(grown, ccp_alpha) if ccp_alpha > 0 else grown, *known)


def check_forest(estimator: Any) -> None:
    """Raise an error unless workers can grow the trees of an estimator, each on its own."""
    if not isinstance(estimator, TreeModel):
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"okforest.dask fits forests, whose trees are grown independently; got {name}. Pass an "
            "OKExtraTrees, OKRandomForest, OKBagging, OKTotallyRandomTrees or OKTree. To search "
            "the parameters of any model on a cluster, use joblib's dask backend."
        )
    if estimator.device == "cuda":
        raise ValueError(
            "device='cuda' grows trees on the GPU of this machine; workers grow them on CPUs. Use "
            "device='cpu' (or 'auto'), or estimator.fit(X, y) without a cluster."
        )
