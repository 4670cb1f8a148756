"""Replacing a file as a whole: readers see the old file or the new one, never a part."""

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

PREFIX, SUFFIX = ".okforest-", ".tmp"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` once it is complete and on the disk.

    If anything fails before, the temporary file is removed and ``path`` stays as it was. A process
    that is killed leaves its temporary file, hidden, beside ``path``; the next call for a file in
    that folder removes it.
    """
    target = Path(path).resolve()  # if path is a link, its target is replaced
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Pass the path of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist. Create it first.")
    remove_leftovers(target.parent)
    file = _open_locked(target.parent)
    temporary = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            if sys.platform != "win32":  # while it is locked: nobody takes it for a leftover
                os.replace(temporary, target)
        if sys.platform == "win32":  # an open file cannot be renamed
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed processes.

    A process holds a lock on its temporary file, which the system releases when the process ends.
    Without locks (on Windows, or if the file system has none) leftovers stay.
    """
    if sys.platform == "win32":
        return
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError):  # in use, already gone, or of another user
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def _open_locked(folder: Path) -> BinaryIO:
    """Create a temporary file and lock it."""
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"
        file = open(path, "xb")  # noqa: SIM115 (the caller closes it)
        if sys.platform != "win32":
            with suppress(OSError):  # the file system may have no locks
                flock(file.fileno(), LOCK_EX)
        if path.exists():
            return file
        file.close()  # another process took it for a leftover before it was locked
