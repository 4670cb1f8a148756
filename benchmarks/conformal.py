"""Coverage of conformal prediction in several output spaces, over random splits.

Prints the tables of docs/uncertainty.md in Markdown. Each split takes 70 % of the rows for fitting
and calibration and tests on the rest. Classes and numbers are compared with MAPIE and crepes on
scikit-learn's random forest, with the same rows for calibration (``pip install mapie crepes``;
without them their rows are left out). The folder named by OKFOREST_DATA holds the data sets.
"""

import argparse
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.machine import describe, fix_threads, print_command, version_of
from benchmarks.outputs.strings import words_and_pixels
from joblib import Parallel, delayed
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from okforest import OKRandomForest
from okforest._utils.report import Table
from okforest.datasets import load_label_ranking, load_multilabel, load_tecator
from okforest.kernels import OutputKernel, Spectrum
from okforest.uncertainty import ConformalIntervals, ConformalSets

COVERAGE = 0.9
TREES = 50
CALIBRATION = 0.25

Result = tuple[str, float, float]  # method, coverage, size or width


class Space(NamedTuple):
    """A data set of one output space."""

    name: str
    X: np.ndarray
    y: np.ndarray
    kernel: str | OutputKernel = "linear"
    candidates: np.ndarray | None = None
    unit: str = "outputs"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=60, help="random splits (default: 60)")
    parser.add_argument("--only", default="", help="spaces whose name contains this text")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    options = parser.parse_args()
    fix_threads()
    print_command()
    print(", ".join(f"{key}: {value}" for key, value in describe().items()))
    print(", ".join(f"{name} {version_of(name)}" for name in ("mapie", "crepes", "scikit-learn")))
    chosen = [(space, run) for space, run in spaces() if options.only in space.name]
    rows = []
    for space, run in chosen:
        results = defaultdict(list)
        jobs = (delayed(collect)(run, space, seed) for seed in range(options.splits))
        for found in Parallel(options.jobs)(jobs):
            for method, coverage, size in found:
                results[method].append((coverage, size))
        for method, values in results.items():
            coverage, size = np.mean(values, axis=0)
            error = np.std(values, axis=0)[0] / np.sqrt(len(values))
            rows.append(
                [space.name, method, f"{coverage:.3f} ± {error:.3f}", f"{size:.3g} {space.unit}"]
            )
        print(space.name, file=sys.stderr, flush=True)
    print(f"\n### Coverage at {COVERAGE:.0%} over {options.splits} splits\n")
    print(Table(["data", "method", "coverage", "mean size"], rows, text=True).markdown())
    missing = list(missing_truths(options.splits)) if not options.only else []
    print("\n### True outputs that are missing from the candidates\n")
    header = ["data", "asked", "achievable, by calibration", "reached", "warned"]
    print(Table(header, missing, text=True).markdown())


def collect(run: Callable[[Space, int], Iterator[Result]], space: Space, seed: int) -> list[Result]:
    """Return the results of one split."""
    return list(run(space, seed))


def spaces() -> Iterator[tuple[Space, Callable[[Space, int], Iterator[Result]]]]:
    """Yield the data sets, and what is run on them; unavailable data sets are left out."""
    digits, first = load_digits(), slice(1000)
    yield Space("classes: digits", digits.data[first], digits.target[first], "dirac"), classes
    X, y = make_friedman1(800, noise=1.0, random_state=0)
    yield Space("numbers: Friedman 1", X, y, unit="wide"), numbers
    yield Space("numbers: diabetes", *load_diabetes(return_X_y=True), unit="wide"), numbers
    folder = Path(os.environ.get("OKFOREST_DATA", "") or "missing")
    if (folder / "tecator").exists():
        tecator = load_tecator()
        yield Space("curves: tecator", tecator.target, tecator.data, unit="wide"), bands
    if (folder / "multilabel").exists():
        for name in ("emotions", "yeast"):
            data = load_multilabel(name)
            yield Space(f"label sets: {name}", data.data, data.target.astype(float)), outputs
    if (folder / "ocr_letters").exists():
        words, pixels = words_and_pixels()
        kernel = Spectrum(2, boundaries=True)
        chosen = np.random.default_rng(0).permutation(len(words))[:600]
        yield Space("strings: words", pixels[chosen], words[chosen], kernel), outputs
    if (folder / "label_ranking").exists():
        for name, n_labels in (("vehicle", 4), ("iris", 3)):
            data = load_label_ranking(name)
            every = np.array(list(permutations(range(1, n_labels + 1))), dtype=float)
            yield (
                Space(f"rankings: {name}", data.data, data.target.astype(float), candidates=every),
                outputs,
            )


