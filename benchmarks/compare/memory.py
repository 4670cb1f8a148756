"""Peak memory and saved size of models, measured in fresh processes."""

import ctypes
import gc
import io
import json
import resource
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
from benchmarks import machine

import okforest


def start_process(*arguments: str) -> subprocess.Popen[str]:
    """Start this program in a fresh process, with additional arguments."""
    return subprocess.Popen([*sys.orig_argv, *arguments], stdout=subprocess.PIPE, text=True)


def read_answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON object that a process prints on its last line."""
    printed, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, process.args))} failed")
    return json.loads(printed.splitlines()[-1])


def saved_size(model: Any) -> int:
    """Return the file size of a model, saved by okforest.save or, for peers, by joblib.dump."""
    if type(model).__module__.startswith("okforest"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            okforest.save(model, path)
            return path.stat().st_size
    sink = _Sink()
    joblib.dump(model, sink)
    return sink.size


class _Sink(io.RawIOBase):
    """A file that only counts bytes, since some models take gigabytes."""

    size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        n_bytes = memoryview(data).nbytes
        self.size += n_bytes
        return n_bytes

    def tell(self) -> int:
        return self.size


def reset_peak() -> int:
    """Reset the peak memory of this process and return its current memory, in bytes.

    Memory freed after loading the data is first returned to the system, so that a fit does not
    reuse it unnoticed. Where the peak cannot be reset, a fit that stays below the peak of loading
    appears to use no memory.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the peak resident memory of this process, in bytes.

    On Linux it is read from the status file, since ru_maxrss includes the parent process.
    """
    status = machine.field_of("/proc/self/status", "VmHWM")
    if status is not None:
        return int(status.split()[0]) * 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024
