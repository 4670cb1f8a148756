"""Refits of forests: censored synthetic data, few labels, priors, and a large problem.

Prints the tables of results/refit.md in Markdown. Images are read from the folder named by
OKFOREST_DATA. Each part takes a minute or two.
"""

import argparse
import resource
import time
import warnings
from functools import partial

import numpy as np
from benchmarks.machine import describe, fix_threads
from sklearn.datasets import load_digits, make_friedman1, make_moons
from sklearn.semi_supervised import LabelSpreading

from okforest import OKExtraTrees, OKTotallyRandomTrees
from okforest._utils.report import Table
from okforest.datasets import fetch_usps, load_orl_faces
from okforest.refit import (
    Bounds,
    CensoredForest,
    ForestKernel,
    LinearRelation,
    Monotone,
    SemiSupervisedForest,
    knn_laplacian,
)


def censored_times(n, shift, seed):
    """Return inputs, noise-free logarithms of times, and right-censored times."""
    X, target = make_friedman1(n, random_state=seed)
    rng = np.random.default_rng(seed)
    log_time = target / 5 + rng.normal(0.0, 0.2, size=n)
    limit = rng.normal(target.mean() / 5 + shift, 1.0, size=n)
    event = log_time <= limit
    times = np.exp(np.minimum(log_time, limit))
    return X, target / 5, np.rec.fromarrays([event, times], names="event,time")


def synthetic(n_draws):
    """Compare RMSE of log times of the refit with the forest of exact cases."""
    rows = []
    forest = OKExtraTrees(100, min_samples_leaf=5, max_features=None, random_state=0)
    for shift in (1.05, -0.47):
        ratios, shares = [], []
        for seed in range(n_draws):
            X, _, y = censored_times(400, shift, seed)
            X_test, truth, _ = censored_times(2000, shift, 1000 + seed)
            model = CensoredForest(forest, scale="log").fit(X, y)
            off = CensoredForest(forest, scale="log", censored_penalty=0.0).fit(X, y)
            plain = rmse(model.estimator_.predict(X_test), truth)
            refitted = rmse(np.log(model.predict(X_test)), truth)
            without = rmse(np.log(off.predict(X_test)), truth)
            ratios.append([plain, without, refitted, refitted / plain])
            shares.append(1 - y.event.mean())
        mean, std = np.mean(ratios, axis=0), np.std(ratios, axis=0)
        cells = [f"{v:.3f}" for v in mean[:3]]
        rows.append([f"{np.mean(shares):.0%}", *cells, f"{mean[3]:.3f} ± {std[3]:.3f}"])
    header = ["censored", "forest", "refit, censored_penalty=0", "refit", "ratio to the forest"]
    print(
        f"\n### RMSE of log times, {n_draws} draws\n\n{Table(header, rows).markdown()}", flush=True
    )


def rmse(predicted, truth):
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def moons(n_draws):
    """Two moons with ten labels: accuracy on unlabelled and on new rows."""
    found = {}
    trees = OKTotallyRandomTrees(100, kernel="dirac", random_state=0)
    settings = {
        "SemiSupervisedForest": {},
        "the same, laplacian_penalty=1": {"laplacian_penalty": 1.0},
        "on totally randomised trees": {"estimator": trees},
        "on these, laplacian_penalty=1": {"estimator": trees, "laplacian_penalty": 1.0},
        "on these, laplacian_penalty=1 and regrow=False": {
            "estimator": trees,
            "laplacian_penalty": 1.0,
            "regrow": False,
        },
    }
    for seed in range(n_draws):
        X, moon = make_moons(300, noise=0.08, random_state=seed)
        X_new, moon_new = make_moons(1000, noise=0.08, random_state=1000 + seed)
        rng = np.random.default_rng(seed)
        labelled = [rng.choice(np.flatnonzero(moon == k), 5, replace=False) for k in (0, 1)]
        y = np.full(300, -1)
        y[np.concatenate(labelled)] = moon[np.concatenate(labelled)]
        unlabelled = y < 0
        forest = OKExtraTrees(100, kernel="dirac", random_state=0)
        forest.fit(X[~unlabelled], y[~unlabelled])
        models = {"extra-trees": (forest, forest.predict(X))}
        for k in (7, 10):
            spread = LabelSpreading("knn", n_neighbors=k).fit(X, y)
            models[f"label spreading, {k} neighbours"] = spread, spread.transduction_
        for name, parameters in settings.items():
            model = SemiSupervisedForest(**parameters).fit(X, y)
            models[name] = model, model.transduction_
        for name, (model, transduced) in models.items():
            right = (transduced == moon)[unlabelled].mean()
            found.setdefault(name, []).append((right, (model.predict(X_new) == moon_new).mean()))
    rows = []
    for name, pairs in found.items():
        unlabelled, new = np.array(pairs).T
        means = [unlabelled.mean(), unlabelled.min(), new.mean(), new.min()]
        rows.append([name, *(f"{v:.3f}" for v in means)])
    table = Table(["", "unlabelled", "worst draw", "new", "worst draw"], rows)
    print(f"\n### Two moons, {n_draws} draws\n\n{table.markdown()}", flush=True)


