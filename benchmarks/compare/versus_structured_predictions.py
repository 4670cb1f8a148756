"""okforest beside structured-predictions, another implementation of output kernel trees (OK3).

The package is imported as ``stpredictions``. Its source distribution on PyPI lacks the Cython files
it is built from, and its wheels are for older Pythons; where it is absent, its side is skipped, and
what it took in an earlier run is told apart from what is measured here.
"""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, parser_of

from okforest import OKBagging, OKExtraTrees, OKTree
from okforest.kernels import RBF

try:
    from stpredictions.models.OK3._classes import OK3Regressor
    from stpredictions.models.OK3._forest import ExtraOKTreesRegressor, RandomOKForestRegressor
except ImportError as error:
    installed, why = False, f"structured-predictions cannot be imported ({error})"
else:
    installed, why = True, ""

# CPU seconds of structured-predictions, 100 trees or a single one, on USPS digits with the RBF
# kernel; measured once, earlier, in another run on another day. By row and number of samples.
EARLIER = {
    ("extra-trees, K=√p", 800): 4.0,
    ("extra-trees, K=p", 800): 31.6,
    ("bagging", 800): 19.3,
    ("one best-split tree", 800): 0.33,
    ("one best-split tree", 3200): 15.6,
}


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

    figure = EARLIER.get((kind, n))
    skipped = why
    if why and figure is not None:
        per = "one tree" if kind == "one best-split tree" else "100 trees"
        skipped += (
            f". In an earlier run, not in this one, it took {figure:g} s of CPU time for {per} "
            "(USPS digits): no ratio is formed with it"
        )
    name = kind if trees == 1 else f"{kind}, {trees} trees"
    return Row(f"{name}, N={n}, RBF", prepare, skipped=skipped)


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    trees = options.trees
    n = min(800, options.samples or 800)
    n_tree = min(3200, options.samples or 3200, len(data.halves(3200)[0]))
    forest = {"n_estimators": trees, "random_state": 0, "n_jobs": 1}
    everything = forest | {"max_features": None}
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
            OKExtraTrees(**everything),
            lambda kernel: ExtraOKTreesRegressor(kernel=kernel, **everything),
        ),
        fit(
            "bagging",
            n,
            trees,
            OKBagging(**forest),
            lambda kernel: RandomOKForestRegressor(kernel=kernel, **everything),
        ),
    ]
    for m in sorted({n, n_tree}):
        table.append(
            fit(
                "one best-split tree",
                m,
                1,
                OKTree(random_state=0),
                lambda kernel: OK3Regressor(kernel=kernel, random_state=0),
            )
        )
    return table


def main() -> None:
    """Print the table."""
    options = parser_of(__doc__).parse_args()
    machine.fix_threads()
    names = f"{data.halves_name()}, upper halves → lower halves"
    comparison = Comparison(
        "structured-predictions", "structured-predictions", names, rows(options)
    )
    compare(comparison, options)


if __name__ == "__main__":
    main()
