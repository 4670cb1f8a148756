"""Embeddings of many outputs: cost and accuracy.

Complete the lower half of handwritten letters (64 pixels, RBF kernel) from the upper half, with 20
extra-trees and at least 5 samples in a leaf, tested on 1,000 letters. Every row of the table runs
in its own process, with one thread; times are CPU times. Memory is the peak of the process up to
the end of the fit (including Python, libraries and data), and the peak of the arrays allocated for
pre-images, kernel and score. Reads the folder named by OKFOREST_DATA; prints a Markdown table.
"""

import argparse
import resource
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from benchmarks.compare.protocol import print_progress

from okforest import OKExtraTrees
from okforest._utils.report import Table
from okforest.datasets import load_ocr_letters
from okforest.embedding import embed
from okforest.kernels import RBF

N_TEST = 1000
MIB = 2**20
HEADER = [
    "N",
    "options",
    "residual",
    "variance searched",
    "kernel R²",
    "embedding",
    "fit",
    "peak memory",
    "predict",
    "prediction arrays",
]


def letters(n: int) -> np.ndarray:
    """Return n images of 16 × 8 pixels, in random order."""
    pixels = load_ocr_letters().data
    return pixels[np.random.default_rng(0).permutation(len(pixels))[:n]].astype(np.float64)


def peak() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(n: int, options: dict) -> list[str]:
    """Return a row of the table."""
    images = letters(n + N_TEST)
    X, Y = images[:, :64], images[:, 64:]
    kernel = RBF().resolve(Y[:n])
    model = OKExtraTrees(20, kernel=kernel, min_samples_leaf=5, random_state=0, **options)
    start = time.process_time()
    model.fit(X[:n], Y[:n])
    fit, memory = time.process_time() - start, peak()
    start = time.process_time()
    embed(kernel, Y[:n], model.embedding)
    embedding = time.process_time() - start

    tracemalloc.start()
    start = time.process_time()
    model.predict(X[n:])
    model.predict_kernel(X[n:])
    score = model.score(X[n:], Y[n:])
    predict = time.process_time() - start
    arrays = tracemalloc.get_traced_memory()[1] / MIB
    return [
        f"{n:,}",
        ", ".join(f"{name}={value!r}" for name, value in options.items()) or "default",
        f"{model.embedding_residual_:.4f}",
        f"{model.search_variance_:.3f}",
        f"{score:.4f}",
        f"{embedding:.2f} s",
        f"{fit:.1f} s",
        f"{memory:.0f} MiB",
        f"{predict:.0f} s",
        f"{arrays:.0f} MiB",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", type=int, default=[5_000, 20_000])
    parser.add_argument(
        "--largest-exact", type=int, default=5_000, help="maximum number of rows without embedding"
    )
    options = parser.parse_args()
    approximations = [
        {"embedding": "cholesky"},
        {"embedding": "nystrom"},
        {"embedding": "fourier"},
        {"embedding": "cholesky", "search_rank": 32},
    ]
    rows = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for n in options.rows:
            exact = [{"search_rank": None}, {"search_rank": 32}, {}]
            exact = exact if n <= options.largest_exact else exact[2:]
            for choice in exact + approximations:
                print_progress(f"N={n:,}, {choice or 'default'}")
                rows.append(pool.submit(measure, n, choice).result())
    print("### Large outputs\n")
    print(Table(HEADER, rows).markdown())


if __name__ == "__main__":
    main()
