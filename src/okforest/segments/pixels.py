"""Segmentation: the label of every pixel, from the subwindows that cover it."""

from collections.abc import Iterator
from copy import copy
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Floats, Ints
from okforest._utils.compat import Interval, StrOptions, fit_context
from okforest._utils.plotting import new_axes
from okforest._utils.progress import ProgressBar
from okforest._utils.resources import check_memory, thread_count
from okforest._utils.state import FittedState
from okforest.kernels import as_kernel
from okforest.metrics import intersection_over_union
from okforest.models import OKExtraTrees
from okforest.models.base import OKModel
from okforest.segments.base import Objects
from okforest.segments.images import Image
from okforest.segments.learners import check_estimator, with_shared_parameters
from okforest.segments.model import MAX_SEGMENTS, MaxSegments, joined
from okforest.segments.subwindows import RandomSubwindows, spread_maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Labels = npt.NDArray[Any]
N_DEFAULT_TREES = 10
MOST_NAMED = 6  # labels in the legend of a plot
# The mean over all angles of the side of the largest turned square within a unit square.
TURNED = 2 * np.sqrt(2) / np.pi * np.log(1 + np.sqrt(2))


class PixelClassifier(ClassifierMixin, FittedState):
    """Labels the pixels of images by the votes of the subwindows that cover them.

    With ``target="map"``, the output of a subwindow is its own label map, of a few cells: the model
    on subwindows learns labels together with their arrangement. With ``target="center"`` the output
    is the label of the pixel in the middle, and a subwindow votes with it for all its pixels.

    Parameters
    ----------
    segmenter : RandomSubwindows
        How images are cut. Subwindows are turned and mirrored in training only.
    estimator : estimator, optional
        The model on subwindows, from pixels to vectors of zeros and ones: any model of okforest
        with the linear kernel, or any regressor of scikit-learn for several outputs. By default
        ``OKExtraTrees(10, search_rank=0.95)``.
    target : {"map", "center"}, default="map"
        The output of a subwindow.
    grid : int, default=8
        Number of cells along each side of the map of a subwindow.
    n_votes : int, default=10
        Mean number of subwindows that cover a pixel in prediction. At least ``n_segments`` are cut.
    max_segments : int, "auto" or None, default="auto"
        The estimator is fitted to at most this number of training subwindows, equally many of each
        image and at least one, so that the memory of ``fit`` is bounded. "auto" is a million, or
        one per image if there are more images, with a warning if there are more subwindows; None is
        no bound. With each subwindow, ``fit`` holds 8 · grid² · n_classes bytes of label maps.
    random_state : int, RandomState instance or None, default=None
        The seed of the subwindows, and of the estimator if it has none of its own.
    n_jobs : int, optional
        Number of threads; -1 for all cores. It is passed on to an estimator without its own.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    classes_ : ndarray
        The labels of pixels, sorted.
    segmenter_ : RandomSubwindows
        The segmenter, with what it has learnt from the training images.
    estimator_ : estimator
        The fitted model on subwindows.
    seed_ : int
        The seed of the subwindows.

    See Also
    --------
    okforest.metrics.intersection_over_union, okforest.metrics.boundary_f1 : Measure predictions.

    References
    ----------
    M. Dumont, R. Marée, L. Wehenkel, P. Geurts, "Fast multi-class image annotation with random
    subwindows and multiple output randomized trees", VISAPP 2009.

    Examples
    --------
    >>> from okforest.datasets import make_textures
    >>> from okforest.metrics import intersection_over_union
    >>> from okforest.segments import PixelClassifier, RandomSubwindows
    >>> images, maps = make_textures(12, seed=0)
    >>> segmenter = RandomSubwindows(200, side_range=(0.2, 0.3))
    >>> model = PixelClassifier(segmenter, random_state=0).fit(images[:8], maps[:8])
    >>> model.predict(images[8:]).shape
    (4, 64, 64)
    >>> bool(intersection_over_union(maps[8:], model.predict(images[8:])) > 0.5)
    True
    """

    classes_: Labels
    segmenter_: RandomSubwindows
    estimator_: Any
    seed_: int

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "segmenter": [RandomSubwindows],
        "estimator": [BaseEstimator, None],
        "target": [StrOptions({"map", "center"})],
        "grid": [Interval(Integral, 1, None, closed="left")],
        "n_votes": [Interval(Integral, 1, None, closed="left")],
        "max_segments": MAX_SEGMENTS,
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        segmenter: Any,
        estimator: Any = None,
        *,
        target: Literal["map", "center"] = "map",
        grid: int = 8,
        n_votes: int = 10,
        max_segments: MaxSegments = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.segmenter = segmenter
        self.estimator = estimator
        self.target = target
        self.grid = grid
        self.n_votes = n_votes
        self.max_segments = max_segments
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Cut images and their label maps, and fit the estimator.

        Parameters
        ----------
        X : array-like or list of n images
            Images, as the segmenter takes them.
        y : array-like of shape (n, height, width), or list of n arrays
            Label maps of the sizes of the images; labels of any type.

        Returns
        -------
        self : object
            The fitted model.
        """
        base = OKExtraTrees(N_DEFAULT_TREES, search_rank=0.95)
        base = base if self.estimator is None else self.estimator
        check_estimator(self, base, "regressor")
        if isinstance(base, OKModel) and not as_kernel(base.kernel).numeric:
            raise ValueError(
                f"kernel={base.kernel!r} of the estimator; the outputs of PixelClassifier are "
                "vectors of zeros and ones: use kernel='linear'."
            )
        images = self.segmenter.check(X)
        if len(images) == 0:
            raise ValueError("X has no images; pass at least one, with its label map.")
        maps = _check_maps(y, len(images))
        self.classes_ = np.unique(np.concatenate([np.unique(labels) for labels in maps]))
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has the single label {self.classes_[0]}; pixels need at least 2 classes."
            )
        self.seed_ = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        self.segmenter_ = self.segmenter.resolve(images)
        S, targets = self._training_set(images, maps)
        self.estimator_ = with_shared_parameters(clone(base), self).fit(S, targets)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of labels at every pixel.

        Parameters
        ----------
        X : array-like or list of n images
            Images.

        Returns
        -------
        P : ndarray of shape (n, height, width, n_classes), or list of n arrays
            An array if all images have the same size.
        """
        return _stacked(list(self._probabilities(X)))

    def predict(self, X: Any) -> Any:
        """Return the most probable label of every pixel.

        Parameters
        ----------
        X : array-like or list of n images
            Images.

        Returns
        -------
        y : ndarray of shape (n, height, width), or list of n arrays
            An array if all images have the same size.
        """
        probabilities = self._probabilities(X)
        return _stacked([self.classes_[p.argmax(axis=2)] for p in probabilities])

    def score(self, X: Any, y: Any) -> float:
        """Return the intersection over union of true and predicted label maps.

        Parameters
        ----------
        X : array-like or list of n images
            Images.
        y : array-like of shape (n, height, width), or list of n arrays
            Their label maps.

        Returns
        -------
        score : float
            The mean over labels; see :func:`okforest.metrics.intersection_over_union`.
        """
        return intersection_over_union(y, self.predict(X))

    def plot(self, image: Any, labels: Any = None, ax: "Axes | None" = None) -> "Axes":
        """Draw an image with its labels as colours, which a legend names if there are few.

        Parameters
        ----------
        image : array or path
            An image.
        labels : array-like of shape (height, width), optional
            A label map; by default the prediction.
        ax : matplotlib Axes, optional
            Where to draw; by default new axes.

        Returns
        -------
        ax : matplotlib Axes
            The axes.
        """
        check_is_fitted(self)
        pixels = self.segmenter_.check([image])[0]
        labels = self.predict([image])[0] if labels is None else np.asarray(labels)
        ax = new_axes(ax)
        ax.imshow(pixels.mean(axis=2), cmap="gray")
        codes = np.searchsorted(self.classes_, labels)
        last = max(len(self.classes_) - 1, 1)
        colours = ax.imshow(codes, cmap="tab10" if last < 10 else "viridis", alpha=0.45, vmin=0,
                            vmax=9 if last < 10 else last, interpolation="nearest")  # fmt: skip
        ax.set_axis_off()
        shown = np.unique(codes)
        if len(shown) <= MOST_NAMED:
            for code in shown:
                colour = colours.to_rgba(code, alpha=0.45)
                ax.scatter([], [], color=colour, marker="s", label=str(self.classes_[code]))
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(shown),
                      frameon=False, handletextpad=0.1, columnspacing=1.0)  # fmt: skip
        return ax

    def _training_set(self, images: Objects, maps: list[Labels]) -> tuple[Any, Floats]:
        """Return subwindows of all images, and their targets."""
        total = self.segmenter_.count(images)
        batches = self._labelled(images, maps)
        S, _, cells = joined(batches, len(images), total, self.max_segments)
        n_classes = len(self.classes_)
        width = self._grid() ** 2 * n_classes
        check_memory(
            8 * len(S) * width,
            f"the array of the label maps of {len(S)} subwindows, {width} numbers each,",
            "Set a smaller grid, target='center', or fewer subwindows by max_segments.",
        )
        return S, np.eye(n_classes)[cells].reshape(len(S), width)

    def _labelled(self, images: Objects, maps: list[Labels]) -> Iterator[tuple[Any, ...]]:
        """Yield the subwindows of an image, the image of each, and the labels of its cells."""
        for i, image in enumerate(images):
            if maps[i].shape != image.shape[:2]:
                raise ValueError(
                    f"image {i} has {image.shape[0]} × {image.shape[1]} pixels and its label map "
                    f"has shape {maps[i].shape}; resize one of them."
                )
            segments = self.segmenter_.cut([image], self.seed_, thread_count(self.n_jobs))
            codes = np.searchsorted(self.classes_, maps[i])
            codes = codes.astype(np.min_scalar_type(len(self.classes_)))
            turns = self.segmenter_.turns([image], self.seed_)
            cells = _cells(codes, segments.places, *turns, self._grid())
            yield segments.values, segments.owner + i, cells

    def _grid(self) -> int:
        return self.grid if self.target == "map" else 1

    def _probabilities(self, X: Any) -> Iterator[Floats]:
        """Yield the probabilities of labels at the pixels of one image at a time."""
        check_is_fitted(self)
        images = self.segmenter_.check(X)
        bar = ProgressBar(len(images), "labelling images") if self.verbose else None
        for i, image in enumerate(images):
            yield self._votes(image)
            if bar is not None:
                bar(i + 1)

    def _votes(self, image: Image) -> Floats:
        """Return the mean votes of the subwindows that cover each pixel."""
        segmenter = self._upright(image)
        segments = segmenter.cut([image], self.seed_, thread_count(self.n_jobs))
        grid = self._grid()
        votes = np.asarray(self.estimator_.predict(segments.values), dtype=np.float64)
        maps = votes.reshape(len(votes), grid, grid, len(self.classes_))
        means = spread_maps(image.shape[:2], segments.places, maps)
        return _filled(means)

    def _upright(self, image: Image) -> RandomSubwindows:
        """Return a segmenter whose upright subwindows cover the pixels of an image often enough."""
        trained, (height, width) = self.segmenter_, image.shape[:2]
        low, high = trained.side_range
        if trained.rotate:  # squares have the mean size of the turned ones
            low, high = TURNED * low, TURNED * high
        side = (low + high) / 2 * min(height, width)
        n = max(trained.n_segments, int(np.ceil(self.n_votes * height * width / side**2)))
        upright: RandomSubwindows = copy(trained).set_params(
            n_segments=n, side_range=(low, high), rotate=False, mirror=False
        )
        return upright

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        if self.classes_.ndim != 1:
            raise ValueError("classes_ is not an array of labels")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        return tags


