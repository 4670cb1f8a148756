"""Random graphs with and without planted triangles, by neighbourhoods and by a simple recipe.

Graphs of the second class have 6 or 15 triangles added between random vertices; graphs of the first
have as many edges added between random vertices, so that densities are about equal. Errors in per
cent on test graphs are means over three draws, with half of their range; times are CPU times of fit
and prediction, features included. The recipe is scikit-learn's extra-trees on statistics of
degrees, without and with the number of triangles, the feature that defines the classes. Nothing was
tuned.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from benchmarks import machine
from benchmarks.segments.measure import SEEDS, report, spread, timed
from sklearn.ensemble import ExtraTreesClassifier

from okforest import OKExtraTrees
from okforest.segments import Neighborhoods, SegmentClassifier

N_VERTICES = (40, 60)
MEAN_DEGREE = 4.0
N_TRIANGLES = (6, 15)  # planted in a graph


def make_graph(planted, n_triangles, rng):
    """Return the adjacency matrix of a random graph, with triangles or with as many edges."""
    n = rng.integers(*N_VERTICES)
    upper = np.triu(rng.random((n, n)) < MEAN_DEGREE / (n - 1), 1)
    for _ in range(n_triangles):
        if planted:
            a, b, c = rng.choice(n, 3, replace=False)
            ends = [(a, b), (b, c), (a, c)]
        else:
            ends = [rng.choice(n, 2, replace=False) for _ in range(3)]
        for a, b in ends:
            upper[min(a, b), max(a, b)] = True
    return sp.csr_array((upper | upper.T).astype(np.float64))


def make_graphs(n, n_triangles, seed):
    """Return graphs and whether triangles are planted in them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    return [make_graph(label, n_triangles, rng) for label in labels], labels


def degree_statistics(graph):
    """Return numbers of vertices and edges, and the distribution of the degrees."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    quantiles = np.quantile(degrees, [0, 0.25, 0.5, 0.75, 1])
    return [len(degrees), graph.nnz / 2, degrees.mean(), degrees.std(), *quantiles]


def with_triangles(graph):
    """Return statistics of degrees, and the number of triangles."""
    return [*degree_statistics(graph), (graph @ graph * graph).sum() / 6]


def recipe(statistics):
    """Return a function that fits extra-trees to statistics of graphs and predicts."""

    def predict(train, labels, test, seed):
        forest = ExtraTreesClassifier(100, random_state=seed)
        forest.fit([statistics(graph) for graph in train], labels)
        return forest.predict([statistics(graph) for graph in test])

    return predict


def segments(n_segments, radius, n_trees, **params):
    """Return a function that fits a classifier of neighbourhoods and predicts."""

    def predict(train, labels, test, seed):
        segmenter = Neighborhoods(n_segments, radius=radius)
        forest = OKExtraTrees(n_trees, min_samples_leaf=5)
        model = SegmentClassifier(segmenter, forest, random_state=seed, **params)
        return model.fit(train, labels).predict(test)

    return predict


METHODS = {
    "scikit-learn ExtraTrees, statistics of degrees": recipe(degree_statistics),
    "scikit-learn ExtraTrees, statistics of degrees and number of triangles": recipe(
        with_triangles
    ),
    "SegmentClassifier, 20 balls, radius 1": segments(20, 1, 100),
    "SegmentClassifier, 20 balls, radius 2": segments(20, 2, 100),
    "SegmentClassifier, 100 balls, radius 1": segments(100, 1, 100),
    "SegmentClassifier, 100 balls, radius 1, by confidence": segments(
        100, 1, 100, combine="confidence"
    ),
    "SegmentClassifier, 100 balls, radius 2": segments(100, 2, 100),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=400, help="half of them for training")
    n = parser.parse_args().graphs
    machine.fix_threads()
    rows = []
    for method, predict in METHODS.items():
        figures = [measure(predict, n, n_triangles) for n_triangles in N_TRIANGLES]
        seconds = np.mean([times for _, times in figures])
        rows.append([method, *(spread(errors) for errors, _ in figures), f"{seconds:.2f}"])
        print(rows[-1], flush=True)
    titles = [f"{n_triangles} triangles, error, %" for n_triangles in N_TRIANGLES]
    report("Graphs with planted triangles", ["method", *titles, "time, s"], rows)


def measure(predict, n, n_triangles):
    """Return the errors of a method on the second half of n graphs, and its times."""
    errors, times, half = [], [], n // 2
    for seed in SEEDS:
        X, y = make_graphs(n, n_triangles, seed)
        predicted, seconds = timed(
            lambda X=X, y=y, seed=seed: predict(X[:half], y[:half], X[half:], seed)
        )
        errors.append(100 * np.mean(predicted != y[half:]))
        times.append(seconds)
    return errors, times


if __name__ == "__main__":
    main()
