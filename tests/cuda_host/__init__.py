"""A device for tests: the kernels of the GPU, compiled for the host."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from okforest.engine.cuda.layout import SOURCES

HERE = Path(__file__).parent


def source():
    """Return the kernels, with the emulated device before them and their table after them."""
    from okforest.engine import cuda

    folder = Path(cuda.__file__).parent
    parts = [HERE / "device.cuh", *(folder / name for name in SOURCES), HERE / "launch.cu"]
    return "".join(f'#line 1 "{part}"\n{part.read_text()}\n' for part in parts)


@functools.cache
def compiled(constants):
    """Compile the kernels with these constants, once per content."""
    code = source()
    definitions = [f"-D{name}={value}" for name, value in constants]
    key = hashlib.sha256(repr((code, definitions)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"okforest-cuda-host-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    library = folder / f"{key}.so"
    if not library.exists():
        unit = folder / f"{key}-{os.getpid()}.cpp"
        unit.write_text(code)
        part = unit.with_suffix(".so")
        command = ["g++", "-std=c++20", "-O2", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
        subprocess.run([*command, *definitions, "-o", part, unit], check=True)
        part.replace(library)
        unit.unlink()
    return ctypes.CDLL(library)


class HostKernels:
    def __init__(self, library, shared):
        self.library, self.shared = library, shared

    def launch(self, name, grid, threads, first, *rest):
        arrays = [first, *(value for value in rest if isinstance(value, np.ndarray))]
        numbers = [int(value) for value in rest if not isinstance(value, np.ndarray)]
        pointers = [
            array.ctypes.data_as(ctypes.c_void_p)
            for array in [*arrays, None][:2]
            if array is not None
        ]
        pointers += [None] * (2 - len(pointers))
        numbers = (ctypes.c_int * 3)(*numbers, *[0] * (3 - len(numbers)))
        failed = self.library.launch(name.encode(), *grid, threads, *pointers, numbers)
        assert not failed, name


class HostDevice:
    """Stands for :class:`okforest.engine.cuda.device.Device`, with NumPy arrays."""

    xp = np
    n_processors = 2

    def __init__(self, memory=2**33):
        self.memory = memory

    def kernels(self, constants, shared):
        return HostKernels(compiled(tuple(constants.items())), shared)

    def address(self, array):
        return array.ctypes.data

    def upload(self, array):
        return array

    def start_copies(self, pairs):
        for array, out in pairs:
            np.copyto(out, array)
        return []

    def to_host(self, array):
        return array

    def free_memory(self):
        return self.memory


available = shutil.which("g++") is not None
