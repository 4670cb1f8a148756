"""Categories with many levels as coordinates: kernel target encoding.

A level becomes the regularised mean of its outputs in the kernel's feature space, in the few
directions in which levels differ most. Trees split these coordinates like numbers. For one number
as output this is smoothed, cross-fitted target encoding (Micci-Barreca, 2001).
"""

from typing import Literal, NamedTuple

import numpy as np

from okforest._utils.arrays import Floats
from okforest._utils.distinct import Positions
from okforest._utils.frames import Categories

CategoricalEncoding = Literal["auto", "subsets", "target"]

# For each column its levels' coordinates, or None if it has none. The array of a column with L
# levels has shape (L + 2, d): its last two rows stand for missing values and unknown levels.
Codings = list[Floats | None]

# With "auto", columns with more levels than this are encoded.
MAX_SUBSETS = 10
# Largest number of coordinates of a column.
MAX_COORDINATES = 4
# Number of parts of the training rows; each is encoded by the others.
N_FOLDS = 5
# The weight of the prior mean, relative to that of a row, if levels do not differ.
LARGEST_PRIOR = 1e6
# Below this share of signal in the means of levels, boosting uses cross-fitted values, too.
RELIABLE = 0.5


class Coded(NamedTuple):
    """Inputs with coded columns.

    Parameters
    ----------
    codings : list
        The coordinates of each column's levels, or None.
    codes : ndarray of shape (n, p)
        The inputs with categories as codes.
    values : ndarray of shape (n, p')
        The inputs with coordinates in the place of codes.
    growth : ndarray of shape (n, p')
        The same, with the coordinates of each row estimated from other rows.
    """

    codings: Codings
    codes: Floats
    values: Floats
    growth: Floats


def coded_columns(categories: Categories, encoding: CategoricalEncoding) -> list[int]:
    """Return the columns that are encoded."""
    if encoding == "subsets":
        return []
    least = 1 if encoding == "target" else MAX_SUBSETS + 1
    return [j for j, known in enumerate(categories) if known is not None and len(known) >= least]


def encode_levels(
    X: Floats,
    n_levels: dict[int, int],
    vectors: Floats,
    weight: Floats,
    seed: int,
    *,
    boosted: bool = False,
) -> Coded:
    """Learn the coordinates of the levels of some columns, and encode the training rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The inputs with categories as codes; NaN is missing.
    n_levels : dict
        The numbers of levels of the columns to encode.
    vectors : ndarray of shape (n, r)
        The outputs in their leading principal directions.
    weight : ndarray of shape (n,)
        The weights of the rows.
    seed : int
        Determines the parts of the rows.
    boosted : bool
        Whether rows of columns with many rows per level are encoded by all rows, their own outputs
        included: small trees cannot fit these.
    """
    codings: Codings = [None] * X.shape[1]
    fold = np.random.default_rng([seed, N_FOLDS]).permutation(len(X)) % N_FOLDS
    crossed: dict[int, Floats] = {}
    for j, L in n_levels.items():
        level = _positions(X[:, j], L)
        table, prior, reliability = level_means(level, vectors, weight, L + 2)
        codings[j] = table.means
        if not boosted or reliability < RELIABLE:
            crossed[j] = _cross_fitted(
                level, fold, vectors @ table.directions, weight, prior, L + 2
            )
    values = expand(X, codings)
    growth = values.copy(order="F") if crossed else values
    start = column_starts(codings)
    for j, cross in crossed.items():
        growth[:, start[j] : start[j + 1]] = cross
    return Coded(codings, X, values, growth)


class LevelMeans(NamedTuple):
    """The regularised means of levels, and the directions that they are in, of shape (r, d)."""

    means: Floats
    directions: Floats


