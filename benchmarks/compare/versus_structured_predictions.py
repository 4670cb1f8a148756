"""okforest and structured-predictions, another implementation of output kernel trees (OK3).

The package is imported as ``stpredictions``. Its source distribution on PyPI lacks the Cython files
that it is built from, and its wheels are for older Python versions. If it is not installed, its
side is skipped.
"""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, make_parser

from okforest import OKBagging, OKExtraTrees, OKTree
from okforest.kernels import RBF

try:
    from stpredictions.models.OK3._classes import OK3Regressor
    from stpredictions.models.OK3._forest import ExtraOKTreesRegressor, RandomOKForestRegressor
except ImportError as error:
    installed, reason = False, f"structured-predictions cannot be imported ({error})"
else:
    installed, reason = True, ""


def fit(kind: str, n: int, trees: int, ours: Any, theirs: Callable[[Any], Any]) -> Row:
    """Fit both to the lower halves of images."""

    def prepare():
        X, Y = data.halves(n)
        kernel = RBF().resolve(Y)
        ours.set_params(kernel=kernel)
        if not installed:
            return lambda: ours.fit(X, Y), None
        model = theirs(("gaussian", 0.5 / kernel.sigma**2))
        return lambda: ours.fit(X, Y), lambda: model.fit(X, Y)

    name = kind if trees == 1 else f"{kind}, {trees} trees"
    return Row(f"{name}, N={n}, RBF", prepare, skipped=reason)


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    trees = options.trees
    n = min(800, options.samples or 800)
    n_tree = min(3200, options.samples or 3200, len(data.halves(3200)[0]))
    forest = {"n_estimators": trees, "random_state": 0, "n_jobs": 1}
    all_features = forest | {"max_features": None}
    table = [
        fit(
            "extra-trees, K=√p",
            n,
            trees,
            OKExtraTrees(**forest),
            lambda kernel: ExtraOKTreesRegressor(kernel=kernel, max_features="sqrt", **forest),
        ),
        fit(
            "extra-trees, K=p",
            n,
            trees,
            OKExtraTrees(**all_features),
            lambda kernel: ExtraOKTreesRegressor(kernel=kernel, **all_features),
        ),
        fit(
            "bagging",
            n,
            trees,
            OKBagging(**forest),
            lambda kernel: RandomOKForestRegressor(kernel=kernel, **all_features),
        ),
    ]
    for m in sorted({n, n_tree}):
        table.append(
            fit(
                "one best-split tree",
                m,
                1,
                OKTree(search_rank=None, random_state=0),
                lambda kernel: OK3Regressor(kernel=kernel, random_state=0),
            )
        )
    return table


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    names = f"{data.halves_name()}, upper halves → lower halves"
    comparison = Comparison(
        "structured-predictions", "structured-predictions", names, rows(options)
    )
    compare(comparison, options)


if __name__ == "__main__":
    main()