def _check_maps(y: Any, n: int) -> list[Labels]:
    if y is None:
        raise ValueError("PixelClassifier requires y to be passed, but the target y is None.")
    maps = [np.asarray(labels) for labels in y]
    if len(maps) != n:
        raise ValueError(f"X has {n} images and y has {len(maps)} label maps; pass one for each.")
    for i, labels in enumerate(maps):
        if labels.ndim != 2:
            raise ValueError(
                f"label map {i} has shape {labels.shape}; expected (height, width), a label for "
                "each pixel of its image."
            )
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError(
                f"label map {i} has NaN or infinite values; every pixel needs a label. Give "
                "unknown pixels a label of their own."
            )
    return maps


def _cells(codes: Labels, squares: Ints, angles: Floats, mirrored: Any, grid: int) -> Labels:
    """Return the labels at the centres of the cells of subwindows, shape (n, grid, grid)."""
    row, col, side = (squares[:, k, None, None].astype(float) for k in range(3))
    centres = (np.arange(grid) + 0.5) / grid - 0.5
    v, u = np.meshgrid(centres, centres, indexing="ij")
    u = np.where(mirrored[:, None, None], -u, u)
    cosine, sine = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    scale = side / (np.abs(cosine) + np.abs(sine))
    x = np.floor(col + side / 2 + scale * (u * cosine - v * sine)).astype(np.intp)
    y = np.floor(row + side / 2 + scale * (u * sine + v * cosine)).astype(np.intp)
    return codes[np.clip(y, 0, codes.shape[0] - 1), np.clip(x, 0, codes.shape[1] - 1)]


def _filled(means: Floats) -> Floats:
    """Give pixels that no subwindow covers the values of the nearest covered one."""
    empty = np.isnan(means[:, :, 0])
    if not empty.any():
        return means
    from scipy.ndimage import distance_transform_edt

    nearest = distance_transform_edt(empty, return_distances=False, return_indices=True)
    return means[tuple(nearest)]


def _stacked(items: list[Any]) -> Any:
    """Return equal-sized arrays as one array, others as a list."""
    return np.stack(items) if len({item.shape for item in items}) == 1 else items
