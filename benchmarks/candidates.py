"""A million candidate vectors: time and memory of the k nearest, from a file and in parts.

Prints a table in Markdown. Candidates are float32 vectors in a file that is memory-mapped. An array
of candidates is read by every call; what `Candidates` prepares in its first call serves later ones.
FAISS (`IndexFlatL2`, if it is installed) compares the same vectors with the predicted ones, on one
thread, and its index was filled before.

Peak memory is the largest anonymous memory of the process above its level before the prediction;
pages of the mapped file, which the system may drop at any time, do not count.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from benchmarks.machine import describe, fix_threads
from sklearn.datasets import load_digits

from okforest import OKExtraTrees
from okforest._utils.report import Table
from okforest.decode import Candidates
from okforest.kernels import RBF, Linear


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=1_000_000, help="default: 1,000,000")
    options = parser.parse_args()
    fix_threads()
    print(", ".join(f"{key}: {value}" for key, value in describe().items()))
    images = load_digits().data / 16
    upper, lower = images[:, :32], images[:, 32:]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "candidates.npy"
        write(file, lower, options.candidates)
        mapped = np.load(file, mmap_mode="r")
        for kernel in (Linear(), RBF()):
            model = OKExtraTrees(50, kernel=kernel, min_samples_leaf=5, random_state=0)
            model.fit(upper[:1000], lower[:1000])
            prepared = Candidates(mapped)
            with Watch() as watch:
                model.predict(upper[1000:1001], candidates=prepared)
            rows.append([type(kernel).__name__, "1, first call", 1, "", str(watch), ""])
            for n, k in ((1, 1), (1, 100), (100, 10)):
                cells = []
                X = upper[1000 : 1000 + n]
                for candidates in (mapped, prepared):
                    with Watch() as watch:
                        _, losses = model.predict_top(X, k, candidates=candidates)
                    assert (np.diff(losses, axis=1) >= 0).all()
                    cells.append(str(watch))
                vectors = model.predict(X) if isinstance(kernel, Linear) else None
                rows.append([type(kernel).__name__, n, k, *cells, peer(mapped, vectors, k)])
    print(f"\n### {options.candidates:,} candidates of 32 numbers\n")
    header = ["kernel", "predictions", "k", "an array", "prepared", "FAISS"]
    print(Table(header, rows).markdown())


def peer(candidates: np.ndarray, vectors: np.ndarray | None, k: int) -> str:
    """Return the time of a search by FAISS; empty if it is not installed, or has no such search."""
    try:
        import faiss
    except ImportError:
        return ""
    if vectors is None:
        return ""
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(candidates.shape[1])
    index.add(np.ascontiguousarray(candidates))
    queries = vectors.astype(np.float32)
    index.search(queries, k)
    with Watch() as watch:
        index.search(queries, k)
    return watch.time


def write(file: Path, vectors: np.ndarray, n: int) -> None:
    """Write n noisy copies of vectors to a file, some at a time."""
    rng = np.random.default_rng(0)
    shape = (n, vectors.shape[1])
    target = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, n, 2**16):
        part = target[start : start + 2**16]
        part[:] = vectors[rng.integers(0, len(vectors), len(part))]
        part += rng.normal(scale=0.2, size=part.shape)
    target.flush()


class Watch:
    """CPU time and anonymous memory of this process, sampled while a block runs."""

    def __enter__(self) -> "Watch":
        self.peak, self.base, self.ended = 0, anonymous_memory(), threading.Event()
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()
        self.start = time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.process_time() - self.start
        self.ended.set()
        self.thread.join()

    @property
    def time(self) -> str:
        """The CPU time, as text."""
        short = self.seconds < 1
        return f"{1000 * self.seconds:.0f} ms" if short else f"{self.seconds:.2f} s"

    def __str__(self) -> str:
        return f"{self.time}, {self.peak / 2**20:.0f} MiB"

    def _sample(self) -> None:
        while not self.ended.wait(0.01):
            self.peak = max(self.peak, anonymous_memory() - self.base)


def anonymous_memory() -> int:
    """Return the resident memory that is not mapped from files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no RssAnon")


if __name__ == "__main__":
    main()
