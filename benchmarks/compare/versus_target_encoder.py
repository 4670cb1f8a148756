"""okforest's kernel target encoding and scikit-learn's TargetEncoder in a pipeline.

Five columns of 1,000 categories, whose effects on the output add up. Both sides take the same
frame, encode its columns and grow the same number of trees, with all columns at every node
(scikit-learn's default) or a random subset of them. The scores are for new rows.
"""

import argparse
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from benchmarks import machine
from benchmarks.compare.protocol import Comparison, Row, compare, make_parser
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from okforest import OKExtraTrees, OKRandomForest

N_COLUMNS, N_LEVELS = 5, 1000
N_TEST = 5000
NOISE = 0.3  # standard deviation; the effects of all columns have 1


@cache
def table(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return n training rows, followed by the test rows."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, N_LEVELS, (n + N_TEST, N_COLUMNS))
    effects = rng.standard_normal((N_COLUMNS, N_LEVELS)) / np.sqrt(N_COLUMNS)
    y = effects[np.arange(N_COLUMNS), levels].sum(axis=1)
    y += NOISE * rng.standard_normal(len(levels))
    X = {f"x{j}": pd.Categorical([f"k{k}" for k in column]) for j, column in enumerate(levels.T)}
    return pd.DataFrame(X), y


def row(name: str, n: int, ours: Any, theirs: Any) -> Row:
    """Fit both; ``theirs`` comes after a TargetEncoder."""

    def prepare():
        X, y = (part[:n] for part in table(n))
        folds = KFold(5, shuffle=True, random_state=0)
        try:
            encoder = TargetEncoder(cv=folds)
            encoder.fit_transform(X[:100], y[:100])
        except ValueError:  # scikit-learn before 1.9
            encoder = TargetEncoder(random_state=0)
        pipeline = make_pipeline(encoder, theirs)
        return lambda: ours.fit(X, y), lambda: pipeline.fit(X, y)

    def score(model: Any) -> float:
        X, y = (part[n:] for part in table(n))
        return r2_score(y, model.predict(X))

    return Row(name, prepare, score)


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    n = min(10_000, options.samples or 10_000)
    common = {"n_estimators": options.trees, "random_state": 0, "n_jobs": 1}
    size = f"{N_COLUMNS} × {N_LEVELS:,} categories, N={n:,}, {options.trees} trees"
    return [
        row(
            f"{name}, {columns}, {size}",
            n,
            ours(max_features=max_features, **common),
            theirs(max_features=max_features, **common),
        )
        for name, ours, theirs in (
            ("random forest", OKRandomForest, RandomForestRegressor),
            ("extra-trees", OKExtraTrees, ExtraTreesRegressor),
        )
        for columns, max_features in (("all columns", 1.0), ("√p columns", "sqrt"))
    ]


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    data = f"sums of {N_COLUMNS} effects and noise; {N_TEST:,} test rows"
    compare(Comparison("TargetEncoder", "scikit-learn", data, rows(options)), options)


if __name__ == "__main__":
    main()
