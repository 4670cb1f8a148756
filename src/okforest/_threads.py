"""How many threads a call may use."""

import os

import joblib


def thread_count(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads.

    ``None`` means one, or what an enclosing :class:`joblib.parallel_config` says; -1 means all
    cores. The result is capped by ``OKFOREST_NUM_THREADS``, else by ``OMP_NUM_THREADS``: worker
    processes of joblib and Dask set the latter to share the machine fairly.
    """
    n_threads = int(joblib.effective_n_jobs(n_jobs))
    for name in ("OKFOREST_NUM_THREADS", "OMP_NUM_THREADS"):
        limit = os.environ.get(name, "")
        if limit.isdigit() and int(limit) > 0:
            return min(n_threads, int(limit))
    return n_threads
