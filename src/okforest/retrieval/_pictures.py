"""Pictures as arrays of bytes: read from files or from memory within limits; thumbnails."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest.retrieval._decoder import Decoder, PictureError, decode
from okforest.segments.images import checked, require_pillow

Picture = npt.NDArray[np.uint8]  # of shape (height, width, channels), one channel or three

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
ENDINGS = (
    *(".bmp", ".gif", ".jpg", ".jpeg", ".png", ".pbm", ".pgm", ".ppm", ".tif", ".tiff", ".webp"),
)
HASH_BYTES = 16
JPEG_QUALITY = 80


@dataclass(frozen=True)
class Limits:
    """What is refused before it is decoded.

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

    Errors call it by the name, by default that of the file. It is decoded in this process, unless
    there is a decoder.
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
    """Return the files of a folder and of its folders whose names end as those of pictures do.

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
