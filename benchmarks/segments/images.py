"""Faces and digits by random subwindows, beside nearest neighbours and scikit-learn's extra-trees.

ORL: 40 people; each of the 10 shots in turn is the test set, and the other 9 of every person are
the training set. USPS: the published split. Forests on whole images have 100 trees, forests on
subwindows 10, grown until leaves are pure. The two forests on subwindows get the same subwindows.
Errors in per cent are means over seeds, with half of their range; scikit-learn's forest on
subwindows is slow, and grown with one seed only. Times are CPU times; fitting does not include
extraction.
"""

import argparse

import numpy as np
from benchmarks import machine
from benchmarks.segments.measure import SEEDS, report, spread, timed
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.neighbors import KNeighborsClassifier

from okforest import OKExtraTrees
from okforest.datasets import fetch_usps, load_orl_faces
from okforest.segments import RandomSubwindows, SegmentClassifier

HEADER = ["method", "error, %", "fit, s", "predict, s"]


def faces():
    """Yield training and test sets of ORL."""
    orl = load_orl_faces()
    for shot in range(1, 11):
        test = orl.shot == shot
        yield orl.images[~test], orl.target[~test], orl.images[test], orl.target[test]


def digits():
    """Yield the training and the test set of USPS, as bytes."""
    usps = fetch_usps()
    images = np.round(127.5 * (usps.images + 1)).astype(np.uint8)
    test = usps.split == "test"
    yield images[~test], usps.target[~test], images[test], usps.target[test]


def whole(model, seed, data):
    """Return error, fitting and prediction time of a model of whole images."""
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    X, y, Z, truth = data
    _, fit = timed(lambda: model.fit(X.reshape(len(X), -1), y))
    predicted, predict = timed(lambda: model.predict(Z.reshape(len(Z), -1)))
    return np.mean(predicted != truth), fit, predict


def segmented(segmenter, estimator, seed, data):
    """Return error, growing and prediction time of a model of subwindows."""
    X, y, Z, truth = data
    model = SegmentClassifier(segmenter, estimator, random_state=seed)
    model.fit(X[:2], y[:2] if y[0] != y[1] else np.arange(2))  # for its segmenter and its seed
    images = model.segmenter_.check(X)
    _, cutting = timed(lambda: list(model._batches(images)))
    _, fit = timed(lambda: model.fit(X, y))
    predicted, predict = timed(lambda: model.predict(Z))
    return np.mean(predicted != truth), fit - cutting, predict


def rows_of(name, split, n_segments, side_range, max_features, seeds):
    """Return the rows of a table."""
    subwindows = RandomSubwindows(n_segments, side_range=side_range)
    what = f"{n_segments} subwindows"
    methods = {
        "1-NN, whole images": lambda seed, data: whole(KNeighborsClassifier(1), seed, data),
        "scikit-learn ExtraTrees, 100 trees, whole images": lambda seed, data: whole(
            ExtraTreesClassifier(100, max_features=max_features), seed, data
        ),
        f"scikit-learn ExtraTrees, {what}": lambda seed, data: segmented(
            subwindows, ExtraTreesClassifier(10, max_features=max_features), seed, data
        ),
        f"OKExtraTrees, Dirac kernel, {what}": lambda seed, data: segmented(
            subwindows, OKExtraTrees(10, max_features=max_features), seed, data
        ),
    }
    rows = []
    for method, run in methods.items():
        once = "1-NN" in method or method.startswith("scikit-learn ExtraTrees, " + what)
        used = seeds[:1] if once else seeds
        results = [np.mean([run(seed, data) for data in split()], axis=0) for seed in used]
        errors, fit, predict = np.transpose(results)
        rows.append([method, spread(100 * errors), f"{fit.mean():.2f}", f"{predict.mean():.2f}"])
        print(name, rows[-1], flush=True)
    return rows


def main() -> None:
    """Print the tables."""
    machine.fix_threads()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["orl", "usps"], nargs="+", default=["orl", "usps"])
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--orl-segments", type=int, default=500)
    parser.add_argument("--usps-segments", type=int, default=50)
    options = parser.parse_args()
    seeds = range(options.seeds)
    if "orl" in options.data:
        orl = rows_of("ORL", faces, options.orl_segments, (0.25, 1.0), 28, seeds)
        report("ORL faces", HEADER, orl)
    if "usps" in options.data:
        usps = rows_of("USPS", digits, options.usps_segments, (0.7, 1.0), 28, seeds)
        report("USPS digits", HEADER, usps)


if __name__ == "__main__":
    main()
