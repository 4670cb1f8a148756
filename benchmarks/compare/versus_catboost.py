"""okforest and CatBoost's multi-output regression (MultiRMSE).

The models differ (CatBoost boosts shallow oblivious trees on binned inputs), so the table also has
the R² on test data: with the same number of trees, neither time nor score alone decides between
them.
"""

import argparse
from typing import Any

from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, few_trees, make_parser
from sklearn.metrics import r2_score

from okforest import OKBoost, OKExtraTrees

try:
    from catboost import CatBoostRegressor
except ImportError as error:
    CatBoostRegressor, reason = None, f"catboost cannot be imported ({error})"
else:
    reason = ""

N_TEST = 1000
DEPTH = 4
RATE = 0.1


def fit(name: str, n: int, ours: Any, trees: int, **params: Any) -> Row:
    """Fit both to the lower halves of images; score them on test images."""

    def prepare():
        X, Y = data.halves(n)
        if CatBoostRegressor is None:
            return lambda: ours.fit(X, Y), None
        theirs = CatBoostRegressor(
            loss_function="MultiRMSE",
            iterations=trees,
            thread_count=1,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
            **params,
        )
        return lambda: ours.fit(X, Y), lambda: theirs.fit(X, Y)

    def score(model: Any) -> float:
        X, Y = (part[-N_TEST:] for part in data.halves(n + N_TEST))
        return r2_score(Y, model.predict(X), multioutput="variance_weighted")

    return Row(f"{name}, {trees} trees, N={n}", prepare, score, skipped=reason)


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    n = min(800, options.samples or 800)
    trees = few_trees(options)
    theirs = {"depth": DEPTH, "learning_rate": RATE}
    small = {"learning_rate": RATE} | {
        "max_splits": 2**DEPTH - 1,
        "max_depth": DEPTH,
        "random_state": 0,
    }
    boosted = [
        fit(f"{name} / boosting, depth {DEPTH}", n, OKBoost(trees, **small | more), trees, **theirs)
        for name, more in (
            ("boosted trees", {}),
            ("boosted extra-trees", {"splitter": "random", "max_features": "sqrt"}),
        )
    ]
    forest = OKExtraTrees(trees, random_state=0, n_jobs=1)
    return [*boosted, fit("a forest of extra-trees / boosting", n, forest, trees)]


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    d = data.halves(1)[1].shape[1]
    names = f"{data.halves_name()}, upper halves → lower halves ({d} outputs)"
    compare(Comparison("CatBoost", "catboost", names, rows(options)), options)
    if not options.memory_of:
        print(
            "\nCatBoost has its default parameters, unless the row gives a depth. A boosted model "
            "needs more trees than a forest: the scores of the full run, with 100 trees, mean more."
        )


if __name__ == "__main__":
    main()
