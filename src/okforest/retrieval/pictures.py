"""Pictures as users pass them: arrays of bytes, files or folders; read within limits, and named."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from okforest.retrieval.decoder import Decoder, PictureError, decode
from okforest.segments.images import checked, require_pillow

Picture = npt.NDArray[np.uint8]  # shape (height, width, channels), one channel or three

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
ENDINGS = (
    *(".bmp", ".gif", ".jpg", ".jpeg", ".png", ".pbm", ".pgm", ".ppm", ".tif", ".tiff", ".webp"),
)
HASH_BYTES = 16
JPEG_QUALITY = 80
BATCH_SIZE = 64  # images read at a time


@dataclass(frozen=True)
class Limits:
    """Limits of pictures, which are checked before decoding.

    Parameters
    ----------
    max_bytes : int
        Bytes of a file.
    max_pixels : int
        Height times width.
    formats : sequence of str
        Names of formats, as Pillow spells them.
    """

    max_bytes: int = 256 * 2**20
    max_pixels: int = 80_000_000
    formats: Sequence[str] = FORMATS


# PPM only from files: Pillow needs quadratic time for a text of numbers with many comments.
DEFAULT_LIMITS = Limits(formats=(*FORMATS, "PPM"))


def read_picture(
    source: str | os.PathLike[str] | bytes,
    limits: Limits = DEFAULT_LIMITS,
    name: str = "",
    decoder: Decoder | None = None,
) -> Picture:
    """Read a picture from a file or from its bytes, or raise a PictureError.

    Errors call it by the name, by default the name of the file. It is decoded in this process,
    unless there is a decoder.
    """
    require_pillow()
    name = name or ("the file" if isinstance(source, bytes) else os.fspath(source))
    try:
        size = len(source) if isinstance(source, bytes) else os.stat(source).st_size
    except FileNotFoundError as error:
        raise PictureError(f"{name} does not exist.") from error
    except (OSError, ValueError) as error:
        raise PictureError(f"{name} cannot be read: {error}.") from error
    if size > limits.max_bytes:
        raise PictureError(f"{name} has {size} bytes; at most {limits.max_bytes} are read.")
    if decoder is not None:
        pixels = decoder.decode(source, name, limits.formats, limits.max_pixels)
    else:
        file = BytesIO(source) if isinstance(source, bytes) else source
        pixels = decode(file, name, limits.formats, limits.max_pixels)
    if pixels.mode == "I":  # 16 bits: the upper eight
        deep = np.frombuffer(pixels.data, np.int32).reshape(pixels.height, pixels.width)
        return as_picture((np.clip(deep, 0, 2**16 - 1) >> 8).astype(np.uint8), name)
    flat = np.frombuffer(pixels.data, np.uint8)
    return as_picture(flat.reshape(pixels.height, pixels.width, -1), name)


def as_picture(image: Any, name: str) -> Picture:
    """Return an array as a picture, or raise a PictureError that calls it by this name."""
    try:
        pixels = checked(image, name)
    except ValueError as error:
        raise PictureError(str(error)) from error
    if pixels.dtype != np.uint8:
        raise PictureError(
            f"{name} has pixels of type {np.asarray(image).dtype}; an index holds bytes. Convert "
            "it to np.uint8, from 0 to 255."
        )
    if pixels.shape[2] not in (1, 3):
        raise PictureError(
            f"{name} has {pixels.shape[2]} channels; expected one, or three (red, green, blue)."
        )
    return pixels


def content_hash(picture: Picture) -> bytes:
    """Return a hash of the shape and the pixels."""
    digest = blake2b(str(picture.shape).encode(), digest_size=HASH_BYTES)
    digest.update(picture.data)
    return digest.digest()


def _image(picture: Picture) -> Any:
    grey = picture.shape[2] == 1
    return require_pillow().fromarray(picture[:, :, 0] if grey else picture)


def thumbnail(picture: Picture, side: int) -> bytes:
    """Return a JPEG whose longer side has at most so many pixels; nothing if that is 0."""
    if side == 0:
        return b""
    image = _image(picture)
    image.thumbnail((side, side))
    file = BytesIO()
    image.save(file, "JPEG", quality=JPEG_QUALITY)
    return file.getvalue()


def file_content(picture: Any) -> bytes:
    """Return the content of a file, given as bytes, a path, or an array, which becomes a PNG."""
    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, str | os.PathLike):
        try:
            return Path(picture).read_bytes()
        except OSError as error:
            raise PictureError(f"{picture} cannot be read: {error.strerror}.") from error
    file = BytesIO()
    _image(as_picture(picture, "the picture")).save(file, "PNG")
    return file.getvalue()


def list_pictures(folder: Path) -> list[Path]:
    """Return the files of a folder and of its folders with an ending of pictures.

    Hidden files and folders are left out.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder. Pass the folder of the images.")
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [
            Path(parent, name)
            for name in names
            if name.lower().endswith(ENDINGS) and not name.startswith(".")
        ]
    return sorted(path for path in paths if path.is_file())


def load_query(query: Any) -> Picture:
    """Return a picture that is given as an array, a file or its content."""
    if isinstance(query, bytes):  # bytes may come from anyone
        return read_picture(query, Limits())
    if isinstance(query, str | os.PathLike):
        return read_picture(query)
    pixels = np.asarray(query)
    if pixels.dtype.kind not in "buif":
        raise PictureError(
            f"the query is of type {type(query).__name__}; expected an array of bytes, the path of "
            "a file, or its content as bytes."
        )
    return as_picture(pixels, "the query")


