"""A million candidate vectors: time and memory of the k nearest, from a file and in parts.

Prints a table in Markdown. Candidates are float32 vectors in a file that is memory-mapped. Peak
memory is the largest anonymous memory of the process above its level before the prediction; pages
of the mapped file, which the system may drop at any time, do not count.
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
            for n, k in ((1, 1), (1, 100), (100, 10)):
                with Watch() as watch:
                    _, losses = model.predict_top(upper[1000 : 1000 + n], k, candidates=mapped)
                assert (np.diff(losses, axis=1) >= 0).all()
                name = type(kernel).__name__
                rows.append([name, n, k, f"{watch.seconds:.2f} s", f"{watch.peak / 2**20:.0f} MiB"])
    print(f"\n### {options.candidates:,} candidates of 32 numbers\n")
    print(Table(["kernel", "predictions", "k", "CPU time", "peak memory"], rows).markdown())


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