def images(name, n_draws):
    """Digits or faces with few labels: accuracy on unlabelled and on new rows."""
    if name == "usps":
        usps = fetch_usps()
        pixels, labels, n_train, per_class = usps.data, usps.target, 2000, 10
        is_new = usps.split == "test"
    else:
        faces = load_orl_faces()
        pixels = faces.images[:, ::4, ::4].reshape(len(faces.images), -1) / 255.0
        labels, n_train, per_class = faces.target, 320, 2
        is_new = faces.shot > 8
    scores = {}
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        train = rng.permutation(np.flatnonzero(~is_new))[:n_train]
        X, y = pixels[train], labels[train].astype(int)
        labelled = np.concatenate([np.flatnonzero(y == k)[:per_class] for k in np.unique(y)])
        known = np.full(n_train, -1)
        known[labelled] = y[labelled]
        unlabelled = known < 0
        forest = OKExtraTrees(100, kernel="dirac", random_state=0)
        models = {
            "extra-trees": forest,
            "label spreading, 7 neighbours": LabelSpreading("knn", n_neighbors=7),
            "SemiSupervisedForest": SemiSupervisedForest(forest),
            "the same, regrow=False": SemiSupervisedForest(forest, regrow=False),
            "the same, 3 neighbours": SemiSupervisedForest(forest, n_neighbors=3),
        }
        for label, model in models.items():
            rows = labelled if model is forest else slice(None)
            model.fit(X[rows], known[rows])
            pairs = [
                (model.predict(X[unlabelled]), y[unlabelled]),
                (model.predict(pixels[is_new]), labels[is_new]),
            ]
            accuracies = [float(np.mean(predicted == truth)) for predicted, truth in pairs]
            scores.setdefault(label, []).append(accuracies)
    rows = [
        [label, *(f"{np.mean(v):.3f} ± {np.std(v):.3f}" for v in zip(*values, strict=True))]
        for label, values in scores.items()
    ]
    title = f"{name}, {n_train} rows, {per_class} labels of each class, {n_draws} draws"
    print(f"\n### {title}\n\n{Table(['', 'unlabelled', 'new'], rows).markdown()}", flush=True)


