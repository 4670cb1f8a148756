"""The compiled core, as functions of trees and arrays. Nothing else imports it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from okforest import _core
from okforest._utils.arrays import (
    Booleans,
    Floats,
    Inputs,
    Ints,
    Progress,
    aligned,
    by_columns,
    by_rows,
)
from okforest._utils.resources import fitting_threads
from okforest.engine.plan import GrowthPlan, GrowthRules
from okforest.engine.trees import GrownRound, LeafPartition, Trees, check_arrays

FROBENIUS = "a tree grown by criterion='frobenius'"
FROBENIUS_ADVICE = (
    "Limit the leaves by min_samples_leaf, max_leaf_nodes or max_depth, or use "
    "criterion='variance'."
)

# Bins pay off from this number of rows on, up to this number of output columns, with at least this
# number of rows for each column.
LEAST_BINNED_ROWS = 1000
MOST_BINNED_COLUMNS = 32
BINNED_ROWS_PER_COLUMN = 100

SIMD_LEVELS = ("avx512", "avx2", "baseline")


def grow(
    plan: GrowthPlan, trees: range, *, n_threads: int = 1, progress: Progress | None = None
) -> Trees:
    """Grow some of the trees of a plan.

    Parameters
    ----------
    plan : GrowthPlan
        The data, the rules and the seed.
    trees : range
        Numbers of the trees to grow, in steps of one. A tree depends on the plan and on its number
        alone.
    n_threads : int
        Number of threads; it does not change the result. There are fewer if their memory would
        not fit in half of the machine's.
    progress : callable, optional
        Called with the number of trees grown, about twenty times a second.
    """
    are_classes = plan.outputs.ndim == 1
    arrays = _core.grow(
        X=by_columns(plan.X),
        outputs=np.empty((len(plan.outputs), 0)) if are_classes else aligned(plan.outputs),
        classes=plan.outputs if are_classes else None,
        gram=plan.gram,
        row_weight=aligned(plan.row_weight),
        row_sums=plan.row_sums,
        row_errors=plan.row_errors,
        seed=plan.seed,
        first_tree=trees.start,
        n_trees=len(trees),
        n_draws=plan.n_draws,
        n_threads=fitting_threads(
            n_threads, plan.tree_bytes(), plan.outputs.nbytes, FROBENIUS, FROBENIUS_ADVICE
        ),
        n_categories=plan.n_categories,
        progress=progress,
        **vars(plan.rules),
    )
    # A drawn row weighs as often as it was drawn: the draw has already used its own weight.
    member_weight = np.ones(len(plan.row_weight)) if plan.n_draws else plan.row_weight
    return Trees(**arrays, row_weight=member_weight, n_categories=plan.n_categories)


def apply(trees: Trees, X: Inputs, n_threads: int = 1) -> Ints:
    """Return the leaf that each row of X reaches in each tree, shape (n, n_trees)."""
    check_features(trees, X)
    return _core.apply(by_rows(X), vars(trees), n_threads)


def check_features(trees: Trees, X: Inputs) -> None:
    """Raise a ValueError unless X has the features that trees were grown on."""
    if X.shape[1] != len(trees.n_categories):
        raise ValueError(
            f"X has {X.shape[1]} features; these trees were grown on {len(trees.n_categories)}."
        )


def leaf_weights(trees: Trees, leaves: Ints, n_threads: int = 1) -> sp.csr_array:
    """Return the mean over trees of the leaves' weights over training rows.

    Where a leaf is -1, its tree does not contribute to the row's mean.
    """
    data, indices, indptr = _core.leaf_weights(aligned(leaves), vars(trees), n_threads)
    if len(data) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # of one type, so that SciPy does not copy the indices
    return sp.csr_array((data, indices, indptr), shape=(len(leaves), len(trees.row_weight)))


def count_members(trees: Trees, leaves: Ints) -> tuple[int, int]:
    """Return the number of leaves, without those that are -1, and of their members."""
    return _core.count_members(aligned(leaves), vars(trees))


def find_nearest(
    weights: sp.csr_array,
    places: npt.NDArray[np.integer],
    gram: Floats,
    squares: Floats,
    panels: npt.NDArray[np.float32],
    half_squares: npt.NDArray[np.float32],
    largest: float,
    n_threads: int = 1,
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the candidate c nearest to F = Σ_i w_i c_i for each row of weights, and its cost.

    The cost is ⟨c, c⟩ − 2⟨c, F⟩. The search is in float32, the choice that of float64.

    Parameters
    ----------
    weights : csr_array of shape (n, n_columns)
        The weights.
    places : ndarray of shape (n_columns,)
        The candidates that columns stand for.
    gram : ndarray of shape (n_candidates, n_candidates)
        Inner products; only the rows at these places are read.
    squares : ndarray of shape (n_candidates,)
        Squared norms.
    panels : ndarray of shape (n_panels, n_candidates, 64), float32
        The Gram matrix divided by any number, 64 columns in each panel, the last padded with zeros.
    half_squares : ndarray of shape (64 * n_panels,), float32
        Half of the squares, divided by the same number, padded with infinity.
    largest : float
        The largest absolute entry of the panels.
    n_threads : int
        Number of threads; it does not change the result.
    """
    return _core.find_nearest(
        *_csr_arrays(weights),
        places.astype(np.int32),
        gram,
        np.ascontiguousarray(squares),
        panels,
        half_squares,
        largest,
        n_threads,
    )


