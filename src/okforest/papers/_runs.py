"""Jobs run side by side, on all cores, with a cache from which an interrupted run goes on."""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from time import process_time
from types import FrameType
from typing import Any

from threadpoolctl import threadpool_limits

from okforest.papers._cache import Cache, Found
from okforest.papers._jobs import Finished, Job, Results

STOPS = (signal.SIGINT, signal.SIGTERM)


def run(
    jobs: list[Job],
    cache: Cache,
    workers: int = 1,
    *,
    finished: Callable[[Finished], object] = lambda done: None,
    stopping: Callable[[int], object] = lambda n_under_way: None,
) -> Results:
    """Do the jobs that the cache does not have, and return what all of them have found.

    Ctrl-C (or SIGTERM) stops the run when the jobs under way are done, so that nothing is lost; a
    second one stops it at once, and loses these jobs. If a job fails, the others under way are
    finished before its error is raised.

    Parameters
    ----------
    jobs : list of Job
        The jobs.
    cache : Cache
        Where results are kept.
    workers : int, default=1
        Number of processes; with 1, all is done in this one.
    finished : callable, optional
        Called with every job that is done, those done earlier first.
    stopping : callable, optional
        Called with the number of jobs under way when a run is to be stopped.

    Returns
    -------
    results : Results
        In the order of the jobs.
    """
    found = {}

    def keep(job: Job, result: Found, earlier: bool) -> None:
        found[id(job)] = done = Finished(job, *result, earlier)
        finished(done)

    todo = []
    for job in jobs:
        kept = cache.load(job)
        if kept is None:
            todo.append(job)
        else:
            keep(job, kept, earlier=True)
    waiting = deque(sorted(todo, key=lambda job: -job.cost))
    under_way: dict[Future[Found], Job] = {}
    error: BaseException | None = None
    workers = min(workers, max(len(todo), 1))
    with _stopped_gently(lambda: stopping(len(under_way))) as stop, _executor(workers) as executor:
        while under_way or (waiting and not stop.is_set()):
            while waiting and not stop.is_set() and len(under_way) < workers:
                job = waiting.popleft()
                with _signals_held():
                    under_way[executor.submit(perform, job, cache)] = job
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                job = under_way.pop(future)
                failure = future.exception()
                if failure is None:
                    keep(job, future.result(), earlier=False)
                elif error is None:
                    ended = stop.is_set() and isinstance(failure, BrokenExecutor)
                    error = KeyboardInterrupt() if ended else failure
                    stop.set()
    if error is not None:
        raise error
    if waiting:
        raise KeyboardInterrupt
    return Results([found[id(job)] for job in jobs])


def perform(job: Job, cache: Cache) -> Found:
    """Do a job, and keep what it finds."""
    start = process_time()
    result = job.work(**job.arguments)
    found = Found(result, process_time() - start)
    cache.store(job, found)
    return found


class _Here(Executor):
    """Does in this process, at once, what it is given."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with threadpool_limits(1):
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)
        return future


@contextmanager
def _executor(workers: int) -> Iterator[Executor]:
    """Give processes of one thread each; they end with this one, however it ends."""
    if workers == 1:
        yield _Here()
        return
    others = set(active_children())
    # Forking a process that has threads, as this one may, is not safe.
    executor = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_become_worker)
    with executor:
        try:
            yield executor
        except BaseException:  # stopped at once: do not wait for what is under way
            executor.shutdown(wait=False, cancel_futures=True)
            for process in set(active_children()) - others:
                process.kill()
            raise


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait: processes started meanwhile are born deaf to them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _become_worker() -> None:
    for number in STOPS:
        # They may go to all processes of a group: the first one decides what is to be done.
        signal.signal(number, signal.SIG_IGN)
    os.environ["OKFOREST_NUM_THREADS"] = "1"
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait_for([parent.sentinel])
    os._exit(1)


@contextmanager
def _stopped_gently(stopping: Callable[[], object]) -> Iterator[threading.Event]:
    """Give an event that the first Ctrl-C or SIGTERM sets; the second raises KeyboardInterrupt."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals are none of this thread's business
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        stopping()

    before = {number: signal.signal(number, handle) for number in STOPS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
