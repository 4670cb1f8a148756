"""Query times of an index of 320,000 subwindows, and how cost grows with the number of images.

``query``: faces of ORL, 320 images with 1,000 subwindows each; queries are other faces. ``growth``:
generated images with 500 subwindows each, added in steps; a figure of the time to build and add,
of queries, of bytes on disk and of memory. Times are CPU times of one thread.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from benchmarks import machine
from benchmarks.compare.memory import peak, reset_peak
from benchmarks.segments.measure import report, timed

from okforest.retrieval import SubwindowIndex, Vocabulary
from okforest.retrieval.postings import Words
from okforest.segments import RandomSubwindows

SIZES = (200, 1000)


def faces():
    """Return 400 faces of ORL, or generated images without the data."""
    try:
        from okforest.datasets import load_orl_faces

        return load_orl_faces().images.astype(np.uint8)
    except OSError:
        return generated(range(400), (112, 92))


def generated(numbers, shape=(96, 96)):
    """Return images of a few random shapes on a random ground, each determined by its number."""
    images = np.empty((len(numbers), *shape), dtype=np.uint8)
    rows, cols = np.mgrid[: shape[0], : shape[1]]
    for image, number in zip(images, numbers, strict=True):
        rng = np.random.default_rng(number)
        slope = rng.normal(0, 60, 2)
        pixels = rng.uniform(60, 200) + slope[0] * rows / shape[0] + slope[1] * cols / shape[1]
        for _ in range(rng.integers(3, 9)):
            centre, radius = rng.uniform(0, shape[0], 2), rng.uniform(4, 30)
            inside = (rows - centre[0]) ** 2 + (cols - centre[1]) ** 2 < radius**2
            pixels = np.where(inside, rng.uniform(0, 255), pixels)
        image[:] = np.clip(pixels + rng.normal(0, 4, shape), 0, 255)
    return images


def medians(run, items, runs):
    """Return, for each run, the median CPU time of a function over items, in milliseconds."""
    return [
        1e3 * float(np.median([timed(lambda item=item: run(item))[1] for item in items]))
        for _ in range(runs)
    ]


def query(folder, n_images, runs):
    """Print the table of query times."""
    images = faces()
    rows = []
    for sample in (100_000, 10**9):
        index, build = timed(
            lambda sample=sample: SubwindowIndex.build(
                Path(folder) / f"index {sample}",
                images[:n_images],
                segmenter=RandomSubwindows(1000),
                max_segments=sample,
                thumbnail_side=0,
            )
        )
        queries = [*images[n_images:], *images[:n_images]][:80]
        for picture in queries[:10]:
            index.search(picture)
        rows += [[*query_row(index, queries, n, runs), f"{build:.1f}"] for n in SIZES]
    columns = [
        "subwindows of a query",
        "leaves of a tree",
        "cut and walk (ms)",
        "postings and rank (ms)",
        "whole query (ms)",
        "bytes a subwindow and tree",
        "build (s)",
    ]
    print("Printed by `python -m benchmarks.retrieval.speed query`.\n")
    report(f"Queries, {n_images * 1000:,} indexed subwindows", columns, rows)
    print(
        f"Each run takes the median of {len(queries)} queries; the table has the median of {runs} "
        f"runs,\nand for the whole query also the fastest and the slowest run. Load of the "
        f"machine: {machine.describe()['load at start']}.\n"
    )


def query_row(index, queries, n, runs):
    """Return the cells of one number of subwindows of a query, except for the time to build."""
    words = [Words.count(index.reach(query, n).leaves) for query in queries]

    def rank(one):
        index.best_hits(one, None, 10, labels=None, random_state=0, generation=None)

    parts = medians(lambda picture: index.reach(picture, n), queries, runs)
    ranks = medians(rank, words, runs)
    whole = medians(lambda picture: index.search(picture, 10, n_subwindows=n), queries, runs)
    info = index.info()
    return [
        f"{n:,}",
        f"{info['leaves'] // info['trees']:,}",
        f"{np.median(parts):.2f}",
        f"{np.median(ranks):.2f}",
        f"{np.median(whole):.2f} ({min(whole):.2f} to {max(whole):.2f})",
        f"{info['bytes_per_subwindow_and_tree']:.1f}",
    ]


def growth(folder, steps, per_image, figure, results):
    """Add images in steps, measure, and draw the figure."""
    segmenter = RandomSubwindows(per_image)
    vocabulary = Vocabulary.grow(generated(range(10**6, 10**6 + 1000)), segmenter=segmenter)
    index = SubwindowIndex.build(Path(folder) / "index", vocabulary=vocabulary, thumbnail_side=0)
    measured = []
    done, spent = 0, 0.0
    queries = generated(range(2 * 10**6, 2 * 10**6 + 30))
    for n in steps:
        reset_peak()
        for begin in range(done, n, 1000):
            numbers = range(begin, min(n, begin + 1000))
            images = generated(numbers)
            names = [str(i) for i in numbers]
            spent += timed(lambda images=images, names=names: index.add(images, names=names))[1]
        done = n
        _, compaction = timed(index.compact)
        one_more = generated(range(3 * 10**6 + n, 3 * 10**6 + n + 10))
        _, ten = timed(lambda images=one_more: index.add(images))
        index.compact()
        index.search(queries[0])
        row = {
            "images": n,
            "subwindows": n * per_image,
            "build_s": spent,
            "compact_s": compaction,
            "add_10_images_s": ten,
            "bytes": index.info()["bytes"],
            "peak_memory": peak(),
        }
        for size in SIZES:
            times = [
                timed(lambda q=q, size=size: index.search(q, 10, n_subwindows=size))[1]
                for q in queries
            ]
            row[f"query_{size}_ms"] = 1e3 * float(np.median(times))
        measured.append(row)
        print(row, flush=True)
    if results:
        Path(results).write_text(json.dumps(measured, indent=1) + "\n")
    if figure:
        draw(measured, figure)


def draw(measured, path):
    """Draw the cost against the number of subwindows."""
    import matplotlib.pyplot as plt

    x = np.array([row["subwindows"] for row in measured]) / 1e6
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.1), layout="constrained")
    lines = (
        (
            "CPU time (s)",
            {"add all": "build_s", "compact": "compact_s", "add 10": "add_10_images_s"},
            1,
        ),
        ("query (ms)", {f"{n:,} subwindows": f"query_{n}_ms" for n in SIZES}, 1),
        ("index on disk (MB)", {"": "bytes"}, 1e6),
        ("peak memory (MB)", {"": "peak_memory"}, 1e6),
    )
    for axis, (title, names, unit) in zip(axes, lines, strict=True):
        for label, name in names.items():
            axis.plot(x, [row[name] / unit for row in measured], "o-", label=label, ms=3.5)
        axis.set(title=title, xlabel="indexed subwindows (millions)", ylim=(0, None))
        if len(names) > 1:
            axis.legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run a part."""
    machine.fix_threads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["query", "growth"])
    parser.add_argument("--images", type=int, help="number of images")
    parser.add_argument("--runs", type=int, default=5, help="runs of the part query")
    parser.add_argument("--figure", default="docs/images/search_growth.png")
    parser.add_argument("--json", help="file for the measurements")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.part == "query":
            query(folder, options.images or 320, options.runs)
        else:
            most = options.images or 20_000
            steps = sorted({max(10, most * k // 8) for k in (1, 2, 4, 6, 8)})
            growth(folder, steps, 500, options.figure, options.json)


if __name__ == "__main__":
    main()
