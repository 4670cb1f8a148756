"""The cluster: its client and workers, data sent to workers, and tasks that can be cancelled."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import okforest

log = logging.getLogger("okforest.dask")

# The share of a worker's memory limit that its data may take; trees and copies need the rest.
DATA_SHARE = 0.6
# How often data is sent if all workers that hold it die.
ATTEMPTS = 3


def require(module: str) -> Any:
    """Import a module of Dask, or raise an error that names what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"okforest.dask needs Dask ({error}); install it with pip install 'okforest[dask]'."
        ) from None


def is_collection(values: Any) -> bool:
    """Return whether values are a Dask array, frame or series."""
    return hasattr(values, "__dask_graph__") and hasattr(values, "to_delayed")


def find_client(client: Any = None) -> Any:
    """Return the client to use: a given one, or the current one; its cluster has workers."""
    distributed = require("distributed")
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise RuntimeError(
                "there is no Dask client. Start one, as in Client() for a cluster on this machine "
                "or Client('tcp://scheduler:8786') for a running one, or pass client=."
            ) from None
    if client.asynchronous:
        raise ValueError("the client is asynchronous; pass one without asynchronous=True.")
    if client.status != "running":
        raise RuntimeError(
            f"the Dask client is {client.status}: it has no connection to a scheduler. Connect "
            "again with Client(address)."
        )
    workers_of(client)
    _check_versions(client)
    return client


def workers_of(client: Any) -> dict[str, Any]:
    """Return what the scheduler knows about its workers, by address; wait for the first one.

    There may be none for a moment, while the only one is restarted.
    """
    dask = require("dask")
    timeout = dask.config.get("distributed.comm.timeouts.connect", "30s")
    end = time.monotonic() + dask.utils.parse_timedelta(timeout)
    while True:
        # client.scheduler_info() may have no workers: a refresh in the background drops them.
        workers: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
        if workers:
            return workers
        if time.monotonic() > end:
            raise RuntimeError(
                f"the cluster at {client.scheduler.address} has no workers after {timeout}; start "
                f"some, for example with: dask worker {client.scheduler.address}"
            )
        time.sleep(0.1)


def _check_versions(client: Any) -> None:
    """Raise an error if a worker has another version of okforest, or none."""
    versions = client.run(_version, on_error="return")
    for worker, version in versions.items():
        if isinstance(version, OSError):  # the worker has just died: others take its tasks
            continue
        if version != okforest.__version__:
            found = f"okforest {version}" if isinstance(version, str) else f"no okforest: {version}"
            raise RuntimeError(
                f"worker {worker} has {found}; this process has {okforest.__version__}. Trees are "
                "the same only with the same version: install it on every worker."
            )


def _version() -> str:
    return import_module("okforest").__version__


class WorkerLimits:
    """The threads and memory limits of the workers of a cluster."""

    def __init__(self, client: Any):
        workers = workers_of(client)
        self.n_workers = len(workers)
        self.n_threads = max(1, sum(worker["nthreads"] for worker in workers.values()))
        limits = {name: worker["memory_limit"] for name, worker in workers.items()}
        self._limits = {name: limit for name, limit in limits.items() if limit}

    @property
    def memory(self) -> int | None:
        """The least memory limit of a worker in bytes; None if there is none."""
        return min(self._limits.values(), default=None)

    def check(self, n_bytes: int, what: str, advice: str, share: float = DATA_SHARE) -> None:
        """Raise a MemoryError if something does not fit in a share of every worker's memory."""
        for worker, limit in self._limits.items():
            if n_bytes > share * limit:
                raise MemoryError(
                    f"{what} takes {mebibytes(n_bytes)}, and worker {worker} has a memory limit of "
                    f"{mebibytes(limit)}, of which {share:.0%} may hold it. {advice}"
                )


@contextmanager
def replicated(client: Any, data: Any) -> Iterator[Any]:
    """Send data once to every worker, and remove it from the cluster at the end."""
    (future,) = client.scatter([data], broadcast=True, hash=False)  # one, even of a tuple
    try:
        yield future
    finally:
        future.release()


def with_replicated(client: Any, data: Any, work: Callable[[Any], Any]) -> Any:
    """Call a function with data that is on every worker; again, if all that hold it have died."""
    distributed = require("distributed")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with replicated(client, data) as future:
                return work(future)
        except distributed.client.FutureCancelledError as error:
            if attempt == ATTEMPTS:
                raise RuntimeError(
                    f"all workers that held the data have died, {ATTEMPTS} times. Most often they "
                    "have run out of memory: give workers more (memory_limit), or see their logs."
                ) from None
            log.warning("the workers that held the data died (%s); it is sent again", error)
            workers_of(client)


@contextmanager
def cancelling(client: Any, futures: list[Any], keep: bool = False) -> Iterator[None]:
    """Cancel tasks after an error or Ctrl-C, and forget all; at the end, too, unless kept."""
    distributed = require("distributed")
    done = False
    try:
        yield
        done = True
    except distributed.scheduler.KilledWorker as error:
        raise RuntimeError(
            f"a task was given up since {error.allowed_failures + 1} workers died while it ran, "
            f"the last one {error.last_worker.address}. Most often they have run out of memory: "
            "give workers more (memory_limit), run fewer threads in each, or see their logs."
        ) from None
    finally:
        if not (done and keep):
            client.cancel(futures, force=True, reason="okforest cancelled the rest", msg=False)


def completed(client: Any, futures: list[Any]) -> Iterator[Any]:
    """Iterate over tasks as they are done; raise the error of one that has failed."""
    # Without its loop, this would be the loop of the default client, if there is one.
    for future in require("distributed").as_completed(futures, loop=client.loop):
        if future.status != "finished":
            future.result()
        yield future


def stop_if_cancelled(_: int) -> None:
    """Raise an error, on a worker, if the running task has been cancelled.

    Growing trees calls it many times a second: a cancelled task ends within a fraction of one.
    """
    distributed = require("distributed")
    worker = distributed.get_worker()
    task = worker.state.tasks.get(distributed.worker.thread_state.key)
    if task is None or task.state == "cancelled":
        raise InterruptedError("the task was cancelled")


def mebibytes(n_bytes: float) -> str:
    """Return a number of bytes as text."""
    return f"{n_bytes / 2**20:,.1f} MiB"
