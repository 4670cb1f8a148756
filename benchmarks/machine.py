"""The machine: one thread for everything that is timed, and a description for the tables."""

import os
import platform
import shlex
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# If set, the last one overrides OMP_NUM_THREADS for okforest; benchmarks of threads use it.
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OKFOREST_NUM_THREADS")


def fix_threads(okforest: int = 1) -> None:
    """Restart this program with one thread for every library and the given number for okforest.

    Libraries read these variables when they are imported, so setting them here would be too late.
    """
    wanted = dict.fromkeys(LIMITS, "1") | {"OKFOREST_NUM_THREADS": str(okforest)}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        sys.stdout.flush()
        os.execve(sys.executable, sys.orig_argv, os.environ | wanted)


def describe() -> dict[str, str]:
    """Return the properties of the machine that matter for timings."""
    return {
        "CPU": field_of("/proc/cpuinfo", "model name")
        or platform.processor()
        or platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "system": platform.platform(),
        "Python": platform.python_version(),
        "date": date.today().isoformat(),
        "load at start": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def print_command() -> None:
    """Print the command line of this program, as the first line of a file of results."""
    module: Any = sys.modules["__main__"]
    command = shlex.join(["python", "-m", module.__spec__.name, *sys.argv[1:]])
    print(f"Printed by `{command}`.\n", flush=True)


def version_of(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.0f} GiB"


def field_of(path: str, name: str) -> str | None:
    """Return the first value of a field in a file of ``name : value`` lines, or None."""
    if not Path(path).exists():
        return None
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
