"""A GPU: its arrays and kernels, by CuPy. Nothing else imports it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from okforest._utils.errors import install_extra
from okforest.engine.cuda.layout import SOURCES

LEAST_CAPABILITY = 80  # products of matrices in float64
# One thread fills new memory of the host more slowly than the bus delivers.
COPY_THREADS = 8
COPY_BYTES = 2**25  # copied at a time by a thread


class NoDeviceError(RuntimeError):
    """There is no GPU that these trees can be grown on; the message says why."""


class Kernels:
    """Compiled kernels."""

    def __init__(self, module: Any, shared: dict[str, int]):
        self.module, self.shared = module, shared
        self.functions: dict[str, Any] = {}
        for name, n_bytes in shared.items():
            if n_bytes > 32 * 1024:  # with static memory, more than the default limit of 48 KiB
                self._function(name).max_dynamic_shared_size_bytes = n_bytes

    def _function(self, name: str) -> Any:
        if name not in self.functions:
            self.functions[name] = self.module.get_function(name)
        return self.functions[name]

    def launch(self, name: str, grid: tuple[int, int], threads: int, *arguments: Any) -> None:
        """Launch a kernel on records and 32-bit integers."""
        converted = [np.int32(x) if isinstance(x, int | bool) else x for x in arguments]
        shared = self.shared.get(name, 0)
        self._function(name)(grid, (threads,), tuple(converted), shared_mem=shared)


class Device:
    """The current GPU of CuPy."""

    def __init__(self) -> None:
        self.xp = _cupy()
        properties = self.xp.cuda.runtime.getDeviceProperties(self.xp.cuda.Device().id)
        self.n_processors = int(properties["multiProcessorCount"])
        self.pool = ThreadPoolExecutor(COPY_THREADS)
        self.local = threading.local()

    def kernels(
        self, constants: dict[str, int], shared: dict[str, int], sources: tuple[str, ...] = SOURCES
    ) -> Kernels:
        """Return the kernels of some files for these constants; they are compiled once."""
        return Kernels(_compiled(tuple(constants.items()), sources), shared)

    def empty_on_host(self, n: int, dtype: Any) -> Any:
        """Return a NumPy array that kernels can read and write, over the bus."""
        memory = self.xp.cuda.alloc_pinned_memory(max(1, n * np.dtype(dtype).itemsize))
        return np.frombuffer(memory, dtype=dtype, count=n)

    def address(self, array: Any) -> int:
        """Return where an array is."""
        return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)

    def start_copies(self, pairs: list[tuple[Any, Any]]) -> list[Any]:
        """Copy arrays to NumPy arrays, in the background, once the kernels so far are done.

        Blocks pass through pinned memory, which the bus writes at full speed.
        """
        cuda = self.xp.cuda
        number = cuda.Device().id
        done = cuda.get_current_stream().record()

        def copy(source: Any, target: Any) -> None:
            with cuda.Device(number):
                if not hasattr(self.local, "stream"):
                    self.local.stream = cuda.Stream(non_blocking=True)
                    self.local.pinned = self.empty_on_host(COPY_BYTES, np.uint8)
                self.local.stream.wait_event(done)
                block = self.local.pinned[: source.nbytes].view(source.dtype)
                source.get(stream=self.local.stream, out=block)
                np.copyto(target, block)

        tasks = []
        for source, target in pairs:
            step = COPY_BYTES // source.itemsize
            blocks = (slice(begin, begin + step) for begin in range(0, len(source), step))
            tasks += [self.pool.submit(copy, source[block], target[block]) for block in blocks]
        return tasks

    def to_host(self, array: Any) -> Any:
        """Return a NumPy array."""
        return self.xp.asnumpy(array)

    def free_memory(self) -> int:
        """Return the free memory in bytes, with what CuPy keeps for new arrays."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        return int(free) + int(self.xp.get_default_memory_pool().free_bytes())


def source_of(sources: tuple[str, ...]) -> str:
    """Return the text of some files of kernels as one program."""
    folder = Path(__file__).parent
    names = ("device.cuh", *sources)
    return "".join(f'#line 1 "{name}"\n{(folder / name).read_text()}\n' for name in names)


@cache
def _compiled(constants: tuple[tuple[str, int], ...], sources: tuple[str, ...]) -> Any:
    """Return the compiled kernels. CuPy keeps them on disk, too."""
    definitions = [f"-D{name}={value}" for name, value in constants]
    return _cupy().RawModule(code=source_of(sources), options=("-std=c++17", *definitions))


def _cupy() -> Any:
    """Return CuPy, or raise an error that says what is missing."""
    try:
        import cupy
    except ImportError as error:
        raise NoDeviceError(
            f"device='cuda' needs CuPy ({error}); run {install_extra('cuda')}. The extra is for "
            "CUDA 13; for CUDA 12, it is 'cuda12'."
        ) from None
    try:
        capability = int(cupy.cuda.Device().compute_capability)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDeviceError(f"device='cuda' needs a GPU, and CuPy finds none ({error}).") from None
    if capability < LEAST_CAPABILITY:
        raise NoDeviceError(
            f"device='cuda' needs a GPU of compute capability {LEAST_CAPABILITY / 10} or later; "
            f"this one has {capability / 10}."
        )
    return cupy
