"""Predictions and embeddings on a GPU: nearest candidates, leaves, means, factors of the kernel.

    python -m benchmarks.cuda_predicting    print the tables; benchmarks.cuda has them, too

Times are of whole calls of ``predict`` and others, the best of three after a first call, in which
kernels are compiled and arrays copied. Data is random: inputs and outputs are normal.
"""

import argparse
import time

import numpy as np

from okforest import OKExtraTrees
from okforest.embedding import embed
from okforest.engine.cuda import Device
from okforest.kernels import RBF, Linear

SEED = 0


def seconds_of(cp, call, repeats=3):
    """Return the least time of a call, and its result."""
    result = call()
    times = []
    for _ in range(repeats):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        result = call()
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return min(times), result


def make_model(kernel, n, p, q, device, n_trees, **rules):
    """Return a forest on random rows, and further inputs."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, p), dtype=np.float32)
    y = rng.standard_normal((n, q))
    y[:, : min(p, q)] += X[:, : min(p, q)]
    model = OKExtraTrees(n_trees, kernel=kernel, device=device, random_state=0, n_jobs=-1, **rules)
    return model.fit(X, y), rng


def preimages(cp, n_candidates=1_000_000, n_queries=10_000, q=256, n_train=10_000, n_checked=20):
    """Time the search of candidates, which are on the GPU or not, and compare with the CPU."""
    rows = []
    for name, kernel, kind in (
        ("linear", Linear(), "auto"),
        ("RBF", RBF(float(np.sqrt(q))), "nystrom"),  # trees are grown from 256 columns
    ):
        model, rng = make_model(kernel, n_train, 32, q, "cuda", 20, embedding=kind)
        X = rng.standard_normal((n_queries, 32), dtype=np.float32)
        on_device = cp.random.default_rng(SEED).standard_normal((n_candidates, q))
        candidates = cp.asnumpy(on_device)
        on_gpu, found = seconds_of(cp, lambda m=model, x=X, c=on_device: m.predict(x, c))
        on_host, again = seconds_of(cp, lambda m=model, x=X, c=candidates: m.predict(x, c), 1)
        assert np.array_equal(found, again)
        model.set_params(device="cpu")
        start = time.perf_counter()
        expected = model.predict(X[:n_checked], candidates)
        cpu = time.perf_counter() - start
        equal = int((expected == found[:n_checked]).all(axis=1).sum())
        rows.append(
            {"kernel": name, "queries": n_queries, "candidates": n_candidates, "q": q,
             "n_train": n_train, "on_gpu": on_gpu, "on_host": on_host, "cpu": cpu,
             "checked": n_checked, "equal": equal}
        )  # fmt: skip
        print(rows[-1], flush=True)
        model.set_params(device="cuda")
        five, _ = seconds_of(cp, lambda m=model, x=X, c=on_device: m.predict_top(x, 5, c), 1)
        rows[-1]["five"] = five
        del on_device, candidates
        cp.get_default_memory_pool().free_all_blocks()
    return rows


def predictions(cp, n_train=100_000, n=1_000_000, p=64, q=64, n_trees=100):
    """Time leaves and mean predictions of many rows, on the GPU and on all cores."""
    model, rng = make_model(Linear(), n_train, p, q, "cuda", n_trees, min_samples_leaf=2)
    X = rng.standard_normal((n, p), dtype=np.float32)
    X_on_device = cp.asarray(X)
    rows = []
    for name in ("apply", "predict"):
        method = getattr(model.set_params(device="cuda"), name)
        on_gpu, found = seconds_of(cp, lambda f=method: f(X_on_device))
        on_host, _ = seconds_of(cp, lambda f=method: f(X), 1)
        part = X[: n // 20]
        model.set_params(device="cpu")
        start = time.perf_counter()
        expected = method(part)
        cpu = 20 * (time.perf_counter() - start)
        error = float(np.abs(cp.asnumpy(found[: len(part)]) - expected).max())
        rows.append(
            {"method": name, "n": n, "trees": n_trees, "n_train": n_train, "q": q,
             "on_gpu": on_gpu, "on_host": on_host, "cpu": cpu, "error": error}
        )  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def embeddings(cp, n=1_000_000, q=64, rank=256, n_exact=4096):
    """Time embeddings of outputs that are where they are computed; the CPU has fewer rows."""
    rows = []
    for name, kernel, kind, size, share in (
        ("linear", Linear(), "features", n, 10),
        ("RBF", RBF(float(np.sqrt(q))), "nystrom", n, 10),
        ("RBF", RBF(float(np.sqrt(q))), "fourier", n, 10),
        ("RBF", RBF(float(np.sqrt(q))), "factor", n_exact, 1),
    ):
        y = np.random.default_rng(SEED).standard_normal((size, q))
        columns = rank if kind in ("nystrom", "fourier") else None
        y_on_device = cp.asarray(y)
        on_gpu, _ = seconds_of(cp, lambda a=(kernel, y_on_device, kind, columns): embed(*a))
        start = time.perf_counter()
        embed(kernel, y[: size // share], kind, columns)
        cpu = share * (time.perf_counter() - start)
        rows.append({"kernel": name, "kind": kind, "n": size, "q": q, "on_gpu": on_gpu, "cpu": cpu})
        print(rows[-1], flush=True)
        del y_on_device
        cp.get_default_memory_pool().free_all_blocks()
    return rows


def report(found):
    """Return the results as lines of Markdown; parts that were not measured are left out."""
    parts = {"preimages": preimage_lines, "predictions": prediction_lines}
    parts["embeddings"] = embedding_lines
    return [line for part, lines in parts.items() if part in found for line in lines(found[part])]


def preimage_lines(results):
    """Return the section on candidates."""
    return [
        "",
        "## Nearest candidates",
        "",
        "`predict(X, candidates=C)` in float64. The CPU, on all cores, has fewer queries: the last "
        "columns are its time for these, and how many have the same nearest candidate.",
        "",
        "| kernel | queries | candidates | dimensions | training rows | C on the GPU, s | "
        "five nearest, s | C a NumPy array, s | CPU, s | same |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {r['kernel']} | {r['queries']:,} | {r['candidates']:,} | {r['q']} | "
            f"{r['n_train']:,} | {r['on_gpu']:.2f} | {r['five']:.2f} | {r['on_host']:.2f} | "
            f"{r['cpu']:.2f} for {r['checked']} | {r['equal']} of {r['checked']} |"
            for r in results
        ),
    ]


def prediction_lines(results):
    """Return the section on leaves and means."""
    return [
        "",
        "## Leaves and predictions",
        "",
        "A forest with the linear kernel. The CPU, on all cores, is timed on a twentieth of the "
        "rows. The last column is the largest difference of a number.",
        "",
        "| method | rows | trees | training rows | dimensions | X on the GPU, s | "
        "X a NumPy array, s | CPU, s | difference |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(
            f"| `{r['method']}` | {r['n']:,} | {r['trees']} | {r['n_train']:,} | {r['q']} | "
            f"{r['on_gpu']:.3f} | {r['on_host']:.3f} | {r['cpu']:.2f} | {r['error']:.1g} |"
            for r in results
        ),
    ]


def embedding_lines(results):
    """Return the section on embeddings."""
    return [
        "",
        "## Embeddings of outputs",
        "",
        "Nyström and Fourier features have 256 columns. The CPU, on all cores, is timed on a tenth "
        "of the rows, except for the exact factor.",
        "",
        "| kernel | `embedding=` | outputs | dimensions | GPU, s | CPU, s |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {r['kernel']} | `{r['kind']}` | {r['n']:,} | {r['q']} | {r['on_gpu']:.3f} | "
            f"{r['cpu']:.2f} |"
            for r in results
        ),
    ]


def measure(cp):
    """Return all results."""
    return {
        "preimages": preimages(cp),
        "predictions": predictions(cp),
        "embeddings": embeddings(cp),
    }


def main():
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("\n".join(report(measure(Device().xp))))


if __name__ == "__main__":
    main()
