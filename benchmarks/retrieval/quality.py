"""Quality and cost of image search, beside nearest neighbours of pixels and of PCA vectors (FAISS).

ORL faces: five stratified folds, each of 80 queries against 320 images. USPS digits: the 2,007 test
images against the 7,291 training images. The smallest side for digits, 0.5, was chosen among 0.25,
0.5, 0.65, 0.75 and 0.85 with training images alone. Times are CPU times of one thread. A query of
the index includes the extraction of its subwindows; one of FAISS includes the projection.
"""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmarks import machine
from benchmarks.segments.measure import report, timed
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold

from okforest.datasets import fetch_usps, load_orl_faces
from okforest.retrieval import SubwindowIndex, Vocabulary
from okforest.retrieval.evaluation import quality_of
from okforest.retrieval.postings import rank
from okforest.segments import RandomSubwindows

COLUMNS = ["", "top-1 (%)", "mAP", "build (s)", "query (ms)", "bytes an image"]


def orl():
    """Return the faces, and the folds."""
    data = load_orl_faces()
    images, subject = data.images.astype(np.uint8), data.target.astype(str)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return images, subject, list(folds.split(images, subject))


def usps():
    """Return the digits as bytes, and one fold: training images and test images."""
    data = fetch_usps()
    images = np.clip(np.round((data.data + 1) * 127.5), 0, 255).astype(np.uint8)
    test = np.flatnonzero(data.split == "test")
    train = np.flatnonzero(data.split == "train")
    return images.reshape(-1, 16, 16), data.target.astype(str), [(train, test)]


