"""Rows over workers: a forest on data that no worker can hold, and the same in one process.

The data is written to files, one for each partition, which are mapped to memory and not read as a
whole. The memory limit of a worker is a share of the size of the data. Every tree is grown on a
sample of the rows. Prints a table in Markdown: the peak memory of workers, whether any was
restarted, and the CPU time of both fits and the kernel R² of both forests on other rows.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from benchmarks import machine
from benchmarks.dask.cluster import cpu_seconds, memory, workers

from okforest import OKExtraTrees
from okforest._utils.report import Table
from okforest.dask import fit_remote


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=250)
    parser.add_argument("--outputs", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.2, help="of the data: a worker's memory")
    parser.add_argument(
        "--folder", type=Path, help="where the data is written (default: temporary)"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine.fix_threads()
    about = machine.describe()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = compare(Path(folder), options)
    command = " ".join(["python -m benchmarks.dask.partitioned", *sys.argv[1:]])
    print(f"Printed by `{command}`.\n")
    print(
        f"### Rows over workers: {options.rows:,} rows, {options.features} features, "
        f"{options.outputs} outputs, {options.partitions} partitions, {options.workers} workers, "
        f"{options.trees} trees on {options.samples:,} rows each\n"
    )
    print(Table(["", "value"], list(results.items())).markdown())
    print("\n" + ", ".join(f"{key}: {value}" for key, value in about.items()) + ".")
    if options.json:
        options.json.write_text(json.dumps({"machine": about, **results}, indent=1))


def compare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Fit both forests."""
    sizes = [len(part) for part in np.array_split(np.arange(options.rows), options.partitions)]
    for p, n in enumerate([*sizes, 20_000]):  # the last are test rows
        write(folder, p, n, options)
    width = options.features + options.outputs
    data_bytes = 8 * options.rows * width
    limit = int(options.share * data_bytes)
    model = OKExtraTrees(
        options.trees,
        bootstrap=True,
        max_samples=options.samples,
        min_samples_leaf=5,
        random_state=0,
    )
    test = len(sizes)
    with workers(options.workers, memory_limit=limit) as client:
        X, Y = (
            collection(folder, "X", sizes, options.features),
            collection(folder, "Y", sizes, options.outputs),
        )
        before = client.run(os.getpid)
        start, start_cpu = time.perf_counter(), sum(client.run(cpu_seconds).values())
        forest = fit_remote(model, X, Y, partitioned=True, client=client)
        seconds = time.perf_counter() - start
        cpu = sum(client.run(cpu_seconds).values()) - start_cpu
        X_test, Y_test = (
            da.from_array(np.load(folder / f"{name}{test}.npy"), chunks=(5000, -1)) for name in "XY"
        )
        remote = float(forest.score(X_test, Y_test))
        peak = max(client.run(memory, "VmHWM").values())
        restarted = sorted(before.values()) != sorted(client.run(os.getpid).values())
    widths = {"X": options.features, "Y": options.outputs}
    whole = [joined(folder, name, sizes, width) for name, width in widths.items()]
    start_cpu = cpu_seconds()
    local = model.fit(*whole)
    cpu_here = cpu_seconds() - start_cpu
    here = local.score(*(np.load(folder / f"{name}{test}.npy") for name in "XY"))
    return {
        "data, MiB": round(data_bytes / 2**20),
        "memory limit of a worker, MiB": round(limit / 2**20),
        "largest peak of a worker, MiB": round(peak / 2**20),
        "time of the fit on workers, seconds": round(seconds, 1),
        "its CPU time, all workers, seconds": round(cpu, 1),
        "CPU time of the fit in one process, seconds": round(cpu_here, 1),
        "a worker was restarted": restarted,
        "kernel R², rows in partitions": remote,
        "kernel R², one process": here,
    }


def write(folder: Path, p: int, n: int, options: argparse.Namespace) -> None:
    """Write the rows of a partition."""
    rng = np.random.default_rng([0, p])
    X = rng.normal(size=(n, options.features))
    mixing = np.random.default_rng(1).normal(size=(10, options.outputs))
    Y = np.tanh(X[:, :10] @ mixing / 2) + 0.2 * rng.normal(size=(n, options.outputs))
    np.save(folder / f"X{p}.npy", X)
    np.save(folder / f"Y{p}.npy", Y)


def joined(folder: Path, name: str, sizes: list[int], width: int) -> np.ndarray:
    """Read all partitions, one after the other, into one array."""
    whole = np.empty((sum(sizes), width))
    ends = np.cumsum(sizes)
    for p, (n, end) in enumerate(zip(sizes, ends, strict=True)):
        whole[end - n : end] = np.load(folder / f"{name}{p}.npy", mmap_mode="r")
    return whole


def collection(folder: Path, name: str, sizes: list[int], width: int) -> Any:
    """Return a Dask array of the files, one chunk for each."""
    load = dask.delayed(np.load, pure=True)
    parts = [
        da.from_delayed(load(folder / f"{name}{p}.npy", mmap_mode="r"), (n, width), np.float64)
        for p, n in enumerate(sizes)
    ]
    return da.concatenate(parts)


if __name__ == "__main__":
    main()
