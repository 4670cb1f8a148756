"""okforest's predictions, quantiles, search and files beside the library that each task belongs to.

Large batches are predicted by scikit-learn, quantiles by quantile-forest, the nearest of many
vectors are found by FAISS (`IndexFlatL2`), and a forest is loaded by pickle. What can be prepared
has been: forests are fitted, the index of FAISS is filled, okforest's `Candidates` have been
searched once, and files were just written.
"""

import argparse
import pickle
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import machine
from benchmarks.compare.protocol import Comparison, Row, compare, make_parser
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import okforest
from okforest import OKExtraTrees, OKRandomForest
from okforest.decode import Candidates
from okforest.uncertainty import quantiles

BATCH = 100_000
LEVELS = [0.05, 0.5, 0.95]
CANDIDATE_WIDTH = 32


def data(n: int, n_test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training inputs, outputs, and test inputs."""
    X, y = make_friedman1(n + n_test, n_features=20, noise=1.0, random_state=0)
    X = X.astype(np.float32)
    return X[:n], y[:n], X[n:]


def batch(n: int, options: argparse.Namespace, classes: bool, leaf: int) -> Any:
    """Return both predictions of a large batch."""
    X, y, test = data(n, BATCH)
    rules = {"min_samples_leaf": leaf, "random_state": 0, "n_jobs": 1}
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, 10) / 10))
        ours = OKRandomForest(options.trees, kernel="dirac", **rules)
        theirs: Any = RandomForestClassifier(options.trees, **rules)
    else:
        ours = OKRandomForest(options.trees, **rules)
        theirs = RandomForestRegressor(options.trees, max_features=1 / 3, **rules)
    sides = [model.fit(X, y) for model in (ours, theirs)]
    for model in sides:
        model.predict(test[:1])
    return tuple(partial(quietly, model.predict, test) for model in sides)


def distributions(n: int, options: argparse.Namespace) -> Any:
    """Return both quantiles of a thousand rows."""
    X, y, test = data(n, 1000)
    rules = {"min_samples_leaf": 5, "random_state": 0, "n_jobs": 1}
    ours = OKRandomForest(options.trees, **rules).fit(X, y)
    side = partial(quietly, quantiles, ours, test, LEVELS)
    if reason("quantile_forest"):
        return side, None
    from quantile_forest import RandomForestQuantileRegressor

    theirs = RandomForestQuantileRegressor(options.trees, max_features=1 / 3, **rules).fit(X, y)
    return side, partial(quietly, theirs.predict, test, quantiles=LEVELS)


def nearest(n: int, n_queries: int) -> Any:
    """Return both searches of the nearest vector."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1000, 5)), rng.normal(size=(1000, CANDIDATE_WIDTH))
    vectors = rng.normal(scale=0.3, size=(n, CANDIDATE_WIDTH)).astype(np.float32)
    model = OKExtraTrees(50, min_samples_leaf=5, random_state=0, n_jobs=1).fit(X, Y)
    test, candidates = rng.normal(size=(n_queries, 5)), Candidates(vectors)
    model.predict(test, candidates=candidates)
    side = partial(quietly, model.predict, test, candidates=candidates)
    if reason("faiss"):
        return side, None
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(CANDIDATE_WIDTH)
    index.add(vectors)
    return side, partial(quietly, index.search, model.predict(test).astype(np.float32), 1)


def files(n: int, options: argparse.Namespace) -> Any:
    """Return both ways to load a fully grown forest."""
    X, y, _ = data(n, 1)
    forest = OKExtraTrees(options.trees, max_features=1, random_state=0, n_jobs=1).fit(X, y)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "forest"
    okforest.save(forest, path)
    pickled = Path(folder.name) / "pickle"
    pickled.write_bytes(pickle.dumps(forest, protocol=5))

    def load(by_pickle: bool) -> None:
        assert Path(folder.name).exists()  # the folder stays as long as this function
        if by_pickle:
            with pickled.open("rb") as file:
                pickle.load(file)
        else:
            okforest.load(path)

    return partial(load, False), partial(load, True)


def quietly(call: Any, *args: Any, **kwargs: Any) -> None:
    """Call a function without returning its result, which the protocol would take for a model."""
    call(*args, **kwargs)


def reason(module: str) -> str:
    """Return why a library cannot be used; empty if it can."""
    try:
        import_module(module)
    except ImportError as error:
        return f"{module} cannot be imported ({error})"
    return ""


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    n = min(options.samples or 10_000, 10_000)
    n_candidates = 100 * (options.samples or 10_000)
    found = [
        Row(
            f"predict {BATCH:,} rows, {what}, leaves of {leaf} / scikit-learn",
            partial(batch, n, options, classes, leaf),
        )
        for classes, what in ((False, "one output"), (True, "10 classes"))
        for leaf in (1, 5)
    ]
    found.append(
        Row(
            "quantiles of 1,000 rows / quantile-forest",
            partial(distributions, n, options),
            skipped=reason("quantile_forest"),
        )
    )
    found += [
        Row(
            f"nearest of {n_candidates:,} vectors, {n_queries} / FAISS",
            partial(nearest, n_candidates, n_queries),
            skipped=reason("faiss"),
        )
        for n_queries in (1, 100)
    ]
    return [*found, Row("load a forest / pickle", partial(files, 2 * n, options))]


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    text = "Friedman's first function of 20 features; random vectors of 32 numbers as candidates"
    compare(Comparison("a specialist", "", text, rows(options)), options)
    if not options.memory_of:
        names = ("scikit-learn", "quantile-forest", "faiss-cpu")
        versions = (f"{name} {machine.version_of(name) or 'not installed'}" for name in names)
        print(f"\nThe libraries: {', '.join(versions)}, and Python's pickle.")


if __name__ == "__main__":
    main()