def leaf_means(trees: Trees, leaves: Ints, values: Floats, n_threads: int = 1) -> Floats:
    """Return ``leaf_weights(trees, leaves) @ values`` without the matrix; values have two axes."""
    values = np.require(values, requirements=["C", "A"])
    return _core.leaf_means(aligned(leaves), vars(trees), values, n_threads)


@dataclass(frozen=True)
class LeafVectors:
    """A vector for every leaf, which predictions add up.

    Parameters
    ----------
    trees : Trees
        The trees.
    places : ndarray of shape (n_nodes,), int32
        The row of each leaf's vector in ``vectors``, or ~row if it is one of ``values``.
    vectors : ndarray of shape (n_vectors, q)
        Vectors of leaves.
    values : ndarray of shape (n, q)
        Vectors that leaves share.
    """

    trees: Trees
    places: Ints
    vectors: Floats
    values: Floats

    def sums(self, X: Inputs, start: Floats, factor: float, n_threads: int = 1) -> Floats:
        """Return start + factor * the sum of the vectors of the leaves that each row reaches."""
        check_features(self.trees, X)
        arrays = (self.places, self.vectors, self.values)
        return _core.leaf_sums(by_rows(X), vars(self.trees), *arrays, start, factor, n_threads)


def leaf_vectors(
    trees: Trees, values: Floats, most_bytes: int, n_threads: int = 1
) -> LeafVectors | None:
    """Return the means of the values of all leaves; None if they take more than so many bytes.

    A leaf whose members have equal values shares those of one of them, which takes no memory.
    """
    values = np.require(values, requirements=["C", "A"])
    most_means = most_bytes // (8 * max(1, values.shape[1]))
    places, means = _core.leaf_table(vars(trees), values, most_means, n_threads)
    return LeafVectors(trees, places, means, values) if len(places) else None


def quantile_places(weights: sp.csr_array, ranks: Ints, levels: Floats, n_threads: int = 1) -> Ints:
    """Return the ranks of weighted quantiles, of shape (n, n_levels).

    They are the ranks of the first outputs up to which the weights of a row sum to at least a share
    of their total. With negative weights, the largest sum so far counts; if none is positive, all
    outputs weigh the same.

    Parameters
    ----------
    weights : csr_array of shape (n, n_train)
        The weights.
    ranks : ndarray of shape (n_train,), int32
        The rank of each output; all differ.
    levels : ndarray of shape (n_levels,)
        The shares.
    n_threads : int
        Number of threads; it does not change the result.
    """
    return _core.quantile_places(*_csr_arrays(weights), ranks, levels, n_threads)


def _csr_arrays(matrix: sp.csr_array) -> tuple[Any, Any, Any]:
    return (
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        np.ascontiguousarray(matrix.data, dtype=np.float64),
    )


