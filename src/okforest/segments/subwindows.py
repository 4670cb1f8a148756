"""Random square subwindows of images."""

from math import ceil, floor
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from okforest._utils.arrays import Booleans, Floats, Ints
from okforest._utils.compat import StrOptions
from okforest._utils.parameters import COUNT, check_parameters
from okforest.engine import cut_subwindows, draw_squares, paste_subwindows
from okforest.segments.base import (
    MEANS,
    Objects,
    Seeds,
    Segmenter,
    Segments,
    check_range,
    content_seed,
    mean_of,
    uniforms,
)
from okforest.segments.images import Color, Image, check_images, convert, largest, warn_if_rescaled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RandomSubwindows(Segmenter):
    """Random square subwindows of images, resized to a few pixels.

    The sides and positions of the squares are drawn uniformly. The pixels of a resized subwindow
    are its features. Images are arrays of shape (n, height, width) or (n, height, width, channels),
    lists of arrays of different sizes, or lists of image files
    (the extra ``images``). Pixels are uint8, or any other numbers, which become
    float32. They are not rescaled: images to predict need the scale of the training images, and a
    model warns if one is 0 to 1 and the other is not.

    Parameters
    ----------
    n_segments : int, default=100
        Number of subwindows per image.
    side_range : tuple of two floats, default=(0.25, 1.0)
        The least and the largest side, as fractions of the image's smaller side. Both are rounded
        to pixels, within the range if possible.
    size : int, default=16
        Pixels along each side of a resized subwindow.
    color : {"auto", "grey", "rgb", "hsv"}, default="auto"
        The channels of the subwindows; "auto" keeps the images' channels.
    rotate : bool, default=False
        Whether subwindows are turned by a random angle. A turned subwindow is the largest one
        within its square.
    mirror : bool, default=False
        Whether half of the subwindows, drawn at random, are mirrored from left to right.
    image_shape : tuple of ints, optional
        Height, width and, if there are several, channels of images that are given as rows of an
        array with two axes.

    Attributes
    ----------
    n_channels_ : int
        Number of channels of the training images, after conversion; set when a model is fitted.
    largest_ : float
        The largest pixel of the training images (of the first one, if they are files), 255 for
        uint8. Other images on another scale, such as 0 to 1, cause a warning.

    See Also
    --------
    SegmentClassifier : Classifies images by their subwindows.

    Notes
    -----
    The columns of ``places`` are the upper left row and column of the square, and its side.

    References
    ----------
    R. Marée, P. Geurts, J. Piater, L. Wehenkel, "Random subwindows for robust image
    classification", CVPR 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.segments import RandomSubwindows
    >>> images = np.random.default_rng(0).integers(0, 256, (3, 40, 30)).astype(np.uint8)
    >>> segmenter = RandomSubwindows(n_segments=5)
    >>> segments = segmenter.cut(segmenter.check(images))
    >>> segments.values.shape, segments.values.dtype
    ((15, 256), dtype('uint8'))
    """

    n_channels_: int
    largest_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_segments": [COUNT],
        "size": [COUNT],
        "color": [StrOptions(set(get_args(Color)))],
        "rotate": ["boolean"],
        "mirror": ["boolean"],
    }

    def __init__(
        self,
        n_segments: int = 100,
        *,
        side_range: tuple[float, float] = (0.25, 1.0),
        size: int = 16,
        color: Color = "auto",
        rotate: bool = False,
        mirror: bool = False,
        image_shape: tuple[int, ...] | None = None,
    ):
        self.n_segments = n_segments
        self.side_range = side_range
        self.size = size
        self.color = color
        self.rotate = rotate
        self.mirror = mirror
        self.image_shape = image_shape

    @property
    def tabular(self) -> bool:  # type: ignore[override]
        """Whether the rows of a numeric array with two axes are images."""
        return self.image_shape is not None

    def check(self, X: Any) -> Objects:
        """Return images in canonical form: (height, width, channels), uint8 or float32.

        Parameters
        ----------
        X : array-like or list
            Images or image files.

        Returns
        -------
        images : sequence of ndarray
            Files are read when they are needed.
        """
        check_parameters(self)
        check_range(self, "side_range")
        images = check_images(X, self._image_shape())
        if isinstance(images, list):
            self._check_channels(images, range(len(images)))
        if hasattr(self, "largest_") and len(images) > 0:
            warn_if_rescaled(_known(images), self.largest_)
        return images

    def _image_shape(self) -> tuple[int, ...] | None:
        shape = self.image_shape
        if shape is None:
            return None
        is_shape = isinstance(shape, tuple | list) and len(shape) in (2, 3)
        if not is_shape or not all(isinstance(side, Integral) and side > 0 for side in shape):
            raise ValueError(
                f"image_shape={shape!r}; expected (height, width) or (height, width, channels)."
            )
        return tuple(int(side) for side in shape)

    def resolve(self, objects: Objects) -> "RandomSubwindows":
        """Return a copy that has learnt the number of channels and the scale of the pixels.

        Parameters
        ----------
        objects : sequence of ndarray
            The training images, in canonical form.

        Returns
        -------
        segmenter : RandomSubwindows
            The copy.
        """
        resolved: RandomSubwindows = clone(self)
        resolved.n_channels_ = convert(objects[0], self.color).shape[2]
        resolved.largest_ = largest(_known(objects))
        return resolved

    def cut(self, objects: Objects, seed: int = 0, n_threads: int = 1) -> Segments:
        """Cut images into subwindows.

        Parameters
        ----------
        objects : list of ndarray
            Images in canonical form.
        seed : int, default=0
            The seed. The subwindows of an image depend on it and on the pixels alone.
        n_threads : int, default=1
            Number of threads; it does not change the result.

        Returns
        -------
        segments : Segments
            The subwindows, image by image.
        """
        images = list(objects)
        seeds = _seeds(images, seed)
        squares = self._squares(images, seeds)
        self._check_channels(images, None)
        pixels = [np.ascontiguousarray(convert(image, self.color)) for image in images]
        angles, mirrored = np.empty(0, np.float32), np.empty(0, bool)  # none is turned or mirrored
        if self.rotate or self.mirror:
            turns, mirrored = self._turns(seeds)
            angles = turns if self.rotate else angles
        owner = np.repeat(np.arange(len(images), dtype=np.int32), self.n_segments)
        # Bytes are cut apart from floats: their subwindows are bytes, whatever is cut with them.
        kinds = np.array([image.dtype == np.uint8 for image in pixels])
        if kinds.all() or not kinds.any():
            values = cut_subwindows(pixels, owner, squares, angles, mirrored, self.size, n_threads)
        else:
            values = np.empty((len(squares), self.size**2 * pixels[0].shape[2]), np.float32)
            for kind in (False, True):
                rows = kinds[owner] == kind
                values[rows] = cut_subwindows(
                    [
                        image
                        for image, is_bytes in zip(pixels, kinds, strict=True)
                        if is_bytes == kind
                    ],
                    np.repeat(np.arange((kinds == kind).sum(), dtype=np.int32), self.n_segments),
                    squares[rows],
                    angles[rows] if self.rotate else angles,
                    mirrored[rows] if len(mirrored) else mirrored,
                    self.size,
                    n_threads,
                )
        return Segments(values, np.arange(len(images) + 1) * self.n_segments, squares)

    def turns(self, images: list[Image], seed: int) -> tuple[Floats, Booleans]:
        """Return how the subwindows of images are turned and mirrored.

        Parameters
        ----------
        images : list of ndarray
            Images in canonical form.
        seed : int
            The seed of :meth:`cut`.

        Returns
        -------
        angles : ndarray of shape (n,)
            Radians.
        mirrored : ndarray of shape (n,), bool
            Which are mirrored.
        """
        angles, mirrored = self._turns(_seeds(images, seed))
        return angles.astype(np.float64), mirrored

    def _turns(self, seeds: Seeds) -> tuple[npt.NDArray[np.float32], Booleans]:
        n = len(seeds) * self.n_segments
        if not self.rotate and not self.mirror:
            return np.zeros(n, np.float32), np.zeros(n, bool)
        u = uniforms(~seeds, self.n_segments, 2).reshape(-1, 2)
        return (2 * np.pi * self.rotate * u[:, 0]).astype(np.float32), self.mirror & (u[:, 1] < 0.5)

    def _squares(self, images: list[Image], seeds: Seeds) -> Ints:
        """Draw the squares of images: upper left row and column, and side."""
        places = [self._places(*image.shape[:2]) for image in images]
        rows = np.array(places, dtype=np.int64).reshape(-1, 4)
        return draw_squares(seeds, rows, int(self.n_segments))

    def _places(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return the least side, the number of sides, and the rows and columns plus one."""
        smaller = min(height, width)
        low, high = self.side_range
        # Products that are integers up to rounding, as 0.1 × 30 is, count as integers.
        least = min(max(ceil(low * smaller - 1e-9), 1), smaller)
        most = max(least, floor(high * smaller + 1e-9))
        return least, most - least + 1, height + 1, width + 1

    def spread(self, item: Image, places: Ints, values: Floats) -> Floats:
        """Return the mean over the subwindows that cover each pixel.

        Parameters
        ----------
        item : ndarray of shape (height, width, channels)
            An image.
        places : ndarray of shape (n, 3), int32
            The squares of its subwindows.
        values : ndarray of shape (n, q)
            Values of the subwindows.

        Returns
        -------
        means : ndarray of shape (height, width, q)
            NaN where no subwindow is.
        """
        return spread_maps(item.shape[:2], places, values[:, None, None, :])

    def plot(self, item: Image, means: Floats, ax: "Axes") -> None:
        """Draw the image in grey, with a heat map of the values.

        Parameters
        ----------
        item : ndarray of shape (height, width, channels)
            An image.
        means : ndarray of shape (height, width)
            A value for each pixel.
        ax : matplotlib Axes
            Where to draw.
        """
        ax.imshow(item.mean(axis=2), cmap="gray")
        heat = ax.imshow(means, cmap="inferno", alpha=0.5, interpolation="bilinear")
        ax.figure.colorbar(heat, ax=ax, shrink=0.8, label=MEANS)
        ax.set_axis_off()

    def _check_channels(self, images: list[Image], numbers: range | None) -> None:
        """Check that the converted images have the channels of the training images."""
        if self.color != "auto" or not images:
            return
        fitted = hasattr(self, "n_channels_")
        expected = self.n_channels_ if fitted else images[0].shape[2]
        others = "the training images" if fitted else "others"
        for i, image in enumerate(images):
            if image.shape[2] != expected:
                which = "an image" if numbers is None else f"image {numbers[i]}"
                raise ValueError(
                    f"{which} has {image.shape[2]} channels and {others} have {expected}; set "
                    "color='grey' or color='rgb' to convert them all."
                )


def _known(images: Objects) -> Objects:
    """Return the images whose pixels are known: all, or the first of those in files."""
    return images if isinstance(images, list) else images[:1]


def _seeds(images: list[Image], seed: int) -> Seeds:
    """Return the seeds of images: equal for equal pixels, whatever their type."""
    return np.array([content_seed(seed, [_as_bytes(image)]) for image in images], dtype=np.uint64)


def _as_bytes(image: Image) -> Image:
    """Return an image as bytes if its pixels are integers from 0 to 255."""
    if image.dtype == np.uint8 or image.min() < 0 or image.max() > 255:
        return image
    rounded = image.astype(np.uint8)
    return rounded if (rounded == image).all() else image


def spread_maps(shape: tuple[int, ...], squares: Ints, maps: Floats) -> Floats:
    """Return the mean over the squares that cover each pixel of their maps, (n, grid, grid, q)."""
    sums = np.zeros((*shape, maps.shape[3]))
    counts = np.zeros(shape)
    paste_subwindows(squares, maps, sums, counts)
    return mean_of(sums, counts)
