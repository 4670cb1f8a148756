"""The number of threads that a call may use, and long calls of libraries in threads."""

import os
from collections.abc import Callable
from threading import Thread
from typing import Any

import joblib

from okforest._namespace import on_gpu
from okforest._typing import Floats

MAX_THREADS = 1024
LARGE_PRODUCT = 2**22  # entries from which a product of matrices may take long


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for a value of ``n_jobs``.

    As in scikit-learn, ``None`` means one, or the value of an enclosing
    :class:`joblib.parallel_config`; -1 means all cores, -2 all but one and so on, but at least one
    thread. The environment variable ``OKFOREST_NUM_THREADS``, or if it is not set
    ``OMP_NUM_THREADS``, is an upper limit: joblib and Dask set the latter in worker processes to
    avoid oversubscription.
    """
    if n_jobs is None:
        n_threads = int(joblib.effective_n_jobs(None))
    elif n_jobs == 0:
        raise ValueError("n_jobs=0 is not valid; use a number of threads, or -1 for all cores.")
    else:
        n_threads = n_jobs if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + n_jobs)
    n_threads = min(n_threads, MAX_THREADS)
    for name in ("OKFOREST_NUM_THREADS", "OMP_NUM_THREADS"):
        limit = os.environ.get(name, "").strip()
        if limit.isdecimal() and int(limit) > 0:
            return min(n_threads, int(limit))
        if limit and name == "OKFOREST_NUM_THREADS":  # the other has lists, such as "4,2"
            raise ValueError(
                f"the environment variable {name} is {limit!r}; set it to a positive number of "
                "threads, or unset it."
            )
    return n_threads


def interruptible(call: Callable[[], Any]) -> Any:
    """Call a compiled function in a thread of its own, so that Ctrl-C is heard at once.

    The function must release the GIL, as those of NumPy do. After Ctrl-C the thread ends when the
    function returns; its result is dropped.
    """
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no thread left
        return call()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]


def gram_product(a: Floats, b: Floats) -> Floats:
    """Return a @ b.T; Ctrl-C is heard during a long product."""
    if on_gpu(a) or len(a) * len(b) < LARGE_PRODUCT:
        return a @ b.T
    product: Floats = interruptible(lambda: a @ b.T)
    return product
