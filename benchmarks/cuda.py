"""Trees on a GPU: time per tree by number of rows, outputs and candidate features.

    python -m benchmarks.cuda [--results benchmarks/CUDA.md] [--most 4000000]
    python -m benchmarks.cuda --only best boosting          keep the other results
    python -m benchmarks.cuda --report                      write CUDA.md and docs/images/gpu.png
                                                            from CUDA.json, without a GPU

Times are of the growth on the GPU, from data that is there to numbered nodes; the copy of the trees
to the host is timed apart. Data is random: inputs and outputs are normal, and half of the outputs
depend on an input each.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from benchmarks import cuda_predicting
from benchmarks.cuda_report import SQRT, P, plot, report
from benchmarks.machine import describe

from okforest import OKBoost, OKExtraTrees
from okforest.engine import GrowthPlan, GrowthRules, grow
from okforest.engine.cuda import Device
from okforest.engine.cuda.best import BestGrower, grow_best_on
from okforest.engine.cuda.growing import Batch, Grower, grow_on

SEED = 0


def make_plan(cp, n, rank, max_features):
    """Return a plan whose data is on the GPU."""
    rng = cp.random.default_rng(SEED)
    X = rng.standard_normal((n, P), dtype=cp.float32)
    outputs = rng.standard_normal((n, rank))
    shared = min(P, rank // 2)
    outputs[:, :shared] += 0.5 * X[:, :shared]
    return GrowthPlan(
        X=X,
        outputs=outputs,
        gram=False,
        rules=GrowthRules(random_splits=True, max_features=max_features),
        row_weight=np.ones(n),
        n_categories=np.zeros(P, dtype=np.int32),
        seed=SEED,
    )


def on_host(cp, plan):
    """Return the same plan with NumPy arrays."""
    arrays = {"X": cp.asnumpy(plan.X), "outputs": cp.asnumpy(plan.outputs)}
    return GrowthPlan(**{**vars(plan), **arrays})


def copy_rate(cp):
    """Return the bandwidth of a copy on the GPU in TB/s, counting reads and writes."""
    source = cp.ones(2**29, dtype=cp.float64)
    target = cp.empty_like(source)
    seconds = []
    for _ in range(5):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        target[:] = source
        cp.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
    return 2 * source.nbytes / min(seconds) / 1e12


def time_growth(cp, device, plan, n_trees, repeats=3):
    """Return milliseconds per tree, and the bytes of outputs that a tree reads."""
    grower = Grower(device, plan)
    n_trees = min(n_trees, grower.at_once)
    seconds = []
    for repeat in range(repeats):
        first = repeat * n_trees
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        batch = Batch(grower, range(first, first + n_trees))
        batch.split_large_nodes()
        batch.finish()
        batch.number_nodes()
        cp.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
        if repeat < repeats - 1:
            del batch
    # Splits, by the position of their right side; splits of small nodes read nothing more.
    begin, end = batch.arrays["split_begin"], batch.arrays["split_end"]
    used = cp.zeros(batch.n_positions, dtype=bool)
    listed = batch.arrays["list"]
    for t in range(n_trees):
        nodes = listed[2 * batch.offsets[t] :][: int(batch.arrays["n_nodes"][t])]
        used[nodes[nodes >= 0]] = True
    size = (end - begin)[used]
    rows = int(size[size > 32].sum(dtype=cp.int64)) / n_trees + plan.X.shape[0]
    return 1e3 * min(seconds) / n_trees, rows * 4 * grower.sizes.width, n_trees


def growth_table(cp, device, most):
    """Time the growth of full trees over a grid of sizes."""
    results = []
    for max_features in (SQRT, P):
        for rank in (64, 256, 1024):
            for n in (10_000, 100_000, 1_000_000, 4_000_000):
                costly = n * rank * max_features > 1_000_000 * 1024 * 32
                if n > most or (costly and max_features == P):
                    continue
                plan = make_plan(cp, n, rank, max_features)
                ms, read, n_trees = time_growth(cp, device, plan, 32)
                results.append(
                    {"n": n, "rank": rank, "K": max_features, "at_once": n_trees, "ms": ms,
                     "rate": read / ms / 1e9}
                )  # fmt: skip
                print(results[-1], flush=True)
                del plan
                cp.get_default_memory_pool().free_all_blocks()
    return results


def whole_forest(cp, device, n, n_trees=100):
    """Return the seconds of a forest from NumPy arrays to NumPy arrays, and of one CPU tree."""
    plan = on_host(cp, make_plan(cp, n, 256, SQRT))
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        grow_on(device, plan, range(n_trees))
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    grow(plan, range(1), n_threads=1)
    return {"n": n, "seconds": min(seconds), "cpu_tree": time.perf_counter() - start}


def same_trees(cp, device):
    """Return how many of 16 trees on 20,000 rows are the same on the CPU."""
    plan = on_host(cp, make_plan(cp, 20_000, 64, SQRT))
    one, other = grow(plan, range(16), n_threads=8), grow_on(device, plan, range(16))
    names = ("feature", "threshold", "left", "members")
    return sum(
        all(np.array_equal(getattr(one[t], name), getattr(other[t], name)) for name in names)
        for t in range(16)
    )


def scores(cp):
    """Return the kernel R² of forests grown on either device, on held-out rows."""
    plan = on_host(cp, make_plan(cp, 20_000, 64, SQRT))
    train, test = slice(15_000), slice(15_000, None)
    found = []
    for device in ("cpu", "cuda"):
        forest = OKExtraTrees(50, min_samples_leaf=5, device=device, random_state=0, n_jobs=8)
        forest.fit(plan.X[train], plan.outputs[train])
        found.append(float(forest.score(plan.X[test], plan.outputs[test])))
    return found


def best_splits(cp, device, n, n_trees=100):
    """Return the seconds of a random forest from NumPy arrays, and of one tree on the CPU.

    The CPU grows one of 100,000 rows; more would take too long.
    """
    plan = on_host(cp, make_plan(cp, n, 64, SQRT))
    rules = GrowthRules(max_features=SQRT, max_depth=16)
    plan = GrowthPlan(**{**vars(plan), "rules": rules, "n_draws": n})
    grow_best_on(device, plan, range(1))  # compiles the kernels
    start = time.perf_counter()
    grower = BestGrower(device, plan)
    cp.cuda.Device().synchronize()
    prepared = time.perf_counter()
    trees = grower.grow(range(n_trees))
    end = time.perf_counter()
    found = {
        "n": n,
        "trees": n_trees,
        "seconds": end - start,
        "ms": 1e3 * (end - prepared) / n_trees,
    }
    if n <= 100_000:
        start = time.perf_counter()
        one = grow(plan, range(1), n_threads=1)
        found["cpu_tree"] = time.perf_counter() - start
        found["same"] = all(
            np.array_equal(getattr(one[0], name), getattr(trees[0], name))
            for name in ("feature", "threshold", "left", "members")
        )
    return found


def boosting(cp, n=100_000, n_rounds=500):
    """Return the seconds of a boosted model from NumPy arrays, and the milliseconds per round."""
    plan = on_host(cp, make_plan(cp, n, 256, SQRT))
    params = {"splitter": "random", "max_features": SQRT, "max_splits": 15, "random_state": 0}
    OKBoost(2, device="cuda", **params).fit(plan.X, plan.outputs)  # compiles the kernels
    ends = []
    model = OKBoost(
        n_rounds, device="cuda", callback=lambda _: ends.append(time.perf_counter()), **params
    )
    start = time.perf_counter()
    model.fit(plan.X, plan.outputs)
    seconds = time.perf_counter() - start
    model = OKBoost(4, callback=lambda _: ends.append(time.perf_counter()), **params)
    model.fit(plan.X, plan.outputs)
    return {
        "n": n,
        "rounds": n_rounds,
        "seconds": seconds,
        "ms": 1e3 * float(np.median(np.diff(ends[:n_rounds]))),
        "cpu_ms": 1e3 * float(np.median(np.diff(ends[n_rounds:]))),
    }


def main():
    """Run everything, and write the page and the numbers beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("benchmarks/CUDA.md"))
    parser.add_argument("--most", type=int, default=4_000_000, help="largest number of rows")
    parser.add_argument("--plot", type=Path, default=Path("docs/images/gpu.png"))
    parser.add_argument(
        "--report", action="store_true", help="write page and figure from CUDA.json, without a GPU"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="PART", help="run these parts: best, boosting …"
    )
    options = parser.parse_args()
    numbers = options.results.with_suffix(".json")
    if options.report:
        found = json.loads(numbers.read_text())
        options.results.write_text(report(found))
        plot(found, options.plot)
        return
    device = Device()
    cp = device.xp
    name = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["name"].decode()
    parts = {
        "copy": lambda: copy_rate(cp),
        "growth": lambda: growth_table(cp, device, options.most),
        "whole": lambda: [whole_forest(cp, device, n) for n in sizes],
        "best": lambda: [best_splits(cp, device, n) for n in sizes],
        "boosting": lambda: boosting(cp),
        "same": lambda: same_trees(cp, device),
        "scores": lambda: scores(cp),
        "preimages": lambda: cuda_predicting.preimages(cp),
        "predictions": lambda: cuda_predicting.predictions(cp),
        "embeddings": lambda: cuda_predicting.embeddings(cp),
    }
    sizes = [n for n in (100_000, 1_000_000) if n <= options.most]
    found = json.loads(numbers.read_text()) if options.only else {}
    found["machine"] = {"GPU": name, "CuPy": cp.__version__, **describe()}
    for part in options.only or parts:
        found[part] = parts[part]()
        print(part, found[part], flush=True)
    numbers.write_text(json.dumps(found, indent=1) + "\n")
    options.results.write_text(report(found))
    print(report(found))


if __name__ == "__main__":
    main()
