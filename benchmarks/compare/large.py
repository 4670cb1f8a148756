"""One large forest: N = 100,000, p = 128, 256 outputs, on one thread and on two."""

import argparse
import json
import os
import time

from benchmarks import data
from benchmarks.compare.memory import peak, read_answer, reset_peak, saved_size, start_process
from benchmarks.compare.protocol import format_bytes, format_seconds, write_json

from okforest import OKExtraTrees
from okforest._utils.report import Table

N_ROWS, N_INPUTS, N_OUTPUTS = 100_000, 128, 256


def measure_large(options: argparse.Namespace) -> None:
    """Print times and memory of okforest, each number of threads in its own process."""
    if options.memory_of:
        print(json.dumps(_fit(options, n_jobs=int(options.memory_of[1]))))
        return
    n = min(N_ROWS, options.samples or N_ROWS)
    results = [read_answer(start_process("--memory-of", "large", str(n_jobs))) for n_jobs in (1, 2)]
    rows = [
        [
            result["threads"],
            format_seconds(result["seconds"]),
            format_seconds(result["cpu_seconds"]),
            format_bytes(result["peak_bytes"]),
            format_bytes(result["model_bytes"]),
            f"{result['load']:.1f}",
        ]
        for result in results
    ]
    header = ["threads", "wall-clock time", "CPU time", "peak memory above the data"]
    header += ["saved model", "load at the start"]
    print(f"## A large forest: N={n:,}, p={N_INPUTS}, {N_OUTPUTS} outputs, {options.trees} trees\n")
    print("Extra-trees, K=√p, okforest only, one fit each; synthetic smooth functions.\n")
    print(Table(header, rows).markdown())
    speedup = results[0]["seconds"] / results[1]["seconds"]
    leaf_values = results[0]["nodes"] * N_OUTPUTS * 8
    print(
        f"\nTwo threads are {speedup:.2f} times as fast as one (machine with {os.cpu_count()} "
        "cores; wall-clock times under a load above 1 at the start mean little). "
        "scikit-learn is not run: it stores a value for each output at each node, which for this "
        f"number of nodes takes {leaf_values / 1e9:.1f} GB."
    )
    write_json(options.json, rows=results)


def _fit(options: argparse.Namespace, n_jobs: int) -> dict[str, float]:
    X, Y = data.smooth(min(N_ROWS, options.samples or N_ROWS), N_INPUTS, N_OUTPUTS)
    forest = OKExtraTrees(options.trees, random_state=0, n_jobs=n_jobs)
    level, load = reset_peak(), os.getloadavg()[0]
    start, cpu_start = time.perf_counter(), time.process_time()
    forest.fit(X, Y)
    return {
        "threads": n_jobs,
        "load": load,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "peak_bytes": peak() - level,
        "model_bytes": saved_size(forest),
        "nodes": len(forest.trees_.feature),
    }
