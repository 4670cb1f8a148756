"""Replacing a file as a whole: readers see the old one or the new one, never a part."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` once it is complete and on the disk.

    If anything fails before, it is removed, and ``path`` is as it was. A process that is killed
    leaves its new file behind, hidden, beside ``path``.
    """
    target = Path(path).resolve()  # through links: the file they name is replaced, not the link
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Pass the path of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}. Make it first.")
    temporary = target.with_name(f".okforest-{secrets.token_hex(8)}.tmp")
    file = open(temporary, "xb")  # noqa: SIM115 (closed below, in every case)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