def level_means(
    level: Positions, vectors: Floats, weight: Floats, n_levels: int
) -> tuple[LevelMeans, Floats, float]:
    """Return the means of levels, the weight of the prior in each direction, and reliability.

    Reliability is the share of the variance of levels' means that is not noise, from 0 to 1, in the
    first direction. A level without rows has zeros, the mean of all outputs.
    """
    centred = vectors - np.average(vectors, axis=0, weights=weight)
    total, count = _sums(level, centred, weight, n_levels)
    present = count > 0
    n, n_present = count.sum(), int(present.sum())
    scaled = total[present] / np.sqrt(count[present])[:, None]
    between = scaled.T @ scaled
    within = (centred.T * weight) @ centred - between
    within /= max(n - n_present, 1.0)
    eigenvalues, basis = np.linalg.eigh(between - (n_present - 1) * within)
    n_kept = min(MAX_COORDINATES, max(1, int((eigenvalues > 0.0).sum())))
    V = basis[:, ::-1][:, :n_kept]
    V = V * np.where(V[np.abs(V).argmax(axis=0), np.arange(n_kept)] < 0.0, -1.0, 1.0)
    noise = np.maximum(np.einsum("ij,ik,kj->j", V, within, V), 0.0)
    spread = np.einsum("ij,ik,kj->j", V, between, V) - (n_present - 1) * noise
    signal = np.maximum(spread, 0.0) / max(n - (count**2).sum() / n, 1e-9 * n)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = np.where(signal > 0.0, np.minimum(noise / signal, LARGEST_PRIOR), LARGEST_PRIOR)
    means = np.zeros((n_levels, n_kept))
    means[present] = (total[present] @ V) / (count[present][:, None] + prior)
    return LevelMeans(means, V), prior, float(n / (n + n_present * prior[0]))


def _cross_fitted(
    level: Positions, fold: Positions, values: Floats, weight: Floats, prior: Floats, n_levels: int
) -> Floats:
    """Return the means of each row's level over the rows of other folds."""
    centred = values - np.average(values, axis=0, weights=weight)
    cell = level * N_FOLDS + fold
    total, count = _sums(cell, centred, weight, n_levels * N_FOLDS)
    total = total.reshape(n_levels, N_FOLDS, -1)
    count = count.reshape(n_levels, N_FOLDS)
    total = total.sum(axis=1, keepdims=True) - total
    count = count.sum(axis=1, keepdims=True) - count
    seen = count > 0.5 * weight[weight > 0].min()  # differences of sums of weights are rounded
    means = np.zeros_like(total)
    means[seen] = total[seen] / (count[seen][:, None] + prior)
    return means.reshape(-1, means.shape[-1])[cell]


def _sums(group: Positions, values: Floats, weight: Floats, n_groups: int) -> tuple[Floats, Floats]:
    """Return the weighted sums of values over groups of rows, and the weights of groups."""
    weighted = values * weight[:, None]
    columns = [np.bincount(group, column, n_groups) for column in weighted.T]
    totals: Floats = np.stack(columns, axis=1)
    counts = np.bincount(group, weight, n_groups).astype(np.float64, copy=False)
    return totals, counts


def _positions(codes: Floats, n_levels: int) -> Positions:
    """Return the rows of a column's coordinates: of a level, of missing values, of unknown ones."""
    missing = np.isnan(codes)
    known = np.where(missing, n_levels, codes).astype(np.intp)
    return np.where(missing | (known < n_levels), known, n_levels + 1)


def expand(X: Floats, codings: Codings) -> Floats:
    """Return inputs with coordinates in the place of codes."""
    starts = column_starts(codings)
    wide = np.empty((len(X), starts[-1]), order="F")
    for j, table in enumerate(codings):
        if table is None:
            wide[:, starts[j]] = X[:, j]
        else:
            wide[:, starts[j] : starts[j + 1]] = table[_positions(X[:, j], len(table) - 2)]
    return wide


def column_starts(codings: Codings) -> list[int]:
    """Return where each column's coordinates begin among those of all, and their number."""
    widths = [1 if table is None else table.shape[1] for table in codings]
    return np.append(0, np.cumsum(widths)).astype(int).tolist()


def column_of_coordinates(codings: Codings) -> Positions:
    """Return the column of each coordinate."""
    starts = column_starts(codings)
    return np.repeat(np.arange(len(codings)), np.diff(starts))


def check_codings(codings: Codings, categories: Categories) -> None:
    """Raise a ValueError unless there are finite coordinates for the levels of each column."""
    if len(codings) != len(categories):
        raise ValueError(f"codings_ has {len(codings)} entries, not {len(categories)}")
    for table, known in zip(codings, categories, strict=True):
        if table is None:
            continue
        if known is None:
            raise ValueError("codings_ has coordinates of a numeric column")
        if table.ndim != 2 or len(table) != len(known) + 2 or not table.shape[1] >= 1:
            raise ValueError(
                f"an array in codings_ has shape {table.shape}; expected a row for each of the "
                f"{len(known)} categories, for missing values and for unknown categories"
            )
        if not np.isfinite(table).all():
            raise ValueError("codings_ has entries that are not finite")