def few(n_draws):
    """Digits of scikit-learn with three labels of each class: which trees, on which rows."""
    X, y = load_digits(return_X_y=True)
    random = OKTotallyRandomTrees(100, kernel="dirac", random_state=0)
    models = {
        "extra-trees": OKExtraTrees(100, kernel="dirac", random_state=0),
        "SemiSupervisedForest": SemiSupervisedForest(),
        "the same, regrow=False": SemiSupervisedForest(regrow=False),
        "OKTotallyRandomTrees, laplacian_penalty=1": SemiSupervisedForest(
            random, laplacian_penalty=1.0
        ),
        "the same, laplacian_penalty=1 and regrow=False": SemiSupervisedForest(
            random, laplacian_penalty=1.0, regrow=False
        ),
    }
    scores = {}
    for seed in range(n_draws):
        order = np.random.default_rng(seed).permutation(len(y))
        train, new = order[:1000], order[1000:]
        labelled = np.concatenate([np.flatnonzero(y[train] == k)[:3] for k in range(10)])
        known = np.full(1000, -1)
        known[labelled] = y[train][labelled]
        for name, model in models.items():
            rows = labelled if name == "extra-trees" else slice(None)
            model.fit(X[train][rows], known[rows])
            parts = train[known < 0], new
            found = [(model.predict(X[part]) == y[part]).mean() for part in parts]
            scores.setdefault(name, []).append(found)
    rows = [[name, *(f"{v:.3f}" for v in np.mean(found, axis=0))] for name, found in scores.items()]
    table = Table(["", "unlabelled", "new"], rows)
    print(
        f"\n### digits, 3 labels of each class, {n_draws} draws\n\n{table.markdown()}", flush=True
    )


def limits(n_draws):
    """Where the semi-supervised refit fails: large C, proximities as a graph, vector outputs."""
    usps = fetch_usps()
    train = np.flatnonzero(usps.split == "train")
    forest = OKExtraTrees(100, kernel="dirac", random_state=0)
    vectors = OKExtraTrees(100, random_state=0)
    scores = {}
    for seed in range(n_draws):
        rows = np.random.default_rng(seed).permutation(train)[:1000]
        X, y = usps.data[rows], usps.target[rows]
        labelled = np.concatenate([np.flatnonzero(y == k)[:10] for k in range(10)])
        known = np.full(1000, -1)
        known[labelled] = y[labelled]
        new = known < 0
        graph = knn_laplacian(X)
        shared = ForestKernel(forest, weighted=False).fit(X[labelled], y[labelled]).gram(X)
        np.fill_diagonal(shared, 0.0)
        root = np.sqrt(shared.sum(axis=1))
        models = {"forest, accuracy": None}
        models |= {
            f"7 neighbours, laplacian_penalty={C:g}": (graph, C) for C in (0.1, 1.0, 10.0, 100.0)
        }
        models["proximities, laplacian_penalty=0.1"] = (
            np.eye(1000) - shared / np.outer(root, root),
            0.1,
        )
        for name, chosen in models.items():
            if chosen is None:
                predicted = forest.fit(X[labelled], y[labelled]).predict(X)
            else:
                model = SemiSupervisedForest(
                    forest, laplacian=chosen[0], laplacian_penalty=chosen[1]
                )
                predicted = model.fit(X, known).transduction_
            scores.setdefault(name, []).append((predicted == y)[new].mean())
        upper, lower = np.split(X, 2, axis=1)
        partly = np.where(np.arange(1000)[:, None] < 150, lower, np.nan)
        plain = vectors.fit(upper[:150], lower[:150]).predict(upper[150:])
        model = SemiSupervisedForest(vectors, laplacian_penalty=0.01, leaf_penalty=0.03).fit(
            upper, partly
        )
        smooth = model.predict(upper[150:])
        for name, f in (
            ("forest, squared error of halves", plain),
            ("7 neighbours, the same", smooth),
        ):
            scores.setdefault(name, []).append(np.mean((f - lower[150:]) ** 2))
    rows = [[name, f"{np.mean(v):.3f}"] for name, v in scores.items()]
    title = f"usps, 1000 rows, 10 labels of each class, or 150 lower halves, {n_draws} draws"
    print(f"\n### {title}\n\n{Table(['', 'mean'], rows).markdown()}", flush=True)


