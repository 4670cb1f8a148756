"""A device for tests: the kernels of the GPU, compiled for the host with an emulated device."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from cuda_host import arrays
from okforest.engine import cuda
from okforest.engine.cuda.best import BEST_SOURCES
from okforest.engine.cuda.layout import SOURCES
from okforest.engine.cuda.predicting import PREDICT_SOURCES
from okforest.engine.cuda.rounds import ROUND_SOURCES

HERE = Path(__file__).parent
TABLES = {  # kernels by name
    SOURCES: "launch.cu",
    ROUND_SOURCES: "launch_rounds.cu",
    BEST_SOURCES: "launch_best.cu",
    PREDICT_SOURCES: "launch_predict.cu",
}
KNOWN = ("PLAIN", "ANY_MISSING", "NATURAL", "BOOTSTRAP", "FEW", "N_PASSES")
SHARED_BYTES = 2**20  # device.cuh has the same number
available = shutil.which("g++") is not None


def source(sources):
    """Return the kernels, with the emulated device before them and their table after them."""
    folder = Path(cuda.__file__).parent
    parts = [HERE / "device.cuh", *(folder / name for name in sources), HERE / TABLES[sources]]
    return "".join(f'#line 1 "{part}"\n{part.read_text()}\n' for part in parts)


@functools.cache
def compiled(constants, sources):
    """Compile the kernels with these constants, once per content."""
    code = source(sources)
    definitions = [f"-D{name}={value}" for name, value in constants]
    key = hashlib.sha256(repr((code, definitions)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"okforest-cuda-host-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    library = folder / f"{key}.so"
    if not library.exists():
        unit = folder / f"{key}-{os.getpid()}.cpp"
        unit.write_text(code)
        part = unit.with_suffix(".so")
        command = ["g++", "-std=c++20", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
        subprocess.run([*command, *definitions, "-o", part, unit], check=True)
        part.replace(library)
        unit.unlink()
    return ctypes.CDLL(library)


class HostKernels:
    """Stands for :class:`okforest.engine.cuda.device.Kernels`."""

    def __init__(self, library, shared):
        self.library, self.shared = library, shared
        memory = (ctypes.c_ubyte * SHARED_BYTES).in_dll(library, "memory")
        self.memory = np.frombuffer(memory, dtype=np.uint8)

    def launch(self, name, grid, threads, first, *rest):
        """Run a kernel, and check that it has not used more shared memory than it was given."""
        others = [value for value in rest if isinstance(value, np.ndarray)]
        numbers = [int(value) for value in rest if not isinstance(value, np.ndarray)]
        second = others[0].ctypes.data if others else None
        beyond = self.memory[self.shared.get(name, 0) :]
        beyond[:] = 0xA5
        failed = self.library.launch(
            name.encode(),
            *grid,
            threads,
            ctypes.c_void_p(first.ctypes.data),
            ctypes.c_void_p(second),
            (ctypes.c_int * 3)(*numbers),
        )
        assert not failed, f"there is no kernel {name}"
        assert (beyond == 0xA5).all(), f"{name} uses more shared memory than it has"


class HostDevice:
    """Stands for :class:`okforest.engine.cuda.device.Device`, with NumPy arrays."""

    xp = np
    n_processors = 2

    def __init__(self, memory=2**33, *, backwards=False, known=False):
        self.memory, self.backwards, self.known = memory, backwards, known

    def kernels(self, constants, shared, sources=SOURCES):
        if not self.known:  # one compilation for all plans
            constants = {name: constants[name] for name in constants if name not in KNOWN}
        if self.backwards:
            constants = {**constants, "BACKWARDS": 1}
        return HostKernels(compiled(tuple(constants.items()), sources), shared)

    def address(self, array):
        return array.ctypes.data

    def empty_on_host(self, n, dtype):
        return np.empty(n, dtype)

    def start_copies(self, pairs):
        for array, out in pairs:
            np.copyto(out, array)
        return []

    def to_host(self, array):
        return array

    def free_memory(self):
        return self.memory


class ArrayDevice(HostDevice):
    """The same with arrays that NumPy does not take; install the stand-in for CuPy first."""

    def __init__(self, memory=2**33):
        super().__init__(memory)
        self.xp = arrays.make_module()

    def address(self, array):
        return array.host.ctypes.data

    def to_host(self, array):
        return array.get()

    def start_copies(self, pairs):
        return super().start_copies([(array.host, out) for array, out in pairs])
