"""okforest and drforest: distributional random forests, which also predict weights.

Both grow best-split trees on bootstrap samples, with the same fraction of inputs at every node, at
least five samples in a leaf, and no honest splitting. The CART criterion of drforest corresponds to
our linear kernel. Its MMD criterion draws 128 random features of a Gaussian kernel at every node,
where our RBF kernel is exact.
"""

import argparse
from typing import Any

from benchmarks import data, machine
from benchmarks.compare.protocol import Comparison, Row, compare, make_parser

from okforest import OKRandomForest
from okforest.kernels import Linear, OutputKernel

try:
    from drforest import DistributionalRandomForest
except ImportError as error:
    DistributionalRandomForest, reason = None, f"drforest cannot be imported ({error})"
else:
    reason = ""

MAX_FEATURES = 0.1  # fraction of inputs tried at every node
MIN_SAMPLES_LEAF = 5


def models(kernel: Any, criterion: str, trees: int) -> tuple[Any, Any]:
    """Return two forests that grow the same kind of trees."""
    ours = OKRandomForest(
        trees,
        kernel=kernel,
        max_features=MAX_FEATURES,
        min_samples_leaf=MIN_SAMPLES_LEAF,
        random_state=0,
        n_jobs=1,
    )
    if DistributionalRandomForest is None:
        return ours, None
    theirs = DistributionalRandomForest(
        criterion=criterion,
        n_estimators=trees,
        subsample=1.0,
        bootstrap=True,
        min_samples_leaf=MIN_SAMPLES_LEAF,
        alpha=0.0,
        honesty_fraction=0.0,
        colsample=MAX_FEATURES,
        random_state=0,
    )
    return ours, theirs


def fit(name: str, load: Any, kernel: Any, criterion: str, trees: int) -> Row:
    """Fit both forests."""

    def prepare():
        X, Y = load()
        ours, theirs = models(kernel, criterion, trees)
        return lambda: ours.fit(X, Y), None if theirs is None else lambda: theirs.fit(X, Y)

    return Row(name, prepare, skipped=reason)


def weights(name: str, load: Any, n_test: int, trees: int) -> Row:
    """Predict the weights of the training outputs."""

    def prepare():
        X, Y = load()
        sides = [model and model.fit(X, Y) for model in models(Linear(), "cart", trees)]

        def predict(model: Any) -> None:
            model.predict_weights(X[:n_test])

        ours, theirs = sides
        return lambda: predict(ours), None if theirs is None else lambda: predict(theirs)

    return Row(name, prepare, skipped=reason)


def rows(options: argparse.Namespace) -> list[Row]:
    """Return the rows."""
    trees = options.trees
    n_scalar = min(2000, options.samples or 2000)
    n = min(800, options.samples or 800)
    d = data.halves(1)[1].shape[1]

    def scalar():
        X, Y = data.smooth(n_scalar, 128, 1)
        return X, Y[:, 0]

    def images():
        return data.halves(n)

    rbf: OutputKernel | str = "rbf"
    return [
        fit(f"CART, {trees} trees, N={n_scalar}, 1 output", scalar, Linear(), "cart", trees),
        fit(f"CART, {trees} trees, N={n}, {d} outputs", images, Linear(), "cart", trees),
        fit(f"RBF kernel / MMD, {trees} trees, N={n}, {d} outputs", images, rbf, "mmd", trees),
        weights(f"weights of {min(n, 500)} rows, {trees} trees, N={n}", images, min(n, 500), trees),
    ]


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    names = f"{data.halves_name()}, and for one output a smooth function of 128 inputs"
    compare(Comparison("drforest", "drforest", names, rows(options)), options)


if __name__ == "__main__":
    main()
