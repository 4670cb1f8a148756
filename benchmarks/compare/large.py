"""One large forest: N = 100,000, p = 128, 256 outputs, on one thread and on two."""

import argparse
import json
import os
import time

from benchmarks import data, machine
from benchmarks.compare.protocol import (
    answer_of,
    forget_peak,
    megabytes,
    peak,
    saved_size,
    seconds,
    start_afresh,
)

from okforest import OKExtraTrees

N_ROWS, N_INPUTS, N_OUTPUTS = 100_000, 128, 256


def measure_large(options: argparse.Namespace) -> None:
    """Print times and memory of okforest; each number of threads has a process of its own."""
    if options.weigh:
        print(json.dumps(_grow(options, n_jobs=int(options.weigh[1]))))
        return
    n = min(N_ROWS, options.samples or N_ROWS)
    print(
        f"### A large forest: N={n:,}, p={N_INPUTS}, {N_OUTPUTS} outputs, {options.trees} trees\n"
    )
    print("Extra-trees, K=√p, okforest alone, one fit each; synthetic smooth functions.\n")
    print("| threads | time on the clock | CPU time | peak memory above the data | saved model |")
    print("|---:|---:|---:|---:|---:|")
    results = []
    for n_jobs in (1, 2):
        result = answer_of(start_afresh("--weigh", "large", str(n_jobs)))
        results.append(result)
        times = seconds(result["seconds"]), seconds(result["cpu_seconds"])
        sizes = megabytes(result["peak_bytes"]), megabytes(result["model_bytes"])
        print(f"| {n_jobs} | {' | '.join(times + sizes)} |", flush=True)
    ratio = results[0]["seconds"] / results[1]["seconds"]
    leaves = results[0]["nodes"] * N_OUTPUTS * 8
    print(
        f"\nTwo threads are {ratio:.2f} times as fast as one (machine of {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; under other load the clock says little). scikit-learn is "
        "not run: it keeps a value of each output at each node, which for as many nodes would be "
        f"{leaves / 1e9:.1f} GB."
    )
    if options.json:
        report = {"machine": machine.describe(), "rows": results}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _grow(options: argparse.Namespace, n_jobs: int) -> dict[str, float]:
    X, Y = data.smooth(min(N_ROWS, options.samples or N_ROWS), N_INPUTS, N_OUTPUTS)
    forest = OKExtraTrees(options.trees, random_state=0, n_jobs=n_jobs)
    level = forget_peak()
    start, cpu_start = time.perf_counter(), time.process_time()
    forest.fit(X, Y)
    return {
        "threads": n_jobs,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "peak_bytes": peak() - level,
        "model_bytes": saved_size(forest),
        "nodes": len(forest.trees_.feature),
    }
