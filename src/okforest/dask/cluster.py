"""The cluster: its client and workers, data sent to workers, and tasks that can be cancelled."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any
from uuid import uuid4

import okforest
from okforest._utils.errors import install_extra

log = logging.getLogger("okforest.dask")

# Largest share of a worker's free memory for its data. While data arrive they take this share
# twice, in a message and as aligned arrays; later, trees need the rest.
DATA_SHARE = 0.4
# If workers die, data are sent again, at most this many times in all.
ATTEMPTS = 3
# Seconds between warnings that all workers are paused.
WARN_EVERY = 10.0

CANCELLED = "okforest cancelled the rest"
# Seconds to wait until the scheduler has received all tasks that are to be cancelled.
CANCEL_TIMEOUT = 5.0

MORE_MEMORY = "give workers more memory (memory_limit), or see their logs."


def require(module: str) -> Any:
    """Import a module of Dask, or raise an error that names what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"okforest.dask needs Dask ({error}); run {install_extra('dask')}."
        ) from None


def is_collection(values: Any) -> bool:
    """Return whether values are a Dask array, frame or series."""
    return hasattr(values, "__dask_graph__") and hasattr(values, "to_delayed")


def find_client(client: Any = None) -> Any:
    """Return the client that was passed, or the current one; its cluster has workers."""
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
    log.info("checking the versions of the cluster; processes import okforest the first time")
    _check_versions(client)
    WorkerLimits(client).check_room()
    return client


def workers_of(client: Any) -> dict[str, Any]:
    """Return the scheduler's information on its workers, by address; wait for one that runs.

    There may be none for a moment, while the only one is restarted or paused.
    """
    timeout = patience()
    end = time.monotonic() + require("dask").utils.parse_timedelta(timeout)
    while True:
        workers = workers_now(client)
        if workers and not _all_paused(workers):
            return workers
        if time.monotonic() > end:
            address = scheduler_address(client)
            if workers:
                raise RuntimeError(
                    f"all {len(workers)} workers of the cluster at {address} are paused after "
                    f"{timeout}, since they have too little memory left; free what they hold, or "
                    + MORE_MEMORY
                )
            how = f"dask worker {address}"
            if address.startswith("inproc"):  # only this process can reach it
                how = "cluster.scale(2)"
            raise RuntimeError(
                f"the cluster at {address} has no workers after {timeout}; start some, for "
                f"example with: {how}"
            )
        time.sleep(0.1)


def patience() -> Any:
    """Return how long to wait for workers, as Dask writes times: as long as for a connection."""
    return require("dask").config.get("distributed.comm.timeouts.connect", "30s")


def workers_now(client: Any) -> dict[str, Any]:
    """Return the scheduler's information on its workers; at times none, while Dask refreshes it."""
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def scheduler_address(client: Any) -> str:
    """Return the address that workers and clients connect to."""
    address: str = client.scheduler_info()["address"]
    return address


def _all_paused(workers: dict[str, Any]) -> bool:
    return bool(workers) and all(worker["status"] == "paused" for worker in workers.values())


