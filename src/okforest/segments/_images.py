"""Images as users pass them: arrays, lists of arrays, and files."""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[Any]  # of shape (height, width, n_channels), uint8 or float32, C-contiguous

MAX_CHANNELS = 16
LEAST_SIDE = 2  # pixels


def require_pillow() -> Any:
    """Return ``PIL.Image``, or raise an ImportError that names the extra to install."""
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise ImportError(
            "reading image files needs Pillow, which is not installed: pip install okforest[images]"
        ) from error


class ImageFiles(Sequence[Any]):
    """Image files that are read when they are needed; a slice is a list of images."""

    def __init__(self, paths: Sequence[Any]):
        self.paths = [os.fspath(path) for path in paths]
        missing = [path for path in self.paths if not Path(path).is_file()]
        if missing:
            raise FileNotFoundError(
                f"{len(missing)} of {len(self.paths)} image files do not exist, the first of them "
                f"{missing[0]}. Pass paths of files; okforest.segments.list_images finds those of "
                "a folder."
            )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [read_image(path) for path in self.paths[position]]
        return read_image(self.paths[position])

    def __iter__(self) -> Iterator[Image]:
        return map(read_image, self.paths)


def read_image(path: str | os.PathLike[str]) -> Image:
    """Read an image file as an array: bytes in one channel or three, floats for deeper pixels."""
    reader = require_pillow()
    try:
        with reader.open(path) as image:
            if image.mode[0] in "IF":  # 16 or 32 bits
                return checked(np.asarray(image, dtype=np.float32), str(path))
            grey = image.mode in ("1", "L", "LA")
            return checked(np.asarray(image.convert("L" if grey else "RGB")), str(path))
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        raise ValueError(
            f"{path} cannot be read as an image ({type(error).__name__}: {error}). Replace or "
            "remove it; list_images(folder, damaged='skip') leaves such files out."
        ) from error


def checked(image: Any, name: str) -> Image:
    """Return an image in canonical form, or raise a ValueError that calls it by this name."""
    pixels = np.asarray(image)
    if pixels.dtype.kind not in "buif":
        raise ValueError(
            f"{name} has type {pixels.dtype}; expected numbers, such as uint8 or float32."
        )
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3:
        raise ValueError(
            f"{name} has shape {pixels.shape}; expected (height, width) or "
            "(height, width, channels)."
        )
    height, width, n_channels = pixels.shape
    if not 1 <= n_channels <= MAX_CHANNELS:
        raise ValueError(
            f"{name} has {n_channels} channels, in shape {pixels.shape}; expected 1 to "
            f"{MAX_CHANNELS}, in the last axis. If they come first, use np.moveaxis(image, 0, -1)."
        )
    if min(height, width) < LEAST_SIDE:
        raise ValueError(
            f"{name} has {height} × {width} pixels, smaller than any window; images need at least "
            f"{LEAST_SIDE} × {LEAST_SIDE}. Leave it out."
        )
    if pixels.dtype != np.uint8:
        if not np.isfinite(pixels).all():
            raise ValueError(
                f"{name} has NaN or infinite pixels; fill them in, for example with "
                "np.nan_to_num, or leave the image out."
            )
        with np.errstate(over="ignore"):
            pixels = pixels.astype(np.float32)
        if not np.isfinite(pixels).all():
            raise ValueError(f"{name} has pixels beyond the range of float32; rescale it.")
    return np.ascontiguousarray(pixels)


def check_images(X: Any, image_shape: tuple[int, ...] | None) -> Sequence[Any]:
    """Return images in canonical form: a list of arrays, or files that are read when needed."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"X is a single path, {os.fspath(X)!r}; pass a list of image files, such as "
            "list_images(folder).paths."
        )
    if isinstance(X, ImageFiles):
        return X
    if hasattr(X, "shape") and len(X.shape) != 1:
        return _check_array(np.asarray(X), image_shape)
    items = list(X)
    if items and all(isinstance(item, str | os.PathLike) for item in items):
        return ImageFiles(items)
    if any(isinstance(item, str | os.PathLike) for item in items):
        raise ValueError("X mixes files and arrays; pass a list of one or the other.")
    if image_shape is not None:
        items = [_reshaped(np.asarray(item), image_shape) for item in items]
    images = [checked(item, f"image {i}") for i, item in enumerate(items)]
    if len({image.dtype for image in images}) > 1:
        images = [image.astype(np.float32) for image in images]
    return images


def _check_array(X: npt.NDArray[Any], image_shape: tuple[int, ...] | None) -> Sequence[Any]:
    if X.ndim == 2:
        if image_shape is None:
            raise ValueError(
                f"X has shape {X.shape}: one row per image. Set image_shape=(height, width) so "
                "that rows can be read as images, or pass an array of shape (n, height, width)."
            )
        X = _reshaped(X, (len(X), *image_shape))
    if X.ndim not in (3, 4):
        raise ValueError(
            f"X has shape {X.shape}; expected (n, height, width) or (n, height, width, channels)."
        )
    if len(X) == 0:
        return []
    # As one image of all rows: checked at once.
    stacked = X.reshape(X.shape[0] * X.shape[1], *X.shape[2:])
    checked(X[0], "image 0")
    pixels = checked(stacked, "X").reshape(*X.shape[:3], -1)
    return list(pixels)


def _reshaped(X: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    try:
        return X.reshape(shape)
    except ValueError:
        n = X.size if X.ndim == 1 else X.shape[1]
        raise ValueError(
            f"X has {n} features, which are not images of shape {shape[-2:]}; set image_shape to "
            "their height, width and, if there are several, channels."
        ) from None
