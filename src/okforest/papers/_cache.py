"""What jobs have found, kept in a folder: a run that was interrupted goes on from there."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import okforest
from okforest.papers._jobs import Job
from okforest.persistence.atomic import replacing

PACKAGE = Path(okforest.__file__).parent


class Found(NamedTuple):
    """The result of a job, and the CPU time that it took."""

    result: dict[str, Any]
    seconds: float


class Cache:
    """A folder with one small JSON file for each finished job.

    A file is known by the job's function and arguments, by the code of okforest, and by the data:
    after any change of these, results are made anew. Files are written as a whole or not at all.

    Parameters
    ----------
    folder : Path
        The folder; it is made if there is none.
    files : iterable of Path, optional
        The files of data that jobs read; their names and contents matter, their folder does not.
    """

    def __init__(self, folder: Path, files: Iterable[Path] = ()):
        self.folder = folder
        # Now: a change of code or data while jobs are run must not matter.
        self.code = _digest()
        self.data = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def load(self, job: Job) -> Found | None:
        """Return what a job has found, or None if it has not been done."""
        try:
            kept = json.loads(self._path(job).read_text(encoding="utf-8"))
            return Found(kept["result"], kept["seconds"])
        except (FileNotFoundError, KeyError, TypeError, ValueError):  # a damaged file is none
            return None

    def store(self, job: Job, found: Found) -> None:
        """Keep what a job has found."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._path(job)) as file:
            file.write(json.dumps(self._identity(job) | found._asdict()).encode())

    def _path(self, job: Job) -> Path:
        key = json.dumps(self._identity(job), sort_keys=True).encode()
        name = job.work.__module__.rpartition(".")[2]
        return self.folder / f"{name}-{hashlib.sha256(key).hexdigest()[:24]}.json"

    def _identity(self, job: Job) -> dict[str, Any]:
        return {
            "work": f"{job.work.__module__}.{job.work.__qualname__}",
            "arguments": job.arguments,
            "okforest": okforest.__version__,
            "code": self.code,
            "data": self.data,
        }


def _digest() -> str:
    """Return a digest of the package, compiled part included, but of the command line."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        place = path.relative_to(PACKAGE)
        if path.suffix in (".py", ".so", ".pyd") and place.parts[0] != "cli":
            digest.update(place.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:24]