def noise(n, shape, seed=0):
    """Return images of smooth noise, for a vocabulary without any collection."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (n, shape[0] // 4 + 1, shape[1] // 4 + 1)).astype(np.uint8)
    return small.repeat(4, axis=1).repeat(4, axis=2)[:, : shape[0], : shape[1]].copy()


def photographs(shape):
    """Return tiles of scikit-learn's two photographs, in grey."""
    from sklearn.datasets import load_sample_images

    grey = [photo.mean(axis=2).astype(np.uint8) for photo in load_sample_images().images]
    height, width = shape
    return np.stack(
        [
            photo[row : row + height, col : col + width]
            for photo in grey
            for row in range(0, photo.shape[0] - height + 1, height // 3)
            for col in range(0, photo.shape[1] - width + 1, width // 3)
        ]
    )


def subwindows(n_segments, n_trees, vocabulary=None, seed=0, least=0.25):
    """Return a method: an index of subwindows."""

    def measure(images, labels, queries, answers):
        with tempfile.TemporaryDirectory() as folder:
            index, build = timed(
                lambda: SubwindowIndex.build(
                    Path(folder) / "index",
                    images,
                    labels=labels,
                    vocabulary=vocabulary and vocabulary(images),
                    segmenter=RandomSubwindows(n_segments, side_range=(least, 1.0)),
                    n_trees=n_trees,
                    max_segments=400_000,
                    thumbnail_side=0,
                    random_state=seed,
                )
            )
            for query in queries[:3]:
                index.search(query)
            _, seconds = timed(lambda: [index.search(query) for query in queries])
            quality = index.evaluate(queries, answers, random_state=seed)
            return quality, build, seconds / len(queries), index.info()["bytes"] / len(images)

    return measure


def pixels(images, labels, queries, answers):
    """Rank images by the distance of their pixels."""
    X, Q = (part.reshape(len(part), -1).astype(np.float32) for part in (images, queries))
    squares = (X**2).sum(axis=1)
    distances, seconds = timed(lambda: squares - 2 * Q @ X.T)
    return ranked(-distances, labels, answers), 0.0, seconds / len(queries), X.nbytes / 4 / len(X)


def faiss_index(make, n_components=64):
    """Return a method: an index of FAISS on PCA vectors."""

    def measure(images, labels, queries, answers):
        import faiss

        X, Q = (part.reshape(len(part), -1).astype(np.float32) for part in (images, queries))

        def build():
            pca = PCA(n_components, random_state=0).fit(X)
            index = make(faiss, n_components)
            index.add(np.ascontiguousarray(pca.transform(X), dtype=np.float32))
            return pca, index

        (pca, index), spent = timed(build)
        _, seconds = timed(
            lambda: [
                index.search(np.ascontiguousarray(pca.transform(q[None]), dtype=np.float32), 10)
                for q in Q
            ]
        )
        # The whole ranking, for the average precision.
        V, W = pca.transform(X), pca.transform(Q)
        quality = ranked(2 * W @ V.T - (V**2).sum(axis=1), labels, answers)
        if not isinstance(index, faiss.IndexFlat):  # it finds the first neighbours only
            _, found = index.search(np.ascontiguousarray(W, dtype=np.float32), 1)
            top_1 = float(np.mean(labels[found[:, 0]] == answers))
            quality = replace(quality, top_1=top_1, mean_average_precision=np.nan)
        n_bytes = (faiss.serialize_index(index).nbytes + pca.components_.nbytes) / len(X)
        return quality, spent, seconds / len(Q), n_bytes

    return measure


def ranked(scores, labels, answers):
    """Return the quality of rankings by scores; ties are broken at random."""
    keys = np.random.default_rng(0).integers(0, 2**63, len(labels)).astype(np.uint64)
    everything = np.ones(len(labels), dtype=bool)
    rankings = [
        labels[rank(row, keys, everything, len(labels), 0)] == answer
        for row, answer in zip(scores.astype(float), answers, strict=True)
    ]
    return quality_of(rankings, (1,))


def row(name, methods, data):
    """Return a row: means over methods (seeds) and folds, and deviations of the quality."""
    images, labels, folds = data
    if row.only not in name:
        return [name, *[""] * 5]
    if name.startswith("FAISS") and not machine.version_of("faiss-cpu"):
        return [name, "not installed", *[""] * 4]
    results = [
        method(images[known], labels[known], images[new], labels[new])
        for method in methods
        for known, new in folds
    ]
    top = np.array([100 * quality.top_1 for quality, *_ in results])
    precision = np.array([quality.mean_average_precision for quality, *_ in results])
    build, query, size = np.mean([rest for _, *rest in results], axis=0)
    spread = (f" ± {top.std():.2f}", f" ± {precision.std():.3f}") if len(results) > 1 else ("", "")
    cells = [f"{top.mean():.2f}{spread[0]}", f"{precision.mean():.3f}{spread[1]}"]
    if np.isnan(precision).any():
        cells[1] = "–"
    line = [name, *cells, f"{build:.2f}", f"{query * 1e3:.2f}", f"{size:,.0f}"]
    print(line, file=sys.stderr, flush=True)
    return line


FLAT = faiss_index(lambda faiss, d: faiss.IndexFlatL2(d))
HNSW = faiss_index(lambda faiss, d: faiss.IndexHNSWFlat(d, 32))


def main() -> None:
    """Print the tables."""
    machine.fix_threads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["orl", "usps", "all"], default="all")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    options = parser.parse_args()
    row.only = options.only
    print("Printed by `python -m benchmarks.retrieval.quality`.\n")
    if options.data != "usps":
        report("ORL faces", COLUMNS, on_faces())
    if options.data != "orl":
        report("USPS digits", COLUMNS, on_digits())


def on_faces():
    """Return the rows of the faces."""
    data = orl()
    shape = data[0].shape[1:]
    segmenter = RandomSubwindows(200, side_range=(0.25, 1.0))

    def of_noise(images):
        return Vocabulary.grow(noise(len(images), shape), segmenter=segmenter, max_segments=400_000)

    def of_photographs(images):
        return Vocabulary.grow(photographs(shape), segmenter=segmenter, max_segments=400_000)

    def of_digits(images):
        return Vocabulary.grow(usps()[0], segmenter=segmenter, max_segments=64_000)

    others = {"noise": of_noise, "two photographs": of_photographs, "USPS digits": of_digits}
    return [
        row("subwindows, M = 10, 200 an image", [subwindows(200, 10)], data),
        row("the same, 1,000 an image", [subwindows(1000, 10)], data),
        *(
            row(f"200 an image, trees grown on {name}", [subwindows(200, 10, grow)], data)
            for name, grow in others.items()
        ),
        *on_vectors(data),
    ]


def on_digits():
    """Return the rows of the digits."""
    data = usps()
    seeds = [subwindows(50, 20, seed=s, least=0.5) for s in range(3)]
    name = "subwindows, M = 20, 50 an image, smallest side 0.5, three seeds"
    return [
        row(name, seeds, data),
        row("the same, smallest side 0.25, one seed", [subwindows(50, 20)], data),
        *on_vectors(data),
    ]


def on_vectors(data):
    """Return the rows of what the index is compared with."""
    return [
        row("1-NN on pixels", [pixels], data),
        row("FAISS flat, PCA-64", [FLAT], data),
        row("FAISS HNSW, PCA-64", [HNSW], data),
    ]


if __name__ == "__main__":
    main()
