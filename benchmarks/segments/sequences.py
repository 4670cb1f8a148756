"""Promoters of E. coli by windows of letters, beside logistic regression on k-mers.

Ten-fold cross-validation, the same folds for every method, repeated with three shuffles. Errors in
per cent are means over shuffles, with half of their range; times are CPU times of a whole
cross-validation. Nothing was tuned on these folds.
"""

import numpy as np
from benchmarks import machine
from benchmarks.segments.measure import SEEDS, report, spread, timed
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from okforest import OKExtraTrees
from okforest.datasets import fetch_promoters
from okforest.segments import KmerWindows, SegmentClassifier


def letters(sequences):
    """Return sequences of one length as an array of letters."""
    return np.array([list(sequence) for sequence in sequences])


def kmers(k):
    """Return logistic regression on the counts of strings of k letters."""
    counts = CountVectorizer(analyzer="char", ngram_range=(k, k))
    return make_pipeline(counts, LogisticRegression(max_iter=1000))


def aligned(model):
    """Return a model on which letter is at each position."""
    return make_pipeline(FunctionTransformer(letters), OneHotEncoder(), model)


METHODS = {
    "logistic regression, 3-mers": lambda seed: kmers(3),
    "logistic regression, 4-mers": lambda seed: kmers(4),
    "logistic regression, 5-mers": lambda seed: kmers(5),
    "logistic regression, letter at each position": lambda seed: aligned(
        LogisticRegression(max_iter=1000)
    ),
    "scikit-learn ExtraTrees, letter at each position, 100 trees": lambda seed: aligned(
        ExtraTreesClassifier(100, random_state=seed)
    ),
    "SegmentClassifier, windows of 6, 10 trees": lambda seed: SegmentClassifier(
        KmerWindows(6), random_state=seed
    ),
    "SegmentClassifier, windows of 6, 100 trees": lambda seed: SegmentClassifier(
        KmerWindows(6), OKExtraTrees(100), random_state=seed
    ),
    "SegmentClassifier, windows of 6, 100 trees, by confidence": lambda seed: SegmentClassifier(
        KmerWindows(6), OKExtraTrees(100), combine="confidence", random_state=seed
    ),
    "SegmentClassifier, windows of 6 without position, 100 trees": lambda seed: SegmentClassifier(
        KmerWindows(6, position=False), OKExtraTrees(100), random_state=seed
    ),
    "SegmentClassifier, windows of 20, 100 trees": lambda seed: SegmentClassifier(
        KmerWindows(20), OKExtraTrees(100), random_state=seed
    ),
}


def main() -> None:
    """Print the table."""
    machine.fix_threads()
    data = fetch_promoters()
    X, y = data.sequences.tolist(), data.target
    rows = []
    for method, make in METHODS.items():
        errors, times = [], []
        for seed in SEEDS:
            folds = StratifiedKFold(10, shuffle=True, random_state=seed)
            predicted, seconds = timed(
                lambda make=make, seed=seed, folds=folds: cross_val_predict(
                    make(seed), X, y, cv=folds
                )
            )
            errors.append(100 * np.mean(predicted != y))
            times.append(seconds)
        rows.append([method, spread(errors), f"{np.mean(times):.2f}"])
        print(rows[-1], flush=True)
    report("Promoters", ["method", "error, %", "time, s"], rows)


if __name__ == "__main__":
    main()