@contextmanager
def watched(client: Any) -> Iterator[None]:
    """Log a warning from time to time while all workers are paused: nothing happens then."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(WARN_EVERY):
            try:
                if _all_paused(workers_now(client)):
                    log.warning(
                        "all workers are paused, since they have too little memory left. If they "
                        "do not go on, stop this (Ctrl-C), and " + MORE_MEMORY
                    )
            except Exception:  # the client has been closed, or the scheduler is gone
                return

    watcher = threading.Thread(target=watch, name="okforest-dask-watcher", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()


def _check_versions(client: Any) -> None:
    """Raise an error if the scheduler or a worker has another version of okforest, or none."""
    versions = {
        f"worker {worker}": version
        for worker, version in client.run(_version, on_error="return").items()
        if not isinstance(version, OSError)  # it has just died: others take its tasks
    }
    scheduler = f"the scheduler at {scheduler_address(client)}"
    try:
        versions[scheduler] = client.run_on_scheduler(_version)
    except Exception as error:
        versions[scheduler] = error
    for process, version in versions.items():
        if version != okforest.__version__:
            found = f"okforest {version}" if isinstance(version, str) else f"no okforest: {version}"
            raise RuntimeError(
                f"{process} has {found}; this process has {okforest.__version__}. Trees are "
                "the same only with the same version: install it for the scheduler and every "
                "worker."
            )


def _version() -> str:
    return import_module("okforest").__version__


class WorkerLimits:
    """The threads and the memory of the workers of a cluster."""

    def __init__(self, client: Any):
        workers = workers_of(client)
        self.n_workers = len(workers)
        self.n_threads = max(1, sum(worker["nthreads"] for worker in workers.values()))
        limits = {name: worker["memory_limit"] for name, worker in workers.items()}
        self._limits = {name: limit for name, limit in limits.items() if limit}
        in_use = client.run(_memory_in_use, on_error="return") if self._limits else {}
        self._in_use = {name: n for name, n in in_use.items() if isinstance(n, int)}

    @property
    def memory(self) -> int | None:
        """The least free memory of a worker in bytes; None if there are no limits."""
        return min((self._free(worker) for worker in self._limits), default=None)

    def _free(self, worker: str) -> int:
        return max(0, self._limits[worker] - self._in_use.get(worker, 0))

    def check(self, n_bytes: int, what: str, advice: str, share: float = DATA_SHARE) -> None:
        """Raise a MemoryError if something does not fit in a share of every worker's memory."""
        for worker, limit in self._limits.items():
            if n_bytes > share * self._free(worker):
                raise MemoryError(
                    f"{size_text(n_bytes)} are needed for {what}; worker {worker} has a memory "
                    f"limit of {size_text(limit)}, of which {self._used(worker)} are in use, and "
                    f"{share:.0%} of the rest may hold it. {advice}"
                )

    def check_room(self) -> None:
        """Raise a MemoryError if all workers are too small to run anything, and pause."""
        pause = require("dask").config.get("distributed.worker.memory.pause", 0.8) or 1.0
        full = [
            name for name in self._limits if self._free(name) < (1 - pause) * self._limits[name]
        ]
        if full and len(full) == self.n_workers:
            worker = full[0]
            raise MemoryError(
                f"all workers are too small: {worker} has a memory limit of "
                f"{size_text(self._limits[worker])}, of which {self._used(worker)} are in use "
                "without any data, and pauses; " + MORE_MEMORY
            )

    def _used(self, worker: str) -> str:
        return size_text(self._in_use.get(worker, 0))


def _memory_in_use(dask_worker: Any) -> int:
    """Return the memory of a worker's process, without results, which it can write to disk."""
    if dask_worker.address.startswith("inproc"):  # nothing is sent to it: memory is shared
        return 0
    results = dask_worker.state.nbytes
    spilled = getattr(dask_worker.data, "spilled_total", None)
    if spilled is not None:
        results -= spilled.memory
    return int(max(0, dask_worker.monitor.get_process_memory() - results))


class NotSent(Exception):
    """Data did not reach the workers."""


@contextmanager
def replicated(client: Any, data: Any) -> Iterator[Any]:
    """Send data once to every worker, and remove it from the cluster at the end."""
    key = f"okforest-data-{uuid4().hex}"
    try:
        future = client.scatter({key: data}, broadcast=True, hash=False)[key]
    except BaseException as error:
        # Some workers may have it, and the scheduler keeps it for this client.
        require("distributed").Future(key, client).release()
        if isinstance(error, OSError | TimeoutError):
            raise NotSent(f"{type(error).__name__}: {error}") from None
        raise
    try:
        yield future
    finally:
        future.release()


def with_replicated(client: Any, data: Any, work: Callable[[Any], Any]) -> Any:
    """Call a function with data that is on every worker; again, if workers have died."""
    distributed = require("distributed")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with replicated(client, data) as future:
                return work(future)
        except (distributed.client.FutureCancelledError, NotSent) as error:
            what = "all workers that held the data have died"
            if isinstance(error, NotSent):
                what = "a worker died or was paused while the data was sent"
            if attempt == ATTEMPTS:
                raise RuntimeError(
                    f"{what}, {ATTEMPTS} times ({error}). Most often they have run out of memory: "
                    + MORE_MEMORY
                ) from None
            log.warning("%s (%s); it is sent again", what, error)
            workers_of(client)


_stopped: set[str] = set()  # tokens of cancelled fits, in this process


