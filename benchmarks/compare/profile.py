"""What fits spend their time on: nodes by size, and functions.

The time of the nodes of some sizes is the difference between two fits, one of which stops at larger
nodes. Beside it stands how long this machine needs to read the rows of large nodes. Functions need
perf, and a core that was compiled with `-C cmake.define.OKFOREST_SYMBOLS=ON`.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import data, machine
from benchmarks.compare.protocol import (
    few_trees,
    format_seconds,
    make_parser,
    no_row,
    print_progress,
)
from sklearn.base import clone

from okforest import OKBagging, OKBoost, OKExtraTrees
from okforest._utils.report import Table
from okforest.engine.cpu import simd_level
from okforest.kernels import RBF

SPLITS = (2, 5, 17, 129, 2049)  # the fewest rows of each class of nodes
ROW = 512  # bytes of the rows that are read to measure the machine
SIZES = {"L2": 2**19, "L3": 2**23, "memory": 2**27}
READING = """A cell has the time of the nodes of that size, and of one node. "Before" is what a
fit without a split takes: the kernel, the embedding and the checks. The last column is for nodes of
more than 2,048 rows: how long it takes to read what their search cannot avoid, at the measured
speeds of rows in random order, if all of it is in L3, and if it is in memory. That is: the cache
lines of the inputs of all candidates, the float32 outputs, once for all candidates, and the float64
outputs of the smaller side.
"""
FUNCTIONS_PER_TASK = 6
LEAST_SHARE = 0.02
PROFILED_SECONDS = 1.5  # perf samples fits of at least this time together


@dataclass(frozen=True)
class Task:
    """A fit, and whether every cut of a feature is searched."""

    name: str
    model: Any
    X: Any
    Y: Any
    best: bool = False


def tasks(options: Any) -> list[Task]:
    """Return the fits to look at."""
    trees, few = options.trees, few_trees(options)

    def at_most(n: int) -> int:
        return min(n, options.samples or n)

    def forest(kind: Any, n_trees: int, **more: Any) -> Any:
        return kind(n_trees, random_state=0, n_jobs=1, **more)

    n = at_most(800)
    X, Y = data.halves(n)
    rbf, every = {"kernel": RBF().resolve(Y)}, {"max_features": None}
    boost = {"max_depth": 4, "max_splits": 15, "splitter": "random", "random_state": 0, **rbf}
    return [
        Task("extra-trees, K=√p, RBF", forest(OKExtraTrees, 5 * trees, **rbf), X, Y),
        Task(
            "extra-trees, K=√p, search_rank=32",
            forest(OKExtraTrees, 5 * trees, search_rank=32, **rbf),
            X,
            Y,
        ),
        Task("extra-trees, K=p, RBF", forest(OKExtraTrees, few, **rbf, **every), X, Y),
        Task(f"extra-trees, K=√p, {Y.shape[1]} outputs", forest(OKExtraTrees, trees), X, Y),
        Task(f"extra-trees, K=p, {Y.shape[1]} outputs", forest(OKExtraTrees, trees, **every), X, Y),
        Task("bagging, RBF", forest(OKBagging, few, **rbf), X, Y, best=True),
        *(
            Task(
                f"extra-trees, K=√p, {q} outputs",
                forest(OKExtraTrees, trees),
                *data.smooth(m, 128, q),
            )
            for m, q in ((at_most(5000), 256), (at_most(20000), 64))
        ),
        Task("boosting, random splits, √p", OKBoost(5 * trees, max_features="sqrt", **boost), X, Y),
    ]


def best_time(run: Callable[[], Any], repeats: int) -> float:
    """Return the least CPU time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def row_speeds(repeats: int) -> dict[str, float]:
    """Return bytes per second of reading rows in random order, by where the matrix is."""
    speeds = {}
    for name, size in SIZES.items():
        matrix = np.ones((size // ROW, ROW // 8))
        order = np.random.default_rng(0).permutation(len(matrix))[: 2**16]
        out = np.empty((len(order[:256]), ROW // 8))  # stays in cache
        parts = [order[i : i + 256] for i in range(0, len(order), 256)]

        def read(matrix=matrix, parts=parts, out=out):
            for part in parts:
                np.take(matrix, part, axis=0, out=out[: len(part)], mode="clip")

        n_reads = max(1, 2**16 // len(order))
        seconds = best_time(lambda read=read, n=n_reads: [read() for _ in range(n)], 5 * repeats)
        speeds[name] = n_reads * len(order) * ROW / seconds
    return speeds


def product_speed(dtype: Any, repeats: int, n: int = 768) -> float:
    """Return additions and multiplications per second in a product of matrices."""
    A = np.ones((n, n), dtype)
    return 2 * n**3 / best_time(lambda: A @ A, 3 * repeats)


@dataclass(frozen=True)
class Grown:
    """A fit that splits nodes of some rows and more: its CPU time, and sums over these nodes."""

    seconds: float
    nodes: int
    rows: int
    smaller: int  # rows of the smaller sides


def grow(task: Task, min_samples_split: int, repeats: int) -> Grown:
    """Fit a task whose trees stop at smaller nodes."""
    model = clone(task.model).set_params(min_samples_split=min_samples_split)
    seconds = best_time(lambda: model.fit(task.X, task.Y), repeats)
    trees = model.trees_
    size = trees.end - trees.begin
    split = np.flatnonzero(trees.left >= 0)
    first = np.repeat(trees.node_offsets[:-1], np.diff(trees.node_offsets))[split]
    of_left = size[first + trees.left[split]]
    smaller = np.minimum(of_left, size[split] - of_left)
    return Grown(seconds, len(split), int(size[split].sum()), int(smaller.sum()))


def read_bytes(task: Task, grown: Grown) -> int:
    """Return the bytes of the rows of some nodes of a forest of vectors, read once."""
    p, q = task.X.shape[1], task.Y.shape[1]
    K = p if task.model.max_features is None else max(1, int(np.sqrt(p)))
    lines = min(K, -(-p * task.X.itemsize // 64))
    return grown.rows * (64 * lines + 4 * q) + grown.smaller * 8 * q


def functions(run: Callable[[], Any]) -> list[tuple[str, float]]:
    """Return the functions that take the most time, and their shares; nothing without perf."""
    perf = shutil.which("perf")
    if perf is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "perf.data")
        command = [perf, "record", "-q", "-F", "1999", "-e", "cpu-clock:u", "-o", path, "-p"]
        record = subprocess.Popen([*command, str(os.getpid())], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        start = time.process_time()
        while time.process_time() - start < PROFILED_SECONDS:
            run()
        record.send_signal(signal.SIGINT)
        record.wait()
        command = [perf, "report", "--stdio", "-q", "-i", path, "--sort", "dso,symbol"]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return read_shares(text)


def read_shares(text: str) -> list[tuple[str, float]]:
    """Return functions of the core, and the rest as one line, from a report of perf."""
    shares: dict[str, float] = {}
    # Some versions of perf end lines with empty columns, shown as "-".
    line = r"^\s*([\d.]+)%\s+(\S+)\s+\[.\] (.+?)(?:\s+-)*\s*$"
    for share, library, symbol in re.findall(line, text, re.M):
        name = short_name(symbol) if library.startswith("_core") else "Python, NumPy, system"
        if name.startswith("0x"):
            name = "core (no symbols)"
        shares[name] = shares.get(name, 0.0) + float(share) / 100
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return [item for item in ranked[:FUNCTIONS_PER_TASK] if item[1] >= LEAST_SHARE]


def short_name(symbol: str) -> str:
    """Return the name of a C++ function, with its class, without namespaces and arguments."""
    plain = re.sub(r"okforest::|\(anonymous namespace\)::|(avx512|avx2|baseline)::", "", symbol)
    while re.search(r"<[^<>]*>", plain):
        plain = re.sub(r"<[^<>]*>", "", plain)
    return plain.split("(")[0].split(" ")[-1]


def main() -> None:
    """Print the tables."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    every = tasks(options)
    chosen = [task for task in every if options.only in task.name]
    if not chosen:
        print(no_row(options.only, [task.name for task in every]))
        return
    machine.print_command()
    print("# Where the time goes\n")
    print(f"{machine.describe()['CPU']}, one thread, {simd_level()}, CPU times.\n")
    speeds = row_speeds(options.repeats)
    rates = [[f"rows of {ROW} bytes, {name}", f"{x / 1e9:.1f} GB/s"] for name, x in speeds.items()]
    for dtype in ("float32", "float64"):
        speed = product_speed(dtype, options.repeats)
        rates.append([f"product of matrices, {dtype}", f"{speed / 1e9:.0f} GFlop/s"])
    print(Table(["this machine", "speed"], rates).markdown() + "\n")
    rows, shares = [], []
    for task in chosen:
        print_progress(task.name)
        name = f"{task.name}, N={len(task.X)}"
        if not isinstance(task.model, OKBoost):
            sizes = (*SPLITS, len(task.X) + 1)
            grown = [grow(task, size, options.repeats) for size in sizes]
            cells = [format_seconds(grown[0].seconds), format_seconds(grown[-1].seconds)]
            for small, large in pairwise(grown):
                n, seconds = small.nodes - large.nodes, max(0.0, small.seconds - large.seconds)
                each = f" ({1e6 * seconds / n:.2f} µs)" if n else ""
                cells.append(f"{format_seconds(seconds)}{each}" if n else "–")
            vectors = not task.best and task.model.kernel == "linear"
            n_bytes = read_bytes(task, grown[-2]) if vectors else 0
            times = [format_seconds(n_bytes / speeds[place]) for place in ("L3", "memory")]
            rows.append([name, *cells, " – ".join(times) if n_bytes else "–"])

        def fit(task=task):
            task.model.fit(task.X, task.Y)

        found = ", ".join(f"{function} {share:.0%}" for function, share in functions(fit))
        shares.append([name, found or "perf is not installed"])
    ranges = [f"{a}–{b - 1} rows" for a, b in pairwise(SPLITS)] + [f"from {SPLITS[-1]:,} rows"]
    header = ["task", "time", "before", *ranges, "reading: L3 – memory"]
    if rows:
        print(Table(header, rows).markdown() + "\n")
    print(READING)
    print(Table(["task", "functions"], shares, text=True).markdown())


if __name__ == "__main__":
    main()
