"""okforest with each instruction set that this machine has, on the same tasks and one thread."""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks import data, machine
from benchmarks.compare.protocol import (
    few_trees,
    format_seconds,
    make_parser,
    no_row,
    time_alternately,
)

from okforest import OKBagging, OKExtraTrees
from okforest._utils.report import Table
from okforest.engine.cpu import SIMD_LEVELS, choose_simd_level, simd_level
from okforest.kernels import RBF


def tasks(options: argparse.Namespace) -> dict[str, Callable[[], object]]:
    """Return fits by name."""
    trees, few = options.trees, few_trees(options)

    def at_most(n: int) -> int:
        return min(n, options.samples or n)

    def extra_trees(n: int, X: Any, Y: Any, **more: Any) -> Callable[[], object]:
        return lambda: OKExtraTrees(n, random_state=0, n_jobs=1, **more).fit(X, Y)

    n = at_most(800)
    X, Y = data.halves(n)
    kernel = RBF().resolve(Y)
    rbf, every = {"kernel": kernel}, {"max_features": None}
    bagging = OKBagging(few, kernel=kernel, random_state=0, n_jobs=1)
    fits = {
        f"extra-trees, K=√p, N={n}, RBF": extra_trees(5 * trees, X, Y, **rbf),
        f"extra-trees, K=p, N={n}, RBF": extra_trees(few, X, Y, **rbf, **every),
        f"extra-trees, K=√p, N={n}, 128 outputs": extra_trees(trees, X, Y),
        f"extra-trees, K=p, N={n}, 128 outputs": extra_trees(trees, X, Y, **every),
        f"bagging, N={n}, RBF": lambda: bagging.fit(X, Y),
    }
    for n, q in ((at_most(5000), 256), (at_most(20000), 64)):
        fits[f"extra-trees, K=√p, N={n}, {q} outputs"] = extra_trees(trees, *data.smooth(n, 128, q))
    return fits


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    fits = tasks(options)
    chosen = {name: fit for name, fit in fits.items() if options.only in name}
    if not chosen:
        print(no_row(options.only, list(fits)))
        return
    best = simd_level()
    levels = [level for level in SIMD_LEVELS if choose_simd_level(level)]
    rows = []
    for name, fit in chosen.items():

        def with_level(level, fit=fit):
            return lambda: (choose_simd_level(level), fit())

        sides = [with_level(level) for level in levels]
        times = time_alternately(sides, options.repeats, options.patience)
        seconds = [min(cpu for _, cpu in of_level) for of_level in times]
        ratios = [f"{seconds[0] / other:.2f}" for other in seconds[1:]]
        rows.append([name, *map(format_seconds, seconds), *ratios])
    choose_simd_level(best)
    print("## Instruction sets\n")
    print("CPU times. The last columns are speeds relative to the best instruction set.\n")
    header = ["task", *levels, *(f"{level} / {levels[0]}" for level in levels[1:])]
    print(Table(header, rows).markdown())


if __name__ == "__main__":
    main()
