"""Compiles the kernels for GPUs by NVRTC, which needs no GPU. `make lint` runs it.

Every file of kernels is compiled with the constants of a few plans that differ in what they define:
types of inputs, missing values, weights, bootstrap samples, and numbers of columns and features.
"""

import ctypes
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError, files
from typing import Any

import numpy as np

from okforest.engine import GrowthPlan, GrowthRules
from okforest.engine.cuda import Rounds
from okforest.engine.cuda.best import BestGrower
from okforest.engine.cuda.device import LEAST_CAPABILITY, source_of
from okforest.engine.cuda.growing import Grower
from okforest.engine.cuda.layout import SOURCES
from okforest.engine.cuda.predicting import PREDICT_SOURCES

PACKAGE = "nvidia-cuda-nvrtc"
CASES: tuple[dict[str, Any], ...] = (
    {},
    {"dtype": np.float64, "missing": True, "weighted": True},
    {"dtype": np.uint8, "n_draws": 50, "rank": 300, "max_features": 9},
)


class Compiled(Exception):
    """The kernels were compiled: nothing else of the growth is needed."""


class CompilingDevice:
    """Compiles the kernels that are asked for, and then stops."""

    xp = np
    n_processors = 132

    def __init__(self, nvrtc: ctypes.CDLL):
        self.nvrtc = nvrtc

    def free_memory(self) -> int:
        """Return enough memory for every plan."""
        return 2**36

    def kernels(
        self, constants: dict[str, int], shared: dict[str, int], sources: tuple[str, ...] = SOURCES
    ) -> None:
        """Compile the kernels of some files, and raise an exception that ends the growth."""
        options = [f"-arch=compute_{LEAST_CAPABILITY}", "-std=c++17"]
        options += [f"-D{name}={value}" for name, value in constants.items()]
        compile_source(self.nvrtc, source_of(sources), options)
        raise Compiled


def load_nvrtc() -> ctypes.CDLL:
    """Load the compiler from its wheel."""
    try:
        paths = [str(file.locate()) for file in files(PACKAGE) or ()]
    except PackageNotFoundError:
        sys.exit(f"{PACKAGE} is not installed; run pip install {PACKAGE}, or make lint")
    libraries = sorted(path for path in paths if ".so" in path and ".alt." not in path)
    for path in libraries:  # that of built-in functions comes first, and the compiler needs it
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    return library


def compile_source(nvrtc: ctypes.CDLL, code: str, options: list[str]) -> None:
    """Compile a program; end with the compiler's log if that fails."""
    program = ctypes.c_void_p()
    arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"kernels", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
    if failed:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"{' '.join(options)}\n{log.value.decode()}")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def make_plan(
    dtype: Any = np.float32,
    missing: bool = False,
    weighted: bool = False,
    n_draws: int = 0,
    rank: int = 3,
    max_features: int = 3,
    random_splits: bool = True,
) -> GrowthPlan:
    """Return a plan on random data."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (50, 9)).astype(dtype)
    if missing:
        X[::7, 0] = np.nan
    return GrowthPlan(
        X=X,
        outputs=rng.normal(size=(50, rank)),
        gram=False,
        rules=GrowthRules(random_splits=random_splits, max_features=max_features),
        row_weight=rng.random(50) + 0.5 if weighted else np.ones(50),
        n_categories=np.zeros(9, dtype=np.int32),
        seed=0,
        n_draws=n_draws,
    )


def main() -> None:
    """Compile all kernels."""
    device = CompilingDevice(load_nvrtc())
    n_compiled = 0
    for case in CASES:
        plan, best = make_plan(**case), make_plan(**case, random_splits=False)
        size = {"INPUT_BYTES": plan.X.dtype.itemsize}
        for compile_kernels in (
            partial(Grower, device, plan),
            partial(BestGrower, device, best),
            partial(Rounds, device, plan, 0.1),
            partial(device.kernels, size, {}, PREDICT_SOURCES),
        ):
            try:
                compile_kernels()
            except Compiled:
                n_compiled += 1
    assert n_compiled == 4 * len(CASES), f"only {n_compiled} programs were compiled"
    print(f"compiled {n_compiled} programs for compute capability {LEAST_CAPABILITY / 10}")


if __name__ == "__main__":
    main()
