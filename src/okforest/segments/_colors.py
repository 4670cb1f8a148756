"""Grey levels, RGB and HSV, without other packages."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[Any]
Color = Literal["auto", "grey", "rgb", "hsv"]

LUMA = (0.299, 0.587, 0.114)  # of red, green and blue, ITU-R BT.601


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
