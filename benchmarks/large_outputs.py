"""Embeddings of many outputs: what they cost and what they lose.

Complete the lower half of handwritten letters (64 pixels, RBF kernel) from the upper half, by
extra-trees of 20 trees with leaves of at least 5, tested on 1,000 letters. Every row of the table
is a process of its own, with one thread; times are of the processor. Memory is the most that the
process has held until the fit was done (Python, libraries and data among it), and the most that
arrays took while predicting pre-images, kernel and score. Reads the folder named by OKFOREST_DATA;
prints a Markdown table.
"""

import argparse
import os
import resource
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from okforest import OKExtraTrees
from okforest.embedding import embed
from okforest.kernels import RBF

MIB = 2**20


def letters(n: int) -> np.ndarray:
    """Return n images of 16 × 8 pixels, in a random order."""
    archive = np.load(Path(os.environ["OKFOREST_DATA"]) / "ocr_letters/letters.npz")
    pixels = np.unpackbits(archive["pixels_packed"], axis=1)[:, :128]
    return pixels[np.random.default_rng(0).permutation(len(pixels))[:n]].astype(np.float64)


def peak() -> float:
    """Return the most memory that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(n: int, options: dict) -> str:
    """Return a row of the table."""
    images = letters(n + 1000)
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
    held = tracemalloc.get_traced_memory()[1] / MIB
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items()) or "exact"
    return (
        f"| {n:,} | {shown} | {model.embedding_residual_:.4f} | {model.search_variance_:.3f} | "
        f"{score:.4f} | {embedding:.2f} s | {fit:.1f} s | {memory:.0f} MiB | {predict:.0f} s | "
        f"{held:.0f} MiB |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", type=int, default=[5_000, 20_000])
    parser.add_argument("--most-exact", type=int, default=5_000, help="rows of an exact search")
    options = parser.parse_args()
    print(
        "| N | options | residual | variance searched | kernel R² | embedding | fit | memory "
        "until then | predict | arrays of prediction |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    approximations = [
        {"embedding": "cholesky"},
        {"embedding": "nystrom"},
        {"embedding": "fourier"},
        {"embedding": "cholesky", "search_rank": 32},
    ]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for n in options.rows:
            exact = [{}, {"search_rank": 32}] if n <= options.most_exact else []
            for row in pool.map(run, *zip(*[(n, o) for o in exact + approximations], strict=True)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
