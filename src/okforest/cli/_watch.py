"""Following the files of a folder: ``okforest index add --watch``."""

import os
from pathlib import Path

from okforest.cli._console import print_message
from okforest.cli._tables import report
from okforest.retrieval import IndexBusyError, SubwindowIndex
from okforest.retrieval._sources import Sources, as_sources


class Watcher:
    """Brings an index up to date with the files of a folder.

    Parameters
    ----------
    index : SubwindowIndex
        The index.
    folder : Path
        The folder.
    """

    def __init__(self, index: SubwindowIndex, folder: Path):
        self.index = index
        self.folder = Path(os.path.realpath(folder))
        self.waiting = False

    def follow(self) -> None:
        """Add new and changed files, and remove those that were deleted."""
        try:
            self._follow()
        except IndexBusyError as error:
            self._wait(f"{error} It is tried again.")

    def _follow(self) -> None:
        self.index.refresh()
        try:
            files = as_sources(self.folder)
        except NotADirectoryError:
            files = Sources()
        if not files:
            # The disk may not be mounted: that is no reason to forget its images.
            self._wait(f"{self.folder} is missing or has no pictures; nothing is removed meanwhile")
            return
        self.waiting = False
        gone = self._deleted(files)
        if gone:
            self.index.remove(gone)
            print_message(f"{len(gone)} removed")
        added = self.index.add(files)
        if added.n_added or added.n_replaced:
            report(added)

    def _deleted(self, files: Sources) -> list[str]:
        root = Path(os.path.realpath(self.index.snapshot.manifest.root or "/"))
        present = {source.path for source in files}
        return [
            row.name
            for row in self.index.rows()
            if row.file_bytes >= 0
            and (path := root / row.name).is_relative_to(self.folder)
            and path not in present
            and not path.exists()
        ]

    def _wait(self, reason: str) -> None:
        if not self.waiting:
            print_message(reason)
        self.waiting = True
