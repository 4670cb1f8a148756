"""How many threads a call may use."""

import os

import joblib

MOST_THREADS = 1024


def thread_count(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads.

    ``None`` means one, or what an enclosing :class:`joblib.parallel_config` says; -1 means all
    cores, -2 all but one. The result is capped by ``OKFOREST_NUM_THREADS``, else by
    ``OMP_NUM_THREADS``: worker processes of joblib and Dask set the latter to share the machine
    fairly.
    """
    if n_jobs is None:
        n_threads = int(joblib.effective_n_jobs(None))
    elif n_jobs == 0:
        raise ValueError("n_jobs=0 means nothing; use a number of threads, or -1 for all cores.")
    else:
        n_threads = n_jobs if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + n_jobs)
    n_threads = min(n_threads, MOST_THREADS)
    for name in ("OKFOREST_NUM_THREADS", "OMP_NUM_THREADS"):
        limit = os.environ.get(name, "")
        if limit.isdigit() and int(limit) > 0:
            return min(n_threads, int(limit))
    return n_threads