@dataclass(frozen=True)
class Source:
    """An image to be read: a file, or an array.

    Parameters
    ----------
    name : str
        Its name in an index; empty if the index is to choose one.
    label : str or None
        Its class; None if it was not given.
    item : Path or ndarray
        The image.
    folder : Path, optional
        The folder that was passed, if the file was found in one.
    default_label : str, default=""
        The class of a new image whose label was not given.
    position : int, default=0
        Its place among the images that were passed.
    """

    name: str
    label: str | None
    item: Any
    folder: Path | None = None
    default_label: str = ""
    position: int = 0

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return self.item if isinstance(self.item, Path) else None

    @property
    def title(self) -> str:
        """Its name in errors or, without a name, its place."""
        return shown(self.name) or f"images[{self.position}]"

    def label_after(self, known: str | None) -> str:
        """Return the label; by default the known label of the image in the index, if it has one."""
        if self.label is not None:
            return self.label
        return self.default_label if known is None else known

    def read(self) -> Picture:
        """Return the pixels, or raise a PictureError."""
        if self.path is not None:
            return read_picture(self.path)
        return as_picture(self.item, f"image {self.name!r}" if self.name else self.title)


class Sources(list[Source]):
    """Images that were listed and checked."""


class Loaded(NamedTuple):
    """An image that was read; size and time (nanoseconds) of its file, or -1."""

    source: Source
    picture: Picture
    file_bytes: int = -1
    file_time: int = -1


@dataclass(frozen=True)
class Unreadable:
    """An image that could not be read, and why."""

    name: str
    reason: str


def as_sources(images: Any, names: Any = None, labels: Any = None) -> Sources:
    """List images. A file is named by its absolute path; its folder has no symbolic links."""
    if isinstance(images, Sources):
        return images
    folder = None
    if isinstance(images, str | os.PathLike):
        folder = Path(os.path.realpath(images))
        items: list[Any] = list(list_pictures(folder))
    else:
        items = [
            _real_path(item) if isinstance(item, str | os.PathLike) else np.asarray(item)
            for item in images
        ]
    default = [str(item) if isinstance(item, Path) else "" for item in items]
    names = _texts(names, default, "names", len(items))
    labels = _texts(labels, [None] * len(items), "labels", len(items))
    counts = Counter(name for name in names if name)
    if duplicates := [name for name, n in counts.items() if n > 1]:
        raise ValueError(f"two images have the name {duplicates[0]!r}; names must be unique.")
    rows = enumerate(zip(names, labels, items, strict=True))
    return Sources(Source(*row, folder, position=i) for i, row in rows)


def _real_path(file: str | os.PathLike[str]) -> Path:
    """Return a path without symbolic links to folders; a link to a file keeps its name."""
    path = Path(os.path.abspath(file))
    return Path(os.path.realpath(path.parent)) / path.name


def _texts(values: Any, default: list[Any], what: str, n: int) -> list[Any]:
    if values is None:
        return default
    texts = [str(value) for value in as_list(what, values)]
    if len(texts) != n:
        raise ValueError(f"there are {n} images and {len(texts)} {what}; pass one for each image.")
    for text in texts:
        if not is_utf8(text):
            raise ValueError(f"{shown(text)!r}, one of the {what}, is not valid Unicode.")
    return texts


def place(sources: Iterable[Source], root: str) -> Sources:
    """Name and label files by their place in the root folder, or in the folder that was passed."""
    root_folder = Path(os.path.realpath(root)) if root else None
    return Sources(_placed(source, root_folder) for source in sources)


def _placed(source: Source, root: Path | None) -> Source:
    path = source.path
    if path is None:
        return source
    if root is not None and path.is_relative_to(root):
        if source.name == str(path):
            source = replace(source, name=path.relative_to(root).as_posix())
        base: Path | None = root
    else:
        base = source.folder
    if base is None or source.label is not None:
        return source
    parent = path.parent.relative_to(base).as_posix()
    label = "" if parent == "." else parent
    # The folders within a folder are labels; a file that is passed alone keeps its label.
    if source.folder is None:
        return replace(source, default_label=label)
    return replace(source, label=label)


def is_utf8(text: str) -> bool:
    """Return whether a text can be written; names of files on Linux need not be UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text: str) -> str:
    """Return a text that can be printed, with a mark for each byte that is not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def read_batches(
    sources: Sequence[Source], n_threads: int
) -> Iterator[tuple[list[Loaded], list[Unreadable]]]:
    """Read images, a batch at a time; those that cannot be read come with the reason."""

    def read(source: Source) -> Loaded | Unreadable:
        try:
            # The state before reading: if the file changes meanwhile, it is read again next time.
            status = source.path.stat() if source.path else None
            picture = source.read()
        except (OSError, PictureError) as error:
            return Unreadable(source.title, shown(str(error)))
        if status is None:
            return Loaded(source, picture)
        return Loaded(source, picture, status.st_size, status.st_mtime_ns)

    with ThreadPoolExecutor(n_threads) as pool:
        for begin in range(0, len(sources), BATCH_SIZE):
            results = list(pool.map(read, sources[begin : begin + BATCH_SIZE]))
            yield (
                [one for one in results if isinstance(one, Loaded)],
                [one for one in results if isinstance(one, Unreadable)],
            )


def as_list(name: str, values: Iterable[Any]) -> list[Any]:
    """Return a list. A single text is refused: it would be taken for a list of letters."""
    if isinstance(values, str):
        raise ValueError(f"{name}={values!r} is a single text; pass a list, [{values!r}].")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}={values!r}; expected a list, such as [{values!r}].")
    return list(values)