def parts(space: Space, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and to test."""
    order = np.random.default_rng(seed).permutation(len(space.y))
    n_test = round(0.3 * len(order))
    return order[n_test:], order[:n_test]


def forest(space: Space, seed: int) -> OKRandomForest:
    """Return the model of every method."""
    leaf = 5 if space.unit == "wide" else 1
    return OKRandomForest(TREES, kernel=space.kernel, min_samples_leaf=leaf, random_state=seed)


def outputs(space: Space, seed: int) -> Iterator[Result]:
    """Run prediction sets."""
    train, test = parts(space, seed)
    X, y = space.X[train], space.y[train]
    for method, score in (
        ("split", "margin"),
        ("split", "distance"),
        ("split", "votes"),
        ("cross", "margin"),
        ("oob", "margin"),
    ):
        model = ConformalSets(
            forest(space, seed),
            method=method,
            conformity_score=score,
            candidates=space.candidates,
            calibration_size=CALIBRATION,
            random_state=seed,
        )
        model.fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # coverage that cannot be reached is in another table
            sets = model.predict_sets(space.X[test], COVERAGE)
        yield f"{method}, {score}", sets.contain(space.y[test]).mean(), sets.sizes.mean()


def classes(space: Space, seed: int) -> Iterator[Result]:
    """Run prediction sets, also of other libraries on scikit-learn's forest."""
    yield from outputs(space, seed)
    train, test = parts(space, seed)
    fit, left = held_out(train, seed)
    model = RandomForestClassifier(TREES, random_state=seed).fit(space.X[fit], space.y[fit])
    if version_of("mapie"):
        from mapie.classification import SplitConformalClassifier

        for score in ("lac", "aps"):
            peer = SplitConformalClassifier(
                model, confidence_level=COVERAGE, conformity_score=score, random_state=seed
            )
            peer.conformalize(space.X[left], space.y[left])
            members = peer.predict_set(space.X[test])[1][:, :, 0]
            inside = members[np.arange(len(test)), space.y[test]]
            yield f"MAPIE, {score}", inside.mean(), members.sum(axis=1).mean()
    if version_of("crepes"):
        from crepes import WrapClassifier

        peer = WrapClassifier(model)
        peer.calibrate(space.X[left], space.y[left], seed=seed)
        sets = peer.predict_set(space.X[test], confidence=COVERAGE, seed=seed)
        inside = [y in members for y, members in zip(space.y[test], sets, strict=True)]
        yield "crepes, hinge", np.mean(inside), np.mean([len(members) for members in sets])


def bands(space: Space, seed: int) -> Iterator[Result]:
    """Run intervals of numbers, or bands of curves."""
    train, test = parts(space, seed)
    for method, score in (
        ("split", "normalized"),
        ("split", "absolute"),
        ("split", "quantiles"),
        ("cross", "normalized"),
        ("oob", "normalized"),
    ):
        model = ConformalIntervals(
            forest(space, seed),
            method=method,
            conformity_score=score,
            calibration_size=CALIBRATION,
            random_state=seed,
        )
        model.fit(space.X[train], space.y[train])
        found = model.predict_interval(space.X[test], COVERAGE)
        yield f"{method}, {score}", *quality(found, space.y[test])


def numbers(space: Space, seed: int) -> Iterator[Result]:
    """Run intervals, also of other libraries on scikit-learn's forest."""
    yield from bands(space, seed)
    train, test = parts(space, seed)
    fit, left = held_out(train, seed)
    model = RandomForestRegressor(TREES, min_samples_leaf=5, max_features="sqrt", random_state=seed)
    model.fit(space.X[fit], space.y[fit])
    if version_of("mapie"):
        from mapie.regression import SplitConformalRegressor

        for score in ("absolute", "residual_normalized"):
            peer = SplitConformalRegressor(model, confidence_level=COVERAGE, conformity_score=score)
            peer.conformalize(space.X[left], space.y[left])
            yield (
                f"MAPIE, {score}",
                *quality(peer.predict_interval(space.X[test])[1][:, :, 0], space.y[test]),
            )
    if version_of("crepes"):
        from crepes import WrapRegressor
        from crepes.extras import DifficultyEstimator

        peer = WrapRegressor(model)
        difficulty = DifficultyEstimator().fit(space.X[fit], learner=model)
        peer.calibrate(space.X[left], space.y[left], de=difficulty)
        found = peer.predict_int(space.X[test], confidence=COVERAGE)
        yield "crepes, normalised by variance", *quality(np.asarray(found), space.y[test])


def quality(found: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the share of outputs that lie inside, and the mean width."""
    inside = (found[..., 0] <= y) & (y <= found[..., 1])
    whole = inside if y.ndim == 1 else inside.all(axis=1)
    return float(whole.mean()), float((found[..., 1] - found[..., 0]).mean())


def held_out(train: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that ConformalSets fits to with this seed, and those that calibrate."""
    order = np.random.RandomState(seed).permutation(len(train))
    n_left = round(CALIBRATION * len(train))
    return train[order[n_left:]], train[order[:n_left]]


def missing_truths(n_splits: int) -> Iterator[list[str]]:
    """Yield what happens where true outputs are not among the outputs known from training."""
    folder = Path(os.environ.get("OKFOREST_DATA", "") or "missing")
    if not (folder / "label_ranking").exists() or not (folder / "multilabel").exists():
        return
    yeast, spo = load_multilabel("yeast"), load_label_ranking("spo")
    bibtex = load_multilabel("bibtex")
    for name, X, y in (
        ("label sets: yeast", yeast.data, yeast.target),
        ("label sets: yeast, 300 rows", yeast.data[:300], yeast.target[:300]),
        ("label sets: bibtex, 800 rows", bibtex.data[:800], bibtex.target[:800]),
        ("rankings of 11 labels: spo, 800 rows", spo.data[:800], spo.target[:800]),
    ):
        space = Space(name, X, y.astype(float))
        achievable, reached, warned = [], [], []
        for seed in range(n_splits):
            train, test = parts(space, seed)
            model = ConformalSets(forest(space, seed), random_state=seed)
            model.fit(X[train], space.y[train])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                sets = model.predict_sets(X[test], COVERAGE)
            achievable.append(model.achievable_coverage_)
            reached.append(sets.contain(space.y[test]).mean())
            warned.append(any("are not among the candidates" in str(one.message) for one in caught))
        yield [
            name,
            f"{COVERAGE:.2f}",
            f"{np.mean(achievable):.3f}",
            f"{np.mean(reached):.3f}",
            f"{sum(warned)} of {n_splits}",
        ]


if __name__ == "__main__":
    main()
