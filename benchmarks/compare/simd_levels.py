"""okforest with each instruction set that this machine has, on the same tasks and one thread."""

from collections.abc import Callable

from benchmarks import data, machine
from benchmarks.compare.protocol import format_seconds, make_parser, time_alternately

from okforest import OKBagging, OKExtraTrees
from okforest._report import Table
from okforest.engine.cpu import choose_simd_level, simd_level


def tasks(trees: int) -> dict[str, Callable[[], object]]:
    """Return fits by name."""
    options = {"random_state": 0, "n_jobs": 1}
    X, Y, kernel, _, _ = data.rbf_halves(800)
    wide, narrow = data.smooth(5000, 128, 256), data.smooth(20000, 128, 64)

    def extra_trees(n, X, Y, **more):
        return lambda: OKExtraTrees(n, **options, **more).fit(X, Y)

    return {
        "extra-trees, K=√p, N=800, RBF": extra_trees(5 * trees, X, Y, kernel=kernel),
        "extra-trees, K=p, N=800, RBF": extra_trees(
            trees // 4, X, Y, kernel=kernel, max_features=None
        ),
        "extra-trees, K=√p, N=800, 128 outputs": extra_trees(trees, X, Y),
        "extra-trees, K=p, N=800, 128 outputs": extra_trees(trees, X, Y, max_features=None),
        "bagging, N=800, RBF": lambda: OKBagging(trees // 4, kernel=kernel, **options).fit(X, Y),
        "extra-trees, K=√p, N=5000, 256 outputs": extra_trees(trees, *wide),
        "extra-trees, K=√p, N=20000, 64 outputs": extra_trees(trees, *narrow),
    }


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__).parse_args()
    machine.fix_threads()
    best = simd_level()
    levels = [level for level in ("avx512", "avx2", "baseline") if choose_simd_level(level)]
    rows = []
    for name, fit in tasks(options.trees).items():

        def with_level(level, fit=fit):
            return lambda: (choose_simd_level(level), fit())

        sides = [with_level(level) for level in levels]
        times = time_alternately(sides, options.repeats, options.patience)
        seconds = [min(cpu for _, cpu in of_level) for of_level in times]
        ratios = [f"{seconds[0] / other:.2f}" for other in seconds[1:]]
        rows.append([name, *map(format_seconds, seconds), *ratios])
    choose_simd_level(best)
    print("### Instruction sets\n")
    print("CPU times. The last columns are speeds relative to the best instruction set.\n")
    header = ["task", *levels, *(f"{level} / {levels[0]}" for level in levels[1:])]
    print(Table(header, rows).markdown())


if __name__ == "__main__":
    main()