@contextmanager
def cancelling(client: Any, futures: list[Any], keep: bool = False) -> Iterator[str]:
    """Cancel tasks after an error or Ctrl-C, and forget all; at the end, too, unless kept.

    Tasks are added to the list as they are submitted: an error in between cancels them, too, even
    if its traceback is kept, and the tasks with it. Running tasks stop if they call
    :func:`stop_if_cancelled` with the token that is yielded.
    """
    distributed = require("distributed")
    token, done = uuid4().hex, False
    try:
        yield token
        done = True
    except distributed.KilledWorker as error:
        raise RuntimeError(
            f"a task was given up since {error.allowed_failures + 1} workers died while it ran, "
            f"the last one {error.last_worker.address}. Most often they have run out of memory: "
            "give workers more (memory_limit), run fewer threads in each, or see their logs."
        ) from None
    finally:
        if not (done and keep):
            _cancel(client, futures)
        if not done:
            with suppress(Exception):  # the scheduler or the workers may be gone
                client.run(_stop, token, on_error="ignore")
                # The scheduler reads submitted tasks in another thread, one after the other: tasks
                # may come after the message that cancels them, but not after this one.
                client.submit(int, pure=False).result(timeout=CANCEL_TIMEOUT)
                _cancel(client, futures)


def _cancel(client: Any, futures: list[Any]) -> None:
    client.cancel(futures, force=True, reason=CANCELLED, msg=False)


def _stop(token: str) -> None:
    _stopped.add(token)


def stop_if_cancelled(token: str, n_trees: int) -> None:
    """Raise an error, on a worker, if the fit with this token has been cancelled.

    Growing trees calls it many times a second, with the number of trees: a cancelled task ends
    within a fraction of one.
    """
    if token in _stopped:
        raise InterruptedError("the task was cancelled")


def computed(client: Any, tasks: list[Any]) -> Any:
    """Compute lazy values here; cancel the rest if one of them fails."""
    futures: list[Any] = []
    with cancelling(client, futures):
        futures += client.compute(tasks)
        return client.gather(futures)


def completed(client: Any, futures: list[Any]) -> Iterator[Any]:
    """Iterate over tasks as they are done; raise the error of one that has failed."""
    # Without its loop, this would be the loop of the default client, if there is one.
    for future in require("distributed").as_completed(futures, loop=client.loop):
        if future.status != "finished":
            future.result()
        yield future


class LostPart(RuntimeError):
    """A part of a forest is no longer on the worker that has grown it."""


def keep_parts(client: Any, parts: list[Any]) -> list[Any]:
    """Return tasks whose results are the results of others, where they are, and drop the others.

    Parts are grown from data that is removed after the fit. If a worker died, Dask would have to
    grow its parts again, could not, and would cancel all that depends on them without a reason. The
    tasks returned do not depend on the data: run again, elsewhere, they raise a :class:`LostPart`.
    """
    distributed = require("distributed")
    kept: dict[str, Any] = {}
    for _attempt in range(ATTEMPTS):
        missing = [part for part in parts if part.key not in kept]
        where = client.who_has(missing)
        tasks: list[Any] = []
        with cancelling(client, tasks, keep=True):
            for part in missing:
                # Other workers are allowed, or the loss of the worker would not be noticed.
                place = {"workers": list(where[part.key]) or None, "allow_other_workers": True}
                tasks.append(client.submit(kept_part, part.key, pure=False, **place))
            for _ in distributed.as_completed(tasks, loop=client.loop):
                pass
        # A task that Dask has given to another worker finds nothing there, and is repeated.
        for part, task in zip(missing, tasks, strict=True):
            if task.status == "finished":
                kept[part.key] = task
    lost = [part.key for part in parts if part.key not in kept]
    if lost:
        raise distributed.client.FutureCancelledError(lost[0], "its worker died")
    return [kept[part.key] for part in parts]


def kept_part(key: str) -> Any:
    """Return a part that this worker has grown."""
    held = require("distributed").get_worker().data
    if key not in held:
        raise LostPart(
            "parts of the forest were on workers that have died, or it was released; fit it again."
        )
    return held[key]


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as text."""
    return str(require("dask.utils").format_bytes(int(n_bytes)))
