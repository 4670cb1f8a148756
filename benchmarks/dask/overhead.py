"""The cost of growing trees on workers: total CPU time and peak memory beside a local fit.

Workers are processes with one thread each. Efficiency is the CPU time of the local fit divided by
that of all workers: the speed-up divided by the number of workers if every worker has a core. If
there are fewer cores, or others use them, processes slow each other down: "plain" is the CPU time
of as many processes that grow the same trees at the same time without Dask. Workers also need some
CPU time for every second that passes, to answer the scheduler; "background" is that of the fit:
what they need at rest times how long the fit took, which is long without cores of their own. All
take turns, and the best of several times is reported. Peak memory is that of the worker with the
largest, above its level before the fit, divided by the size of its data (X, embedded outputs,
weights) and trees. Prints a table in Markdown, and draws the efficiency of the first model.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import machine
from benchmarks.dask.cluster import bytes_of, cpu_seconds, memory, reset_peak, workers

from okforest import OKExtraTrees, OKRandomForest
from okforest._report import Table
from okforest.dask import fit
from okforest.dask._transport import SentPlan
from okforest.engine import grow

REST = 5.0  # seconds
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
    rows = [row for name in options.models for row in measure(name, options)]
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
            *(f"{row[name]:.1f} s" for name in ("local", "plain", "cluster", "background")),
            f"{row['cluster'] / row['local']:.2f}",
            f"{row['cluster'] / row['plain']:.2f}",
            f"{row['memory']:.2f}",
        ]
        for row in rows
    ]
    times = ["local", "plain", "Dask", "background", "Dask / local", "Dask / plain"]
    return Table(["model", "workers", *times, "peak memory"], lines)


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


def grow_some(trees: range) -> float:
    """Grow trees in a plain process; return the CPU time."""
    start = cpu_seconds()
    grow(kept, trees)
    return cpu_seconds() - start


def plain_processes(plan: Any, n_trees: int, n_processes: int) -> float:
    """Return the CPU time of processes that grow trees at the same time."""
    shares = np.array_split(np.arange(n_trees), n_processes)
    ranges = [range(int(share[0]), int(share[-1]) + 1) for share in shares]
    parts = [getattr(plan, field.name) for field in fields(plan)]
    with ProcessPoolExecutor(n_processes, get_context("spawn"), prepare, parts) as pool:
        list(pool.map(time.sleep, [1.0] * n_processes))  # all of them have started
        return sum(pool.map(grow_some, ranges))


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the CPU times and memory of one model, for each number of workers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, options.features))
    mixing = rng.normal(size=(options.features, options.outputs))
    Y = np.tanh(X @ mixing / 4) + 0.1 * rng.normal(size=(options.rows, options.outputs))
    make = MODELS[name]
    rows = []
    for n_workers in options.workers:
        local, plain, cluster, background, peaks = [], [], [], [], []
        plan = make(options.trees, random_state=0)._plan(X, Y, None).growth
        with workers(n_workers) as client:
            at_rest = sum(client.run(cpu_seconds).values())
            time.sleep(REST)
            at_rest = (sum(client.run(cpu_seconds).values()) - at_rest) / REST
            for _ in range(options.repeats):
                start = time.process_time()
                here = make(options.trees, random_state=0).fit(X, Y)
                local.append(time.process_time() - start)
                plain.append(plain_processes(plan, options.trees, n_workers))
                client.run(reset_peak)
                level = client.run(memory, "VmRSS")
                start_cpu = sum(client.run(cpu_seconds).values())
                start = time.perf_counter()
                there = fit(make(options.trees, random_state=0), X, Y, client=client)
                background.append(at_rest * (time.perf_counter() - start))
                cluster.append(sum(client.run(cpu_seconds).values()) - start_cpu)
                peak = client.run(memory, "VmHWM")
                peaks.append(max(peak[worker] - level[worker] for worker in peak))
                assert np.array_equal(here.trees_.threshold, there.trees_.threshold)
                held = X.nbytes + Y.nbytes + 8 * options.rows + bytes_of(there.trees_) / n_workers
        rows.append(
            {
                "model": name,
                "workers": n_workers,
                "local": min(local),
                "plain": min(plain),
                "cluster": min(cluster),
                "background": background[int(np.argmin(cluster))],
                "peak bytes": min(peaks),
                "memory": min(peaks) / held,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    main()
