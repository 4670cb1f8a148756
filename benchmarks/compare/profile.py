"""What fits spend their time on, beside what this machine can move and add up.

For each task: the nodes that are split, what their search has to read at least once, how long that
takes at the speed of copies within the cache, and the functions that take the time. Functions need
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
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import data, machine
from benchmarks.compare.protocol import few_trees, format_seconds, make_parser, print_progress

from okforest import OKBagging, OKBoost, OKExtraTrees
from okforest._report import Table
from okforest.engine.cpu import simd_level
from okforest.kernels import RBF

SIZES = {"L2 (512 KiB)": 2**19, "L3 (8 MiB)": 2**23, "memory (256 MiB)": 2**28}
READING = """A random cut is scored from the sum of its smaller side, and all cuts of a feature from
every row: "outputs" is what that reads for all candidate features, in float32, and "residuals" what
a round of boosting passes over. The last column is the time of these bytes at the speed of copies,
in L2 (inputs, outputs) and in L3 (residuals). The rest is work for each node and candidate: half of
the nodes that are split have no more rows than the median in the fourth column.
"""
SHOWN = 6  # functions of each task
LEAST_SHARE = 0.02
SECONDS = 1.5  # of fits that perf looks at


@dataclass(frozen=True)
class Task:
    """A fit, and whether every cut of a feature is searched."""

    name: str
    model: Any
    X: Any
    Y: Any
    best: bool = False


def tasks(options: Any) -> list[Task]:
    """Return the fits of the tables that stay below their aims."""
    trees, few = options.trees, few_trees(options)

    def at_most(n: int) -> int:
        return min(n, options.samples or n)

    def forest(kind: Any, n_trees: int, **more: Any) -> Any:
        return kind(n_trees, random_state=0, n_jobs=1, **more)

    n = at_most(800)
    X, Y = data.halves(n)
    rbf, every = {"kernel": RBF().resolve(Y)}, {"max_features": None}
    boost = {"max_depth": 4, "max_splits": 15, "splitter": "random", "random_state": 0, **rbf}
    found = [
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
    return [task for task in found if options.only in task.name]


def best_time(run: Callable[[], Any], repeats: int) -> float:
    """Return the least CPU time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def copy_speeds(repeats: int) -> dict[str, float]:
    """Return bytes read and written per second, by where the arrays are."""
    speeds = {}
    for name, size in SIZES.items():
        source, target = np.ones(size // 16), np.zeros(size // 16)  # both together
        n_copies = max(1, 2**25 // size)

        def copy(source=source, target=target, n_copies=n_copies):
            for _ in range(n_copies):
                np.copyto(target, source)

        copy()
        speeds[name] = n_copies * size / best_time(copy, 20 * repeats)
    return speeds


def product_speed(dtype: Any, repeats: int, n: int = 768) -> float:
    """Return additions and multiplications per second in a product of matrices."""
    A = np.ones((n, n), dtype)
    return 2 * n**3 / best_time(lambda: A @ A, 3 * repeats)


def work(task: Task) -> dict[str, float]:
    """Return what the search of the fitted trees reads at least once, in float32.

    A random cut needs the sum of the smaller side, at most half of the rows: as vectors, or as
    inner products. All cuts of a feature need every row.
    """
    model, p = task.model, task.X.shape[1]
    trees = model.trees_
    n = (trees.end - trees.begin)[trees.left >= 0].astype(float)
    K = p if model.max_features is None else max(1, int(np.sqrt(p)))
    side = n if task.best else n / 2
    by_vectors = side * getattr(model, "search_rank_", len(task.X))
    by_gram = side * side / (2 if task.best else 1)
    is_gram = model.embedding_ == "gram" and getattr(model, "search_rank", None) is None
    entries = by_gram if is_gram else np.minimum(by_vectors, by_gram)
    rounds = len(trees) if isinstance(model, OKBoost) else 0
    return {
        "nodes": len(n),
        "median": float(np.median(n)) if len(n) else 0.0,
        "inputs": 4 * K * n.sum(),
        "outputs": 4 * K * entries.sum(),
        # Each round: float32 copy, sums of the root and of leaves, update; coefficients of leaves.
        "updates": rounds * (12 + 8 + 8 + 16 + 24) * float(len(task.X)) ** 2,
    }


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
        while time.process_time() - start < SECONDS:
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
    return [item for item in ranked[:SHOWN] if item[1] >= LEAST_SHARE]


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
    machine.print_command()
    print("# Where the time goes\n")
    print(f"{machine.describe()['CPU']}, one thread, {simd_level()}, CPU times.\n")
    speeds = copy_speeds(options.repeats)
    rates = [["copy in " + name, f"{speed / 1e9:.1f} GB/s"] for name, speed in speeds.items()]
    for dtype in ("float32", "float64"):
        rates.append(
            [
                f"product of matrices, {dtype}",
                f"{product_speed(dtype, options.repeats) / 1e9:.0f} GFlop/s",
            ]
        )
    print(Table(["this machine", "speed"], rates).markdown() + "\n")
    rows, shares = [], []
    inner, outer = (speeds[name] for name in list(SIZES)[:2])
    for task in tasks(options):
        print_progress(task.name)

        def fit(task=task):
            task.model.fit(task.X, task.Y)

        seconds = best_time(fit, options.repeats)
        cost = work(task)
        least = (cost["inputs"] + cost["outputs"]) / inner + cost["updates"] / outer
        name = f"{task.name}, N={len(task.X)}, {len(task.model.trees_)} trees"
        rows.append(
            [
                name,
                format_seconds(seconds),
                f"{cost['nodes']:,}",
                f"{cost['median']:.0f}",
                f"{1e6 * seconds / max(1, cost['nodes']):.2f} µs",
                *(f"{cost[key] / 1e6:,.0f} MB" for key in ("inputs", "outputs", "updates")),
                format_seconds(least),
            ]
        )
        found = ", ".join(f"{function} {share:.0%}" for function, share in functions(fit))
        shares.append([name, found or "perf is not installed"])
    header = ["task", "time", "nodes", "median rows", "a node"]
    header += ["inputs", "outputs", "residuals", "moved at copy speed"]
    print(Table(header, rows).markdown() + "\n")
    print(READING)
    print(Table(["task", "functions"], shares, text=True).markdown())


if __name__ == "__main__":
    main()
