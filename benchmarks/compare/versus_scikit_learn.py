"""okforest and scikit-learn's trees and forests, on the same outputs.

For kernel outputs, scikit-learn fits multi-output trees to all eigen-features of the output Gram
matrix, so that its trees are exact. Both sides grow the same kind of trees. The eigendecomposition
is not counted (its time is printed separately), while the times of okforest include the Gram matrix
and everything derived from it.
"""

import argparse
from typing import Any

from benchmarks import data, machine
from benchmarks.compare.large import measure_large
from benchmarks.compare.protocol import (
    Comparison,
    Row,
    compare,
    few_trees,
    format_seconds,
    make_parser,
)
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from okforest import OKBagging, OKExtraTrees, OKRandomForest, OKTree

FORESTS = (
    ("extra-trees", OKExtraTrees, ExtraTreesRegressor),
    ("random forest", OKRandomForest, RandomForestRegressor),
)


def rbf_fit(name: str, n: int, ours: Any, theirs: Any) -> Row:
    """Fit okforest with the RBF kernel and scikit-learn to the eigen-features."""

    def prepare():
        X, Y, kernel, phi, _ = data.rbf_halves(n)
        ours.set_params(kernel=kernel)
        return lambda: ours.fit(X, Y), lambda: theirs.fit(X, phi)

    return Row(f"{name}, N={n}, RBF", prepare)


def vector_fit(name: str, load: Any, ours: Any, theirs: Any) -> Row:
    """Fit both to vectors or numbers."""

    def prepare():
        X, Y = load()
        return lambda: ours.fit(X, Y), lambda: theirs.fit(X, Y)

    return Row(name, prepare)


def prediction(n: int, n_test: int, trees: int) -> Row:
    """Predict images, as the training outputs nearest to the predictions in feature space."""

    def prepare():
        X, Y, kernel, phi, _ = data.rbf_halves(n)
        test = data.halves(n + n_test)[0][-n_test:]
        forest = {"n_estimators": trees, "max_features": "sqrt", "random_state": 0, "n_jobs": 1}
        ours = OKExtraTrees(kernel=kernel, **forest).fit(X, Y)
        theirs = ExtraTreesRegressor(**forest).fit(X, phi)

        def predict_ours() -> None:
            ours.predict(test)

        def predict_theirs() -> None:
            # k(y, y) = 1 for all y, so the nearest output has the largest inner product.
            Y[(theirs.predict(test) @ phi.T).argmax(axis=1)]

        return predict_ours, predict_theirs

    return Row(f"predict {n_test} images (pre-images), {trees} trees, N={n}, RBF", prepare)


def rbf_sizes(options: argparse.Namespace) -> list[int]:
    """Return the numbers of samples with the RBF kernel; only single trees use the larger one."""
    most = min(len(data.halves(3200)[0]), options.samples or 3200)
    return sorted({min(n, most) for n in (800, 3200 if options.full else 1600)})


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows; slow ones have a quarter of the trees unless --full is given."""
    trees, few = options.trees, few_trees(options)
    many = trees if options.full else 5 * trees  # where okforest takes milliseconds per tree

    def at_most(n: int) -> int:
        return min(n, options.samples or n)

    def forest(n_trees: int, **more: Any) -> dict[str, Any]:
        return {"n_estimators": n_trees, "random_state": 0, "n_jobs": 1, **more}

    n = rbf_sizes(options)[0]
    d = data.halves(1)[1].shape[1]
    roots, all_inputs = {"max_features": "sqrt"}, {"max_features": None}
    return [
        rbf_fit(
            f"extra-trees, K=√p, {many} trees",
            n,
            OKExtraTrees(**forest(many, **roots)),
            ExtraTreesRegressor(**forest(many, **roots)),
        ),
        rbf_fit(
            f"extra-trees, K=√p, search_rank=32, {many} trees",
            n,
            OKExtraTrees(**forest(many, search_rank=32)),
            ExtraTreesRegressor(**forest(many, **roots)),
        ),
        rbf_fit(
            f"extra-trees, K=p, {few} trees",
            n,
            OKExtraTrees(**forest(few, **all_inputs)),
            ExtraTreesRegressor(**forest(few, **all_inputs)),
        ),
        rbf_fit(
            f"bagging, {few} trees",
            n,
            OKBagging(**forest(few)),
            RandomForestRegressor(**forest(few)),
        ),
        *(
            rbf_fit(
                "one best-split tree",
                m,
                OKTree(search_rank=None, random_state=0),
                DecisionTreeRegressor(random_state=0),
            )
            for m in rbf_sizes(options)
        ),
        *(
            vector_fit(
                f"extra-trees, K={k}, {trees} trees, N={n}, {d} outputs",
                lambda: data.halves(n),
                OKExtraTrees(**forest(trees, max_features=m)),
                ExtraTreesRegressor(**forest(trees, max_features=m)),
            )
            for k, m in (("√p", "sqrt"), ("p", None))
        ),
        *(
            vector_fit(
                f"extra-trees, K=√p, {trees} trees, N={at_most(n_rows)}, {q} outputs",
                lambda n_rows=n_rows, q=q: data.smooth(at_most(n_rows), 128, q),
                OKExtraTrees(**forest(trees, **roots)),
                ExtraTreesRegressor(**forest(trees, **roots)),
            )
            for n_rows, q in ((5000, 256), (20000, 64))
        ),
        *(
            vector_fit(
                f"{name}, K=√p, {trees} trees, N={at_most(5000)}, 1 output",
                lambda: (lambda X, Y: (X, Y[:, 0]))(*data.smooth(at_most(5000), 128, 1)),
                ours(**forest(trees, **roots)),
                theirs(**forest(trees, **roots)),
            )
            for name, ours, theirs in FORESTS
        ),
        *(
            vector_fit(
                f"{name}, K=√p, {few} trees, N={at_most(n_rows)}, p={p}, {share:.1%} not zero, "
                f"{q} output{'s' if q > 1 else ''}",
                lambda n_rows=n_rows, p=p, share=share, q=q: data.sparse(
                    at_most(n_rows), p, share, q
                ),
                ours(**forest(few, **roots)),
                theirs(**forest(few, **roots)),
            )
            for n_rows, p, share, q in (
                (3000, 20000, 0.001, 1),
                (3000, 20000, 0.001, 50),
                (10000, 1000, 0.05, 1),
            )
            for name, ours, theirs in FORESTS
        ),
        prediction(n, at_most(1000), many),
    ]


def main() -> None:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--large",
        action="store_true",
        help="instead, fit one large forest with okforest on 1 and 2 threads",
    )
    options = parser.parse_args()
    machine.fix_threads(okforest=2 if options.large else 1)
    if options.large:
        measure_large(options)
        return
    table = rows(options)
    names = f"{data.halves_name()}, upper halves → lower halves; smooth functions of 128 inputs; "
    names += "or sparse inputs"
    compare(Comparison("scikit-learn", "scikit-learn", names, table), options)
    if not options.memory_of:
        times = [f"{format_seconds(data.rbf_halves(n)[-1])} for N={n}" for n in rbf_sizes(options)]
        print(f"\nNot counted: the eigen-features for scikit-learn take {', '.join(times)}.")


if __name__ == "__main__":
    main()
