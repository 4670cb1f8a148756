"""The trees of an index, which several indexes can share."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Ints
from okforest._utils.parameters import as_integer
from okforest._utils.progress import progress_of
from okforest._utils.resources import thread_count
from okforest.engine import Trees, are_byte_trees, reach_leaves
from okforest.models import OKTotallyRandomTrees
from okforest.persistence import FileFormatError
from okforest.persistence.atomic import replacing
from okforest.persistence.container import read, write
from okforest.retrieval.pictures import Picture, Source, as_sources, read_batches
from okforest.segments import RandomSubwindows

UInt32s = npt.NDArray[np.uint32]
Nodes = UInt32s
Offsets = npt.NDArray[np.int64]

KIND, VERSION = "okforest vocabulary", 1  # all files of an index have this version
MIN_PER_IMAGE = 10  # subwindows of each image that trees are grown on: fewer images are read
MAX_FEATURES = 2**24
MAX_VALUES = 2**28  # bytes of the subwindows of an image
QUERY_SEEDS = 2**63  # seeds of vocabularies are smaller
PARAMETERS = ("n_segments", "side_range", "size", "color", "rotate", "mirror")


@contextmanager
def reading(
    path: str | os.PathLike[str],
    kind: str,
    title: str,
    *,
    mapped: bool,
    verify: bool,
    version: int | None = VERSION,
) -> Iterator[tuple[dict[str, Any], list[npt.NDArray[Any]]]]:
    """Read a file of an index; errors in its content become FileFormatErrors that name it."""
    _, content, arrays = read(path, mapped=mapped, verify=verify)
    try:
        if not isinstance(content, dict) or content.get("kind") != kind:
            raise ValueError(f"it is not {title}")
        if content.get("version") != version:
            raise ValueError(f"version {content.get('version')} is unknown; upgrade okforest")
        yield content, arrays
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise FileFormatError(f"{os.fspath(path)} cannot be read: {error}.") from error


class Reached(NamedTuple):
    """The leaves that subwindows reach."""

    leaves: UInt32s  # shape (n_subwindows, n_trees), numbered over all trees
    squares: Ints  # shape (n_subwindows, 3): upper left row and column, and side


class Vocabulary:
    """Totally randomised trees whose leaves are the words of an image index.

    Trees are grown without labels, on subwindows of some images. Indexes that share a vocabulary
    can be merged, and searched together. It is usually made by :meth:`grow`.

    Parameters
    ----------
    segmenter : RandomSubwindows
        How images are cut; its ``color`` is not "auto".
    nodes : ndarray of shape (n_nodes, 2), uint32
        The inner nodes of the trees, in the form of :func:`okforest.engine.are_byte_trees`.
    offsets : ndarray of shape (n_trees + 1,), int64
        Where the nodes of each tree begin.
    seed : int
        The seed of the subwindows.

    Attributes
    ----------
    key : str
        A hash of all of the above. Indexes with equal keys share a vocabulary.

    See Also
    --------
    SubwindowIndex : An index of images on the leaves of a vocabulary.

    Examples
    --------
    >>> import numpy as np
    >>> from okforest.retrieval import Vocabulary
    >>> images = np.random.default_rng(0).integers(0, 256, (5, 40, 30)).astype(np.uint8)
    >>> vocabulary = Vocabulary.grow(images, n_trees=3)
    >>> vocabulary.n_trees, vocabulary.n_leaves
    (3, 2856)
    """

    def __init__(self, segmenter: RandomSubwindows, nodes: Nodes, offsets: Offsets, seed: int):
        segmenter.check([])
        if segmenter.color == "auto":
            raise ValueError("color='auto'; a vocabulary needs 'grey', 'rgb' or 'hsv'.")
        n_channels = 1 if segmenter.color == "grey" else 3
        self.n_features = int(segmenter.size) ** 2 * n_channels
        if self.n_features > MAX_FEATURES:
            raise ValueError(f"subwindows of {self.n_features} values are too large; reduce size.")
        self.most_subwindows = MAX_VALUES // self.n_features
        if segmenter.n_segments > self.most_subwindows:
            raise ValueError(
                f"n_segments={segmenter.n_segments}; with {self.n_features} values in each "
                f"subwindow, an image can have at most {self.most_subwindows}."
            )
        if not are_byte_trees(nodes, offsets, self.n_features):
            raise ValueError("the nodes are not trees on these subwindows.")
        self.segmenter, self.nodes, self.offsets, self.seed = segmenter, nodes, offsets, seed
        self.key = self._hash()

    @classmethod
    def grow(
        cls,
        images: Any,
        *,
        segmenter: RandomSubwindows | None = None,
        n_trees: int = 10,
        min_samples_split: int = 2,
        max_segments: int = 100_000,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> "Vocabulary":
        """Grow trees on subwindows of images.

        Parameters
        ----------
        images : path-like, array-like or list
            A folder, image files, or arrays of bytes.
        segmenter : RandomSubwindows, optional
            How images are cut; by default ``RandomSubwindows(200)``. With ``color="auto"``,
            subwindows are grey if all images are, and otherwise RGB.
        n_trees : int, default=10
            Number of trees.
        min_samples_split : int, default=2
            Number of subwindows that a node needs to be split.
        max_segments : int, default=100_000
            Number of subwindows that trees are grown on, at most. Growth takes four bytes for each
            of their values.
        random_state : int, default=0
            The seed of the trees and of the subwindows.
        n_jobs : int, optional
            Number of threads, as in scikit-learn.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        vocabulary : Vocabulary
            The trees.
        """
        segmenter = RandomSubwindows(200) if segmenter is None else segmenter
        n_trees = as_integer("n_trees", n_trees, 1)
        min_samples_split = as_integer("min_samples_split", min_samples_split, 2)
        max_segments = as_integer("max_segments", max_segments, 2)
        random_state = as_integer("random_state", random_state, 0, QUERY_SEEDS - 1)
        segmenter.check([])
        n_threads = thread_count(n_jobs)
        sources = as_sources(images)
        if not sources:
            raise ValueError("there are no images to grow trees on; pass at least one.")
        pictures, n_each = _sample(
            sources, int(segmenter.n_segments), max_segments, random_state, n_threads, verbose
        )
        color = segmenter.color
        if color == "auto":
            color = "grey" if all(picture.shape[2] == 1 for picture in pictures) else "rgb"
        settings = {name: getattr(segmenter, name) for name in PARAMETERS} | {"color": color}
        cutter = RandomSubwindows(**settings | {"n_segments": n_each})
        values = cutter.cut(cutter.check(pictures), random_state, n_threads).values
        forest = OKTotallyRandomTrees(
            n_trees,
            min_samples_split=min_samples_split,
            random_state=random_state % 2**32,
            n_jobs=n_jobs,
            verbose=verbose,
        ).fit(values.astype(np.float32))
        return cls(RandomSubwindows(**settings), *pack_trees(forest.trees_), seed=random_state)

    def __repr__(self) -> str:
        return f"<Vocabulary of {self.n_trees} trees, {self.n_leaves} leaves, {self.key[:8]}>"

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.offsets) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return len(self.nodes) + self.n_trees

    def reach(
        self,
        pictures: list[Picture],
        n_subwindows: int | None = None,
        n_threads: int = 1,
        *,
        query: bool = False,
    ) -> Reached:
        """Cut pictures, and return the leaves that their subwindows reach.

        Parameters
        ----------
        pictures : list of ndarray of shape (height, width, channels), uint8
            Pictures.
        n_subwindows : int, optional
            Number of subwindows of each; by default as many as the segmenter draws.
        n_threads : int, default=1
            Number of threads; it does not change the result.
        query : bool, default=False
            Whether these are queries. Their subwindows are drawn independently of the subwindows of
            indexed images: an image of the index would otherwise find nothing but itself in trees
            that were grown on its subwindows until each was alone in a leaf.

        Returns
        -------
        reached : Reached
            Leaves and squares, picture by picture.
        """
        cutter = self.segmenter
        if n_subwindows is not None:
            n_subwindows = as_integer("n_subwindows", n_subwindows, 1, self.most_subwindows)
            cutter = RandomSubwindows(**self._settings() | {"n_segments": n_subwindows})
        seed = self.seed + QUERY_SEEDS if query else self.seed
        segments = cutter.cut(pictures, seed, n_threads)
        leaves = reach_leaves(self.nodes, self.offsets, segments.values, n_threads)
        return Reached(leaves, segments.places)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary to a file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        settings = self._settings() | {"side_range": list(self.segmenter.side_range)}
        content = {"kind": KIND, "version": VERSION, "segmenter": settings, "seed": self.seed}
        with replacing(path) as file:
            write(file, content, [self.nodes, self.offsets])

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> "Vocabulary":
        """Read a vocabulary; its nodes are mapped into memory.

        Parameters
        ----------
        path : str or path-like
            The file.
        verify : bool, default=True
            Whether to compare the nodes with their checksum. That they are trees is always checked.

        Returns
        -------
        vocabulary : Vocabulary
            The trees.
        """
        with reading(path, KIND, "a vocabulary", mapped=True, verify=verify) as (content, arrays):
            nodes, offsets = arrays
            settings = dict(content["segmenter"])
            settings["side_range"] = tuple(settings["side_range"])
            seed = content["seed"]
            known = settings.keys() == set(PARAMETERS) and type(seed) is int
            if not known or not 0 <= seed < QUERY_SEEDS:
                raise ValueError("its parameters are unknown")
            return cls(RandomSubwindows(**settings), nodes, offsets, seed)

    def _settings(self) -> dict[str, Any]:
        values = {name: getattr(self.segmenter, name) for name in PARAMETERS}
        return {n: v.item() if isinstance(v, np.generic) else v for n, v in values.items()}

    def _hash(self) -> str:
        settings = self._settings() | {"seed": self.seed}
        digest = blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.offsets).data)
        digest.update(np.ascontiguousarray(self.nodes).data)
        return digest.hexdigest()


def _sample(
    sources: list[Source],
    n_segments: int,
    max_segments: int,
    random_state: int,
    n_threads: int,
    verbose: int,
) -> tuple[list[Picture], int]:
    """Read the images that trees are grown on; return them, and the number of subwindows of each.

    These are the first ones of the subwindows that an index has of the image.
    """
    least = min(MIN_PER_IMAGE, n_segments)
    n_each = min(n_segments, max(least, ceil(max_segments / len(sources))))
    n_images = max(1, min(len(sources), max_segments // n_each))
    order = np.random.default_rng(random_state).permutation(len(sources))
    chosen = [sources[i] for i in np.sort(order[:n_images])]
    progress = progress_of(0, len(chosen), verbose, None, "reading images")
    pictures: list[Picture] = []
    n_unreadable = 0
    for batch, unreadable in read_batches(chosen, n_threads):
        pictures += [image.picture for image in batch]
        n_unreadable += len(unreadable)
        progress(len(pictures) + n_unreadable)
    progress.close()
    if not pictures:
        raise ValueError(f"none of {len(chosen)} images can be read; pass images or image files.")
    return pictures, n_each


def pack_trees(trees: Trees) -> tuple[Nodes, Offsets]:
    """Return the nodes of trees grown on bytes, as :func:`okforest.engine.are_byte_trees` has them.

    Returns
    -------
    nodes : ndarray of shape (n_nodes, 2), uint32
        The inner nodes of all trees.
    offsets : ndarray of shape (n_trees + 1,), int64
        Where the nodes of each tree begin.
    """
    packed = [_pack(trees[t]) for t in range(len(trees))]
    offsets = np.cumsum([0, *(len(nodes) for nodes in packed)], dtype=np.int64)
    return np.concatenate(packed), offsets


def _pack(tree: Trees) -> Nodes:
    """Pack one tree: its inner nodes, in preorder."""
    levels = _levels(tree)
    n_inner = np.zeros(len(tree.left), dtype=np.int64)  # sizes of subtrees without leaves
    for inner in reversed(levels):
        left = tree.left[inner]
        n_inner[inner] = 1 + n_inner[left] + n_inner[left + 1]
    position = np.zeros(len(tree.left), dtype=np.int64)
    for inner in levels:
        left = tree.left[inner]
        position[left] = position[inner] + 1
        position[left + 1] = position[left] + n_inner[left]
    inner = np.flatnonzero(tree.left >= 0)
    # A byte is at most a threshold if it is at most the integer below it.
    threshold = np.floor(tree.threshold[inner]).astype(np.uint32)
    nodes = np.empty((len(inner), 2), dtype=np.uint32)
    nodes[position[inner], 0] = tree.feature[inner].astype(np.uint32) << 8 | threshold
    nodes[position[inner], 1] = position[tree.left[inner] + 1]
    return nodes


def _levels(tree: Trees) -> list[npt.NDArray[np.intp]]:
    """Return the inner nodes of each depth, from the root on."""
    levels = []
    nodes = np.array([0])
    while len(inner := nodes[tree.left[nodes] >= 0]):
        levels.append(inner)
        left = tree.left[inner].astype(np.intp)
        nodes = np.concatenate([left, left + 1])
    return levels
