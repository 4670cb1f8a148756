"""Speed of extraction and growth, and memory of prediction.

Subwindows of 16 × 16 pixels from random grey images of 92 × 112 pixels. Times are CPU times of one
thread, the best of three; memory is the peak of a fresh process above its level before the call.
"""

import argparse
import subprocess
import sys

import numpy as np
from benchmarks import machine
from benchmarks.compare.memory import peak, reset_peak
from benchmarks.segments.measure import report, timed

from okforest import OKTotallyRandomTrees
from okforest.segments import RandomSubwindows, SegmentClassifier

MIB = 2**20
PER_IMAGE = 1000  # subwindows
N_BOUNDED = 20_000  # trees are grown on a sample, with bounded memory


def images(n):
    """Return random smooth grey images."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (n, 14, 12)).astype(np.uint8)
    return np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2)[:, :112, :92].copy()


def extraction(n_images, n_segments, **options):
    """Return subwindows per second, in millions."""
    segmenter = RandomSubwindows(n_segments, **options)
    objects = segmenter.check(images(n_images))
    seconds = min(timed(lambda: segmenter.cut(objects))[1] for _ in range(3))
    return n_images * n_segments / seconds / 1e6


def growth(n_images, n_segments, n_trees, leaf):
    """Return subwindows per second and tree, in millions."""
    segmenter = RandomSubwindows(n_segments)
    values = segmenter.cut(segmenter.check(images(n_images))).values
    forest = OKTotallyRandomTrees(n_trees, min_samples_leaf=leaf, random_state=0)
    seconds = min(timed(lambda: forest.fit(values))[1] for _ in range(3))
    return len(values) * n_trees / seconds / 1e6


def memory(what, n_images, n_segments):
    """Print the memory that fitting or predicting images takes, in MiB."""
    X, y = images(n_images), np.arange(n_images) % 4
    model = SegmentClassifier(RandomSubwindows(n_segments), random_state=0)
    model.fit(images(20), np.arange(20) % 4)  # imports what is needed
    reset_peak()
    before = peak()
    if what == "predict":
        model.predict_proba(X)
    else:
        model.set_params(max_segments=N_BOUNDED if what == "bounded" else None).fit(X, y)
    print((peak() - before) / MIB)


def memory_row(what, n_images, text):
    """Return a row of the table, measured in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.segments.speed", "--memory", what]
    run = subprocess.run(
        [*command, "--images", str(n_images)], capture_output=True, text=True, check=True
    )
    all_bytes = n_images * PER_IMAGE * 256 / MIB
    size = f"{float(run.stdout):.0f} MiB (all subwindows as bytes: {all_bytes:.0f} MiB)"
    return [f"memory of {text} {n_images} images, 1,000 subwindows each", size]


def main() -> None:
    """Print the table."""
    machine.fix_threads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--memory", help="internal: what to measure")
    options = parser.parse_args()
    if options.memory:
        memory(options.memory, options.images, PER_IMAGE)
        return
    n = options.images
    rows = [
        ["extraction, 1,000 each", f"{extraction(n, PER_IMAGE):.2f} M/s"],
        ["extraction, turned and mirrored",
         f"{extraction(n, PER_IMAGE, rotate=True, mirror=True):.2f} M/s"],
        ["growth, totally randomised, one per leaf", f"{growth(n, 500, 5, 1):.2f} M/s/tree"],
        ["growth, totally randomised, 10 per leaf", f"{growth(n, 500, 5, 10):.2f} M/s/tree"],
    ]  # fmt: skip
    rows += [memory_row("predict", m, "predicting") for m in (n, 5 * n)]
    rows.append(memory_row("fit", n, "fitting"))
    rows += [
        memory_row("bounded", m, f"fitting with max_segments={N_BOUNDED:,}") for m in (n, 5 * n)
    ]
    report("Speed and memory", ["what", "measured"], rows)


if __name__ == "__main__":
    main()
