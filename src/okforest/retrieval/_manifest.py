"""The manifest of an index: which files it consists of. It is the only file that is replaced."""

import os
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from okforest.persistence import FileFormatError
from okforest.persistence.atomic import replacing
from okforest.persistence.container import read, write

KIND, VERSION = "okforest image index", 1
MANIFEST = "manifest.okf"


@dataclass(frozen=True)
class Manifest:
    """What an index consists of.

    Parameters
    ----------
    generation : int
        Number of changes since the index was made.
    vocabulary : str
        The key of the vocabulary.
    segments : list of str
        Files of segments.
    removed : str
        The file of removed images; empty if there are none.
    next_id : int
        The number of the next image.
    root : str
        Names of files in this folder are relative to it; empty for none.
    thumbnail_side : int
        Pixels of the longer side of thumbnails; 0 for none.
    """

    generation: int
    vocabulary: str
    segments: list[str]
    removed: str
    next_id: int
    root: str
    thumbnail_side: int

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read a manifest, or raise a FileFormatError."""
        _, content, _ = read(path, mapped=False, verify=True)
        try:
            if not isinstance(content, dict) or content.get("kind") != KIND:
                raise ValueError("it is not the manifest of an index")
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']} is unknown; upgrade okforest")
            manifest = cls(**{field.name: content[field.name] for field in fields(cls)})
            numbers = (manifest.generation, manifest.next_id, manifest.thumbnail_side)
            texts = (manifest.vocabulary, manifest.removed, manifest.root, *manifest.segments)
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise ValueError("a number is not an integer from 0")
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("a name is not text")
            if any(Path(name).name != name for name in (*manifest.segments, manifest.removed)):
                raise ValueError("a file is outside the folder of the index")
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path} cannot be read: {error}.") from error
        return manifest

    def write(self, path: Path) -> None:
        """Replace a manifest, and see that it is on the disk."""
        with replacing(path) as file:
            write(file, {"kind": KIND, "version": VERSION} | asdict(self), [])
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """See that the names of the files of a folder are on the disk."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
