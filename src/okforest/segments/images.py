"""Images as users pass them: arrays, lists of arrays, files; grey levels, RGB and HSV."""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from okforest._utils.errors import install_extra, warn
from okforest.segments.base import listed

# An array of shape (height, width, n_channels), uint8 or float32, C-contiguous.
Image = npt.NDArray[Any]

MAX_CHANNELS = 16
LEAST_SIDE = 2  # pixels
LARGE = 2.0  # a pixel that is not on the scale from 0 to 1, which interpolation may overshoot


def require_pillow() -> Any:
    """Return ``PIL.Image``, or raise an ImportError that names the extra to install."""
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise ImportError(
            f"reading image files needs Pillow, which is not installed: {install_extra('images')}"
        ) from error


class ImageFiles(Sequence[Any]):
    """Image files that are read when they are needed; a slice is a list of images."""

    def __init__(self, paths: Sequence[Any]):
        self.paths = [os.fspath(path) for path in paths]
        missing = [path for path in self.paths if not Path(path).is_file()]
        if missing:
            raise FileNotFoundError(
                f"{len(missing)} of {len(self.paths)} image files do not exist, the first of them "
                f"{missing[0]}. Pass paths of files; okforest.segments.list_images lists the "
                "images in a folder."
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
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can raise anything, from OSError to struct.error
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
            "(height, width, channels). Pass a list of images, not a single one; for rows of "
            "pixels, set image_shape."
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
            f"{LEAST_SIDE} × {LEAST_SIDE}."
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
            top = np.abs(np.asarray(image, dtype=np.float64)).max()
            raise ValueError(
                f"{name} has pixels beyond the range of float32, such as {top:.3g}; rescale it."
            )
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
    items = listed(X, "images or image files")
    if items and all(isinstance(item, str | os.PathLike) for item in items):
        return ImageFiles(items)
    if any(isinstance(item, str | os.PathLike) for item in items):
        path = next(item for item in items if isinstance(item, str | os.PathLike))
        raise ValueError(
            f"X mixes files and arrays: {os.fspath(path)!r} is a path, and other entries are not. "
            "Pass a list of one or the other."
        )
    if image_shape is not None:
        items = [_reshaped(np.asarray(item), image_shape) for item in items]
    images = [checked(item, f"image {i}") for i, item in enumerate(items)]
    _warn_if_mixed(images)
    return images


def _check_array(X: npt.NDArray[Any], image_shape: tuple[int, ...] | None) -> Sequence[Any]:
    if X.ndim == 2:
        if image_shape is None:
            raise ValueError(
                f"X has shape {X.shape}: one row per image. Set image_shape=(height, width) so "
                "that rows can be read as images, or pass an array of shape (n, height, width)."
            )
        X = _reshaped(X, image_shape, len(X))
    if X.ndim not in (3, 4):
        raise ValueError(
            f"X has shape {X.shape}; expected (n, height, width) or (n, height, width, channels)."
        )
    return [checked(image, f"image {i}") for i, image in enumerate(X)]


def largest(images: Sequence[Image]) -> float:
    """Return the largest pixel of some images, 255 for bytes."""
    return max(255.0 if image.dtype == np.uint8 else float(image.max()) for image in images)


def warn_if_rescaled(images: Sequence[Image], trained: float) -> None:
    """Warn if only one of the images and the training images has pixels from 0 to 1.

    ``trained`` is the largest pixel of the training images.
    """
    found = largest(images)
    smallest = min(float(image.min()) for image in images)
    if trained <= 1.0 and found > LARGE:
        remedy = "Divide these images by what the training images were divided by, such as 255."
    elif trained > LARGE and 0.0 < found <= 1.0 and smallest >= 0.0:
        remedy = "Multiply these images by what they were divided by, such as 255."
    else:
        return
    warn(
        f"pixels of these images are up to {found:.3g}, and pixels of the training images up to "
        f"{trained:.3g}: predictions need images on the same scale. {remedy}",
        UserWarning,
    )


def _warn_if_mixed(images: list[Image]) -> None:
    """Warn about images of bytes beside images of floats from 0 to 1."""
    floats = [image for image in images if image.dtype != np.uint8]
    if 0 < len(floats) < len(images):
        warn_if_rescaled(floats, 255.0)


def _reshaped(X: npt.NDArray[Any], shape: tuple[int, ...], *n: int) -> npt.NDArray[Any]:
    """Return an image of a given shape, or n of them."""
    try:
        return X.reshape(*n, *shape)
    except ValueError:
        n_features = X.shape[1] if n else X.size
        raise ValueError(
            f"X has {n_features} features, which are not images of shape {shape}; set image_shape "
            "to their height, width and, if there are several, channels."
        ) from None


Color = Literal["auto", "grey", "rgb", "hsv"]

LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in ITU-R BT.601


def convert(image: Image, color: Color) -> Image:
    """Return an image of shape (height, width, channels) in another set of channels.

    Grey levels become three equal channels; "auto" leaves the image as it is.
    """
    n_channels = image.shape[2]
    if color == "auto" or (color == "grey" and n_channels == 1):
        return image
    if n_channels not in (1, 3):
        raise ValueError(
            f"an image has {n_channels} channels, which color={color!r} cannot convert; pass one "
            "channel or three (red, green, blue), or set color='auto'."
        )
    if color == "grey":
        return _as(image.dtype, image @ np.array(LUMA))[:, :, None]
    rgb = np.broadcast_to(image, (*image.shape[:2], 3)) if n_channels == 1 else image
    return np.ascontiguousarray(rgb) if color == "rgb" else _hsv(rgb)


def _as(dtype: Any, values: npt.NDArray[np.float64]) -> Image:
    return np.round(values).astype(dtype) if dtype == np.uint8 else values.astype(dtype)


def _hsv(rgb: Image) -> Image:
    """Return hue, saturation and value, each over the range of the pixels' type."""
    top = 255.0 if rgb.dtype == np.uint8 else 1.0
    if rgb.dtype != np.uint8 and (rgb.min() < 0 or rgb.max() > 1):
        raise ValueError(
            f"an image has values from {rgb.min():.3g} to {rgb.max():.3g}; color='hsv' needs uint8 "
            "images, or floats from 0 to 1. Rescale it."
        )
    red, green, blue = np.moveaxis(rgb / top, 2, 0)
    value = np.maximum(np.maximum(red, green), blue)
    chroma = value - np.minimum(np.minimum(red, green), blue)
    safe = np.where(chroma > 0, chroma, 1.0)
    hue = np.where(
        value == red,
        (green - blue) / safe % 6,
        np.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = np.where(chroma > 0, hue / 6, 0.0)
    saturation = chroma / np.where(value > 0, value, 1.0)
    return _as(rgb.dtype, np.stack([hue, saturation, value], axis=2) * top)


def list_images(
    folder: str | os.PathLike[str], damaged: Literal["raise", "skip"] = "raise"
) -> Bunch:
    """List the image files in a folder and the folders in it, and label them by folder.

    Every file with the ending of an image format is read once, to find those that are damaged.
    Segmenters read the files again, a few at a time, when they are needed. It needs Pillow
    (the extra ``images``).

    Parameters
    ----------
    folder : str or path-like
        The folder.
    damaged : {"raise", "skip"}, default="raise"
        What to do about files that cannot be read: raise an error, or leave them out and list them
        in ``skipped``.

    Returns
    -------
    bunch : Bunch
        ``paths``, the files, sorted; ``target``, for each the path of its folder relative to
        ``folder`` (empty for files directly in it); ``skipped``, pairs of a path and the reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from okforest.segments import list_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "cats").mkdir()
    ...     Image.new("L", (20, 10)).save(Path(folder) / "cats" / "tom.png")
    ...     list_images(folder).target
    array(['cats'], dtype='<U4')
    """
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged={damaged!r}; use 'raise' or 'skip'.")
    root = Path(folder)
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder. Pass the folder of the images.")
    endings = set(require_pillow().registered_extensions())
    found = sorted(p for p in root.rglob("*") if p.suffix.lower() in endings and p.is_file())
    if not found:
        raise FileNotFoundError(
            f"{root} has no image files; their names end in .png, .jpg or another ending that "
            "Pillow knows."
        )
    paths, skipped = [], []
    for path in found:
        try:
            read_image(path)
            paths.append(path)
        except ValueError as error:
            if damaged == "raise":
                raise
            skipped.append((str(path), str(error.__cause__ or error)))
    target = [path.parent.relative_to(root).as_posix().removeprefix(".") for path in paths]
    return Bunch(
        paths=[str(path) for path in paths], target=np.array(target, dtype=str), skipped=skipped
    )