def near_candidates(
    queries: Floats,
    values: npt.NDArray[Any],
    half_squares: npt.NDArray[np.float32],
    reach: Floats,
    k: int,
    most: int,
    n_threads: int = 1,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return, as offsets and positions, the candidates c that may be the k nearest to each query q.

    These have the largest ⟨c, q⟩ less half of a square, which is given. The search is in float32,
    with a bound on its rounding: none of the k nearest is missing. A query has no candidates at all
    if more than ``most`` of them would remain.

    Parameters
    ----------
    queries : ndarray of shape (n, d)
        The queries, divided by the same number as the candidates.
    values : ndarray of shape (n_panels, d, 64), float32, or (n_panels, d), uint64
        Vectors divided by any number, 64 in each panel, the last padded with zeros; or a bit for
        each of the 64, if coordinates are 0 and 1.
    half_squares : ndarray of shape (64 * n_panels,), float32
        Half of their squared norms, padded with infinity.
    reach : ndarray of shape (n_panels,)
        The largest norm in each panel.
    k, most : int
        Numbers of candidates.
    n_threads : int
        Number of threads; it does not change the result.
    """
    return _core.near_candidates(queries, values, half_squares, reach, k, most, n_threads)


def check_trees(trees: Trees, n_features: int) -> None:
    """Raise a ValueError that names the problem unless these arrays are valid trees.

    Everything that the core trusts is checked, in one pass over the arrays.
    """
    check_arrays(trees)
    problem = _core.problem_of_trees(vars(trees), n_features)
    if problem:
        raise ValueError(problem)


def crc32(data: npt.NDArray[np.uint8], before: int = 0) -> int:
    """Return the CRC-32 of bytes, as :func:`zlib.crc32` does, at the speed of memory.

    ``before`` is the checksum of the bytes before.
    """
    return _core.crc32(data, before)


def pruning_path(tree: Trees) -> tuple[Floats, Floats]:
    """Return the nested prunings of a single tree, from the whole tree to its root alone.

    Returns
    -------
    alphas : ndarray
        The alpha from which each pruning is optimal, ascending from 0.
    variances : ndarray
        The total variance of its leaves, divided by the root's weight.
    """
    if len(tree) != 1:
        raise ValueError(
            f"pruning_path takes a single tree, got {len(tree)}; pass one of them, trees[t]."
        )
    return _core.pruning_path(vars(tree))


def prune_nodes(tree: Trees, alpha: float) -> npt.NDArray[np.int8]:
    """Return what becomes of each node of a single tree: 0 kept, 1 made a leaf, 2 removed."""
    return _core.prune(vars(tree), alpha)


def subtract_means(
    leaves: LeafPartition, values: Floats, scale: float, n_threads: int = 1
) -> Floats:
    """Subtract from each row, in place, its leaf's mean times the scale; return the scaled means.

    ``values`` is a C-contiguous array of shape (n, q).
    """
    return _core.subtract_means(values, *leaves.arrays(), scale, n_threads)


def subtract_means_from_gram(
    leaves: LeafPartition, gram: Floats, scale: float, n_threads: int = 1
) -> Floats:
    """Turn the rows' inner products, in place, into those of what :func:`subtract_means` leaves.

    Return the sums of the rows of the new matrix.
    """
    return _core.subtract_means_from_gram(gram, *leaves.arrays(), scale, n_threads)


class BinnedRounds:
    """Grows trees on binned inputs, one after the other, and subtracts their predictions.

    A tree is the one that :func:`grow` returns for the numbers of the bins in place of the values,
    with thresholds halfway between the values on both sides of a split.

    Parameters
    ----------
    plan : GrowthPlan
        The data, with the residuals as outputs, which are changed in place, and the seed. Bins are
        quantiles of the rows of positive weight; later weights may be zero for more rows.
    learning_rate : float
        The factor of the means of the leaves.
    max_bins : int
        Maximum number of bins of a feature, from 2 to 255, besides that of missing values.
    n_threads : int
        Number of threads; it does not change the result.
    """

    def __init__(self, plan: GrowthPlan, learning_rate: float, max_bins: int, n_threads: int = 1):
        self.plan, self.learning_rate = plan, learning_rate
        self._rounds = _core.BinnedRounds(
            aligned(plan.X), aligned(plan.row_weight), max_bins, plan.seed, n_threads
        )
        n = len(plan.outputs)
        self._errors = np.zeros(n) if plan.row_errors is None else plan.row_errors

    @staticmethod
    def supports(plan: GrowthPlan) -> bool:
        """Return whether this plan can be grown on bins, and is so large that they pay off."""
        n, q = plan.outputs.shape
        return (
            isinstance(plan.X, np.ndarray)
            and not plan.gram
            and not plan.rules.random_splits
            and not plan.rules.frobenius
            and not plan.rules.ignore_constant
            and not plan.n_draws
            and not plan.n_categories.any()
            and 1 <= q <= MOST_BINNED_COLUMNS
            and n >= max(LEAST_BINNED_ROWS, BINNED_ROWS_PER_COLUMN * q)
        )

    def squares(self) -> Floats:
        """Return the squared norms of the residuals."""
        return np.einsum("ij,ij->i", self.plan.outputs, self.plan.outputs)

    def grow(self, number: int, rules: GrowthRules, row_weight: Floats) -> GrownRound:
        """Grow a tree on rows of these weights, and subtract its predictions from all rows."""
        arrays, places, means = self._rounds.grow(
            values=self.plan.outputs,
            row_weight=row_weight,
            row_errors=self._errors,
            seed=self.plan.seed,
            number=number,
            scale=self.learning_rate,
            by_gain=rules.order == "gain",
            max_features=rules.max_features,
            max_depth=rules.max_depth,
            max_leaf_nodes=rules.max_leaf_nodes,
            min_samples_split=rules.min_samples_split,
            min_samples_leaf=rules.min_samples_leaf,
            min_impurity_decrease=rules.min_impurity_decrease,
            stop_when_pure=rules.stop_when_pure,
        )
        tree = Trees(**arrays, row_weight=row_weight, n_categories=self.plan.n_categories)
        return GrownRound(tree, places, means)


def leaf_coefficients(
    trees: Sequence[tuple[LeafPartition, float]], initial: Floats, n_threads: int = 1
) -> Floats:
    """Return the weights of rows in the scaled means of all leaves, of shape (n_leaves, n).

    The means of trees, given by their leaves and scales, are subtracted one after the other, as
    :func:`subtract_means` does, from the weights of the rows around their mean.

    Parameters
    ----------
    trees : sequence of (LeafPartition, float)
        The leaves of each tree, and the factor of their means.
    initial : ndarray of shape (n,)
        The weights of the mean, from which boosting starts.
    n_threads : int
        Number of threads.
    """
    arrays = [(*leaves.arrays(), float(scale)) for leaves, scale in trees]
    return _core.leaf_coefficients(arrays, initial, n_threads)


def pull_back(
    trees: Trees,
    training_leaves: npt.NDArray[np.integer],
    scales: Floats,
    initial: Floats,
    leaves: Ints,
    n_threads: int = 1,
) -> Floats:
    """Return the weights of boosted predictions over the training outputs, of shape (n, n_train).

    Parameters
    ----------
    trees : Trees
        The trees.
    training_leaves : ndarray of shape (n_trees, n_train)
        The leaf that each training row reaches in each tree. Leaves are numbered in the order of
        their members.
    scales : ndarray of shape (n_trees,)
        The factors of the trees.
    initial : ndarray of shape (n_train,)
        The weights of the mean, from which boosting starts.
    leaves : ndarray of shape (n_rounds, n), int32
        The leaf that each prediction reaches in the first trees; later trees are left out.
    n_threads : int
        Number of threads; it does not change the result.
    """
    return _core.pull_back(
        vars(trees),
        np.ascontiguousarray(training_leaves),
        np.ascontiguousarray(scales),
        np.ascontiguousarray(initial),
        np.ascontiguousarray(leaves),
        n_threads,
    )


def simd_level() -> str:
    """Return the instruction set in use: ``"avx512"``, ``"avx2"`` or ``"baseline"``."""
    return _core.simd_level()


def choose_simd_level(level: str = "") -> bool:
    """Use another instruction set, by default the best one; return whether the machine has it.

    A level that the machine lacks changes nothing. Results are the same on all levels. For tests
    and benchmarks: it must not be called while trees grow.
    """
    if level and level not in SIMD_LEVELS:
        raise ValueError(
            f"level={level!r} is not known; use one of {', '.join(map(repr, SIMD_LEVELS))}, or '' "
            "for the best that the machine has."
        )
    return _core.choose_simd_level(level)


def draw_squares(seeds: npt.NDArray[np.uint64], places: npt.NDArray[np.int64], n_each: int) -> Ints:
    """Draw squares of images.

    Parameters
    ----------
    seeds : ndarray of shape (n_images,), uint64
        The seeds of the images.
    places : ndarray of shape (n_images, 4), int64
        For each image, the least side and the number of sides, and its rows and columns plus one.
    n_each : int
        Number of squares of each image.

    Returns
    -------
    squares : ndarray of shape (n_images * n_each, 3), int32
        Upper left row and column, and side.
    """
    return _core.draw_squares(seeds, places, n_each)


def cut_subwindows(
    images: Sequence[npt.NDArray[Any]],
    image: Ints,
    squares: Ints,
    angles: npt.NDArray[np.float32],
    mirrored: Booleans,
    size: int,
    n_threads: int = 1,
) -> npt.NDArray[Any]:
    """Return square subwindows of images, resized by bilinear interpolation.

    Parameters
    ----------
    images : sequence of ndarray of shape (height, width, n_channels)
        All uint8 or all float32, C-contiguous, with the same number of channels.
    image : ndarray of shape (n,), int32
        The image of each subwindow.
    squares : ndarray of shape (n, 3), int32
        Upper left row and column, and side.
    angles : ndarray of shape (n,) or (0,), float32
        Rotation in radians of the largest turned square within the square; empty for none.
    mirrored : ndarray of shape (n,) or (0,), bool
        Which are mirrored, left to right; empty for none.
    size : int
        Pixels along each side of the result.
    n_threads : int
        Number of threads; it does not change the result.

    Returns
    -------
    values : ndarray of shape (n, size * size * n_channels)
        Of the type of the images.
    """
    pixels = [*map(aligned, images)]
    return _core.cut_subwindows(pixels, image, squares, angles, mirrored, size, n_threads)


def paste_subwindows(squares: Ints, maps: Floats, sums: Floats, counts: Floats) -> None:
    """Add the values of subwindows, in place, to the pixels that they cover.

    Parameters
    ----------
    squares : ndarray of shape (n, 3), int32
        Upper left row and column, and side.
    maps : ndarray of shape (n, grid, grid, q)
        Values of the cells of each square; a pixel takes the cell that it lies in.
    sums : ndarray of shape (height, width, q)
        Sums of values; C-contiguous.
    counts : ndarray of shape (height, width)
        Number of squares that cover each pixel; C-contiguous.
    """
    n, grid = maps.shape[:2]
    flat = np.ascontiguousarray(maps).reshape(n, -1)
    _core.paste_subwindows(squares, flat, grid, sums, counts)


def are_byte_trees(
    nodes: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], n_features: int
) -> bool:
    """Return whether these arrays are trees for :func:`reach_leaves`, every walk ending in a leaf.

    Parameters
    ----------
    nodes : ndarray of shape (n_nodes, 2), uint32
        The inner nodes of each tree, in preorder. A row is ``feature << 8 | threshold``, and the
        node where the right subtree begins; the left one begins at the next node. Values above the
        threshold go right. An empty subtree is a leaf.
    offsets : ndarray of shape (n_trees + 1,), int64
        Where the nodes of each tree begin.
    n_features : int
        Number of features.
    """
    return _core.are_byte_trees(nodes, offsets, n_features)


def reach_leaves(
    nodes: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    values: npt.NDArray[np.uint8],
    n_threads: int = 1,
) -> npt.NDArray[np.uint32]:
    """Return the leaf that each row of bytes reaches in each tree, shape (n, n_trees).

    Leaves are numbered from left to right, one tree after the other. The arrays must have passed
    :func:`are_byte_trees`: they are trusted.
    """
    return _core.reach_leaves(nodes, offsets, values, n_threads)


FoundPostings = _core.FoundPostings


def draw(row_weight: Floats, n_draws: int, seed: int, trees: range) -> Trees:
    """Return trees of a root alone, whose members are the rows that they draw, ascending.

    The draws are those of :func:`grow` for the same weights, seed and numbers of trees: they do not
    depend on X and the outputs.
    """
    n = len(row_weight)
    plan = GrowthPlan(
        X=np.broadcast_to(np.zeros((1, 1), dtype=np.float32), (n, 1)),
        outputs=np.empty((n, 0)),
        gram=False,
        rules=GrowthRules(random_splits=True, max_depth=0),
        row_weight=row_weight,
        n_categories=np.zeros(1, dtype=np.int32),
        seed=seed,
        n_draws=n_draws,
    )
    return grow(plan, trees)


def prune(trees: Trees, alpha: float) -> Trees:
    """Remove the branches that reduce the variance by at most alpha per leaf."""
    return (
        Trees.join([_pruned(trees[t], alpha) for t in range(len(trees))]) if len(trees) else trees
    )


def _pruned(tree: Trees, alpha: float) -> Trees:
    fate = prune_nodes(tree, alpha)
    kept, is_leaf = fate != 2, (fate == 1) | (tree.left < 0)
    number = np.cumsum(kept, dtype=np.int32) - 1
    changed = {
        "left": np.where(is_leaf, -1, number[np.where(is_leaf, 0, tree.left)]),
        "feature": np.where(is_leaf, -1, tree.feature),
        "threshold": np.where(is_leaf, 0.0, tree.threshold),
        "missing_left": ~is_leaf & tree.missing_left,
        "subset": np.where(is_leaf, -1, tree.subset),
        "weight": tree.weight,
        "variance": tree.variance,
        "begin": tree.begin,
        "end": tree.end,
    }
    arrays = {name: array[kept].astype(vars(tree)[name].dtype) for name, array in changed.items()}
    arrays["node_offsets"] = np.array([0, kept.sum()], dtype=np.int64)
    return Trees(**{**vars(tree), **arrays})
