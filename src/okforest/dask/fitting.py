"""Fitting a forest whose trees are grown by the workers of a cluster.

Every worker has the data, and grows ranges of trees. With rows in partitions, trees are grown as in
:mod:`okforest.dask.rows`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from sklearn.base import clone

from okforest._utils.arrays import Outputs, Progress
from okforest._utils.progress import progress_of
from okforest.dask.cluster import (
    WorkerLimits,
    cancelling,
    completed,
    find_client,
    keep_parts,
    log,
    replicated,
    size_text,
    stop_if_cancelled,
    watched,
    with_replicated,
)
from okforest.dask.partitions import bytes_of, check_subsets, collected
from okforest.dask.prediction import Part, check_decoder
from okforest.dask.remote import RemoteForest
from okforest.dask.rows import grow_parts, plan_rows
from okforest.engine import GrowthPlan, Trees, prune
from okforest.engine import grow as grow_locally
from okforest.kernels import OutputKernel
from okforest.models.tree_model import TreeModel
from okforest.weights import Span

# A thread takes its trees in this number of ranges, so that threads end at about the same time and
# a worker that dies costs little.
RANGES = 6
# A range repeats what the engine prepares for all its trees: it has at least this number of them.
LEAST_TREES = 4

ADVICE = (
    "Give workers more memory, or keep the rows in partitions of which trees draw samples, with "
    "okforest.dask.fit_remote(..., partitioned=True)."
)


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
        The rows and the trees equal a local fit's. The kernel must have explicit features, or
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
    check_subsets(model, plan.inputs.categories)
    assert plan.target is not None
    known = plan.target.kernel, plan.target.outputs
    check_decoder(model, Span(*known), partitioned=False)
    ranges = plan_ranges(client, plan.growth, plan.trees)
    progress = progress_of(0, model.n_estimators, model.verbose, model.callback)

    def grow_all(data: Any) -> list[Any]:
        parts: list[Any] = []
        with replicated(client, known) as outputs, cancelling(client, parts, keep=True) as token:
            n_done = 0
            arguments = data, outputs, model.ccp_alpha, token
            for trees, _ in _grow_ranges(client, ranges, parts, grow_part, *arguments):
                n_done += len(trees)
                progress(n_done)
            return keep_parts(client, parts)

    parts = with_replicated(client, SentPlan.of(plan.growth), grow_all)
    model._finish(plan, None)
    return RemoteForest(client, model, parts, [len(trees) for trees in ranges], model.outputs_)


def grow(
    plan: GrowthPlan,
    trees: range,
    *,
    client: Any,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Trees:
    """Grow trees on the workers of a cluster, as :func:`okforest.engine.grow` does here.

    ``n_threads`` is not used: every thread of every worker grows trees.
    """
    ranges = plan_ranges(client, plan, trees)
    grown: dict[range, Trees] = {}

    def grow_missing(data: Any) -> None:
        futures: list[Any] = []
        missing = [trees for trees in ranges if trees not in grown]
        with cancelling(client, futures) as token:
            for trees, future in _grow_ranges(client, missing, futures, grow_range, data, token):
                grown[trees] = future.result()
                future.release()
                if progress is not None:
                    progress(sum(map(len, grown)))

    with_replicated(client, SentPlan.of(plan), grow_missing)
    return Trees.join([grown[trees] for trees in ranges])


def _grow_ranges(
    client: Any, ranges: list[range], futures: list[Any], task: Any, *arguments: Any
) -> Iterator[tuple[range, Any]]:
    """Submit a task for each range of trees; yield ranges and their tasks as they are done."""
    range_of: dict[str, range] = {}
    for trees in ranges:
        futures.append(client.submit(task, *arguments, trees, pure=False))
        range_of[futures[-1].key] = trees
    for future in completed(client, futures):
        yield range_of[future.key], future


def plan_ranges(client: Any, plan: GrowthPlan, trees: range) -> list[range]:
    """Return the ranges of trees that tasks grow, after checking that data fits on every worker."""
    limits = WorkerLimits(client)
    n_bytes = bytes_of(plan.X) + plan.outputs.nbytes + plan.row_weight.nbytes
    limits.check(n_bytes, "X and the embedded outputs, which every worker must hold", ADVICE)
    log.info("sending %s to each of %d workers", size_text(n_bytes), limits.n_workers)
    return tree_ranges(trees, limits.n_threads)


def tree_ranges(trees: range, n_threads: int) -> list[range]:
    """Divide trees into the ranges that tasks grow."""
    size = max(LEAST_TREES, ceil(len(trees) / (RANGES * n_threads)))
    size = min(size, max(1, ceil(len(trees) / n_threads)))
    return [trees[i : i + size] for i in range(0, len(trees), size)]


def grow_range(plan: GrowthPlan, token: str, trees: range) -> Trees:
    """Grow trees, on a worker."""
    return grow_locally(plan, trees, progress=partial(stop_if_cancelled, token))


def grow_part(
    plan: GrowthPlan,
    known: tuple[OutputKernel, Outputs],
    ccp_alpha: float,
    token: str,
    trees: range,
) -> Part:
    """Grow trees, on a worker, as a part of a forest that stays on it."""
    grown = grow_range(plan, token, trees)
    return Part(prune(grown, ccp_alpha) if ccp_alpha > 0 else grown, *known)


@dataclass(frozen=True)
class SentPlan(GrowthPlan):
    """A plan that is sent to other processes.

    The arrays of a message begin anywhere in memory; C++ expects numbers at multiples of their
    size. They are copied once, when a worker receives them.
    """

    @classmethod
    def of(cls, plan: GrowthPlan) -> "SentPlan":
        """Return a plan with the data of another."""
        return cls(**{field.name: getattr(plan, field.name) for field in fields(GrowthPlan)})

    def __reduce__(self) -> Any:
        return _received, ({field.name: getattr(self, field.name) for field in fields(self)},)


def _received(parts: dict[str, Any]) -> SentPlan:
    # All are copied, since arrays of one message keep each other in memory.
    return SentPlan(**{name: _copied(part) for name, part in parts.items()})


def _copied(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.copy(order="K")
    return part.copy() if hasattr(part, "indptr") else part


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