def least_time(call):
    """Return the least CPU time of three calls."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def large():
    """Time and memory of 20,000 rows and 100 trees; run it first, as the peak is that so far."""
    X, _, y = censored_times(20_000, 1.05, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    events, log_times = X[y.event], np.log(y.time[y.event])
    grown = least_time(lambda: CensoredForest()._new_forest().fit(events, log_times))
    rows = []
    for name, parameters in (
        ("tol=1e-4", {"tol": 1e-4}),
        ("tol=1e-6 (default)", {}),
        ("leaf_penalty=0.1", {"leaf_penalty": 0.1}),
        ("adjust='outputs'", {"adjust": "outputs"}),
        ("laplacian='knn'", {"laplacian": "knn"}),
    ):
        model = CensoredForest(scale="log", **parameters)
        seconds = least_time(partial(model.fit, X, y)) - grown
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        times = [f"{grown:.2f} s", f"{seconds:.2f} s", f"{seconds / grown:.1f}"]
        rows.append([name, *times, f"{model.duality_gap_:.1e}", f"{peak:.2f} GiB"])
    header = ["refit with", "growing", "refit", "ratio", "relative gap", "peak, above the data"]
    print(f"\n### 20,000 rows, 100 trees\n\n{Table(header, rows).markdown()}", flush=True)


def priors(n_draws):
    """Monotone and bounded fits, and a linear relation between outputs."""
    forest = OKExtraTrees(100, min_samples_leaf=5, max_features=None, random_state=0)
    errors = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        X, X_test = rng.uniform(size=(150, 3)), rng.uniform(size=(1000, 3))
        y = _response(X) + rng.normal(0.0, 0.3, size=150)
        constraints = [Monotone(0), Bounds(0.0, 1.0)]
        model = SemiSupervisedForest(forest, laplacian=None, priors=constraints)
        model.fit(X, y)
        fits = (model.estimator_.predict(X_test), model.predict(X_test))
        errors.append([rmse(f, _response(X_test)) for f in fits])
    wins = sum(after < before for before, after in errors)
    means = [f"{v:.4f}" for v in np.mean(errors, axis=0)]
    rows = [["monotone and bounded, RMSE", *means, f"{wins} of {n_draws}"]]
    errors = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        X, X_test = rng.uniform(size=(200, 4)), rng.uniform(size=(1000, 4))
        spread = np.array([0.5, 0.05, 0.05])  # outputs are divided by their noise
        Y = (_parts(X) + spread * rng.normal(size=(200, 3))) / spread
        relation = LinearRelation(spread * [1.0, -1.0, -1.0], points=X)
        model = SemiSupervisedForest(forest, laplacian=None, leaf_penalty=3.0, priors=[relation])
        model.fit(X, Y)
        fits = (model.estimator_.predict(X_test), model.predict(X_test))
        errors.append([np.mean((spread * f - _parts(X_test)) ** 2) for f in fits])
    wins = sum(after < before for before, after in errors)
    means = [f"{v:.4f}" for v in np.mean(errors, axis=0)]
    rows.append(["y₁ = y₂ + y₃, squared error", *means, f"{wins} of {n_draws}"])
    table = Table(["", "forest", "with priors", "better in"], rows)
    print(f"\n### Priors\n\n{table.markdown()}", flush=True)


def _response(X):
    """Return a function between 0 and 1 that increases with the first input."""
    return (0.5 + 0.5 * X[:, 1]) / (1.0 + np.exp(-8.0 * (X[:, 0] - 0.5)))


def _parts(X):
    """Return a sum and its two terms."""
    a, b = np.sin(3.0 * X[:, 0]), X[:, 1] ** 2
    return np.column_stack([a + b, a, b])


def main() -> None:
    """Run the chosen parts."""
    parts = {
        "synthetic": lambda n: synthetic(n),
        "moons": lambda n: moons(n),
        "usps": lambda n: images("usps", n),
        "faces": lambda n: images("faces", n),
        "few": lambda n: few(n),
        "limits": lambda n: limits(n),
        "large": lambda n: large(),
        "priors": lambda n: priors(n),
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=parts, nargs="+")
    parser.add_argument("--draws", type=int, default=10)
    arguments = parser.parse_args()
    fix_threads()
    warnings.simplefilter("ignore")
    print(describe()["CPU"])
    for part in arguments.part:
        parts[part](arguments.draws)


if __name__ == "__main__":
    main()
