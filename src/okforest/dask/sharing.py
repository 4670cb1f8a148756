"""Kernels that are sent to every worker once, for searches of scikit-learn."""

import copyreg
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from okforest.dask.cluster import find_client
from okforest.kernels import OutputKernel

_kept: dict[str, Any] = {}  # kernels that this process has been sent, by key


class Reference:
    """Stands for a kernel in the scheduler, which reads tasks and passes them on to workers."""

    def __init__(self, key: str):
        self.key = key

    def __reduce__(self) -> Any:
        return kernel_on_worker, (self.key,)


@contextmanager
def shared(kernel: OutputKernel, client: Any = None) -> Iterator[OutputKernel]:
    """Send a kernel with a Gram matrix to every worker once, while the context is open.

    joblib's dask backend pickles a model for every candidate and fold of a search, and with it the
    Gram matrix of a precomputed kernel. In this context, tasks refer to the copy on their worker.
    So does every pickle made in it: save a model after the context has ended, not within it.

    Parameters
    ----------
    kernel : OutputKernel
        The kernel that holds the data, such as a :class:`okforest.kernels.Precomputed`. Models may
        use it within other kernels, as in ``RBF(base=kernel)``.
    client : distributed.Client, optional
        The client of the cluster; by default the current one.

    Yields
    ------
    kernel : OutputKernel
        The same kernel.

    Examples
    --------
    >>> import joblib
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> from sklearn.model_selection import GridSearchCV
    >>> from okforest import OKExtraTrees
    >>> from okforest.dask import shared
    >>> from okforest.kernels import RBF, Precomputed
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> kernel = Precomputed(RBF(1.0)(X))
    >>> model = OKExtraTrees(5, kernel=kernel, random_state=0)
    >>> search = GridSearchCV(model, {"min_samples_leaf": [1, 10]}, cv=3)
    >>> with Client(n_workers=2, processes=False, dashboard_address=":0") as client:
    ...     with shared(kernel), joblib.parallel_config("dask"):
    ...         best = search.fit(X, np.arange(60)).best_params_
    >>> best
    {'min_samples_leaf': 1}
    """
    if not isinstance(kernel, OutputKernel):
        raise TypeError(
            f"shared takes a kernel, such as Precomputed(K) for a Gram matrix K; got a "
            f"{type(kernel).__name__}."
        )
    client = find_client(client)
    key, kind = uuid4().hex, type(kernel)
    usual = copyreg.dispatch_table.get(kind)
    try:
        client.run(_keep, key, kernel)
        _keep(key, kernel)
        client.run_on_scheduler(_refer, key)  # the scheduler may be another process
        copyreg.pickle(kind, _reducer(kernel, key, usual))
        yield kernel
    finally:
        if usual is not None:
            copyreg.pickle(kind, usual)
        else:
            copyreg.dispatch_table.pop(kind, None)
        client.run(_drop, key)
        client.run_on_scheduler(_drop, key)
        _drop(key)


def _keep(key: str, kernel: OutputKernel) -> None:
    _kept[key] = kernel


def _refer(key: str) -> None:
    _kept.setdefault(key, Reference(key))


def _drop(key: str) -> None:
    _kept.pop(key, None)


def _reducer(
    kernel: OutputKernel, key: str, usual: Callable[[Any], Any] | None
) -> Callable[[Any], Any]:
    """Return a function that pickles one kernel as its key, and others as before."""
    known = kernel.get_params(deep=False)

    def reduce(other: OutputKernel) -> Any:
        if all(value is known[name] for name, value in other.get_params(deep=False).items()):
            return kernel_on_worker, (key,)  # it may be a clone, which shares the data
        return other.__reduce_ex__(4) if usual is None else usual(other)

    return reduce


def kernel_on_worker(key: str) -> Any:
    """Return a kernel that was sent to all workers; in the scheduler, a reference to it."""
    if key not in _kept:
        raise RuntimeError(
            "this process does not have the kernel of a model that was pickled within "
            "shared(kernel): the context has ended, or this worker was started after it began. "
            "Enter it again for a search; save models after it has ended."
        )
    return _kept[key]
