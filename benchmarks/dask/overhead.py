"""The cost of growing trees on workers: total CPU time and peak memory beside a local fit.

Workers are processes with one thread each, which run and have imported okforest before a fit.
Efficiency is the CPU time of the local fit divided by the total of all workers: the speed-up
divided by the number of workers if every worker has a core. If there are fewer cores, or others use
them, processes slow each other down: "plain" is the CPU time of as many processes that grow the
same trees at the same time without Dask. "Event loops" is the part of the workers' CPU time that is
spent outside of tasks: they receive data, send trees, answer the scheduler and sample a profile.
Much of it is spent in every second, also by idle workers: "at rest" is the CPU time of idle workers
for as long as the fit took, which is long without cores of their own. All take turns, and the best
of several times is reported. Peak memory is the largest of all workers and fits, above the level
before the fit, divided by the size of the worker's data (X, embedded outputs, weights) and of the
trees that it has grown. The first model is measured for each number of workers, others for the
largest. Prints a table in Markdown, and draws the efficiency of the first model.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import machine
from benchmarks.dask.cluster import bytes_of, cpu_seconds, memory, reset_peak, workers
from distributed import get_task_stream

from okforest import OKExtraTrees, OKRandomForest
from okforest._utils.report import Table
from okforest.dask import fit
from okforest.dask.fitting import SentPlan
from okforest.engine import grow

REST = 5.0  # seconds
TIMES = {
    "local": "local",
    "plain": "plain",
    "cluster": "Dask",
    "event loops": "event loops",
    "at rest": "at rest",
}
MODELS = {"extra-trees": OKExtraTrees, "random forest": OKRandomForest}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--outputs", type=int, default=64)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path, help="such as docs/images/dask_efficiency.png")
    options = parser.parse_args()
    machine.fix_threads()
    about = machine.describe()
    cases = [(options.models[0], n) for n in options.workers]
    cases += [(name, max(options.workers)) for name in options.models[1:]]
    rows = [measure(*case, options) for case in cases]
    command = " ".join(["python -m benchmarks.dask.overhead", *sys.argv[1:]])
    print(f"Printed by `{command}`.\n")
    print(
        f"### CPU time of workers: N = {options.rows:,}, {options.features} features, "
        f"{options.outputs} outputs, {options.trees} trees\n"
    )
    print(table(rows).markdown())
    print("\n" + ", ".join(f"{key}: {value}" for key, value in about.items()) + ".")
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1))
    if options.figure:
        draw([row for row in rows if row["model"] == options.models[0]], options.figure)


def table(rows: list[dict[str, Any]]) -> Table:
    """Return the measurements, and the ratios of CPU times."""
    lines = [
        [
            row["model"],
            row["workers"],
            *(f"{row[name]:.2f} s" for name in TIMES),
            f"{row['cluster'] / row['local']:.2f}",
            f"{row['cluster'] / row['plain']:.2f}",
            f"{row['memory']:.2f}",
        ]
        for row in rows
    ]
    ratios = ["Dask / local", "Dask / plain", "peak memory"]
    return Table(["model", "workers", *TIMES.values(), *ratios], lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the efficiency for each number of workers."""
    import matplotlib.pyplot as plt

    workers = [row["workers"] for row in rows]
    figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
    for name, label, marker in (
        ("local", "a local fit", "o"),
        ("plain", "as many plain processes", "s"),
    ):
        values = [row[name] / row["cluster"] for row in rows]
        axes.plot(workers, values, marker + "-", label=label)
    axes.set(xlabel="workers, one thread each", ylabel="efficiency", ylim=(0, 1.2), xticks=workers)
    axes.legend(loc="lower left", title="CPU time beside")
    figure.savefig(path, dpi=110)


def prepare(*plan: Any) -> None:
    """Keep the plan in a plain process."""
    global kept
    kept = SentPlan(*plan)
    grow(kept, range(1))


def grow_trees(trees: range) -> float:
    """Grow trees in a plain process; return the CPU time."""
    start = cpu_seconds()
    grow(kept, trees)
    return cpu_seconds() - start


@contextmanager
def plain_processes(plan: Any, n_trees: int, n_processes: int) -> Iterator[Callable[[], float]]:
    """Start processes; yield a function that grows trees in all and returns the CPU time."""
    shares = np.array_split(np.arange(n_trees), n_processes)
    ranges = [range(int(share[0]), int(share[-1]) + 1) for share in shares]
    parts = [getattr(plan, field.name) for field in fields(plan)]
    with ExitStack() as stack:
        # A pool for each process: one process cannot take the share of another.
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"), prepare, parts))
            for _ in ranges
        ]
        for started in [pool.submit(cpu_seconds) for pool in pools]:
            started.result()

        def grow_all() -> float:
            grown = [pool.submit(grow_trees, r) for pool, r in zip(pools, ranges, strict=True)]
            return sum(future.result() for future in grown)

        yield grow_all


def loop_seconds() -> float:
    """Return the CPU time of this thread: the event loop, if a client runs this on a worker."""
    return time.thread_time()


def spent(client: Any, clock: Callable[[], float]) -> float:
    """Return the sum of a clock of all workers."""
    return float(sum(client.run(clock).values()))


def fit_on_workers(client: Any, model: Any, X: Any, Y: Any) -> tuple[Any, dict[str, float]]:
    """Fit a model on workers; return it, and the CPU time and memory that it took."""
    client.run(reset_peak)
    level = client.run(memory, "VmRSS")
    start, cpu, loops = time.perf_counter(), spent(client, cpu_seconds), spent(client, loop_seconds)
    with get_task_stream(client) as stream:
        fit(model, X, Y, client=client)
    took = {
        "seconds": time.perf_counter() - start,
        "cluster": spent(client, cpu_seconds) - cpu,
        "event loops": spent(client, loop_seconds) - loops,
    }
    peak = client.run(memory, "VmHWM")
    grown = Counter(task["worker"] for task in stream.data if "grow_range" in task["key"])
    data, trees = X.nbytes + Y.nbytes + 8 * len(X), bytes_of(model.trees_)
    took["memory"] = max(
        (peak[worker] - level[worker]) / (data + trees * grown[worker] / grown.total())
        for worker in peak
    )
    return model, took


def measure(name: str, n_workers: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return the CPU times and memory of one model on a number of workers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, options.features))
    mixing = rng.normal(size=(options.features, options.outputs))
    Y = np.tanh(X @ mixing / 4) + 0.1 * rng.normal(size=(options.rows, options.outputs))
    make = MODELS[name]
    plan = make(options.trees, random_state=0)._plan(X, Y, None).growth
    local, plain, on_workers = [], [], []
    with (
        plain_processes(plan, options.trees, n_workers) as grow_all,
        workers(n_workers) as client,
    ):
        at_rest = spent(client, cpu_seconds)
        time.sleep(REST)
        at_rest = (spent(client, cpu_seconds) - at_rest) / REST
        for _ in range(options.repeats):
            start = cpu_seconds()
            expected = make(options.trees, random_state=0).fit(X, Y)
            local.append(cpu_seconds() - start)
            plain.append(grow_all())
            found, took = fit_on_workers(client, make(options.trees, random_state=0), X, Y)
            on_workers.append(took)
            assert np.array_equal(expected.trees_.threshold, found.trees_.threshold)
    best = min(on_workers, key=itemgetter("cluster"))
    row = {
        "model": name,
        "workers": n_workers,
        "local": min(local),
        "plain": min(plain),
        **best,
        "at rest": at_rest * best["seconds"],
        "memory": max(took["memory"] for took in on_workers),
    }
    print(row, file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    main()
