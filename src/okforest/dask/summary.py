"""Information on rows in partitions: a summary of each, and a map from outputs to numbers.

A :class:`Summary` has the columns, types, categories and labels; an :class:`OutputMap` is a map
that any worker can apply to any outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Booleans, Floats, Outputs
from okforest._utils.frames import Categories, check_category_count, column, is_frame, missing
from okforest._utils.inputs import learn_inputs, missing_features
from okforest._utils.state import blank
from okforest.dask.partitions import PartitionedRows, bytes_of, naming_partition
from okforest.embedding import Embedding
from okforest.embedding.choice import EmbeddingKind, centred_factor, centred_features
from okforest.embedding.low_rank import (
    DEFAULT_RANK,
    fourier_error,
    fourier_features,
    nystrom_features,
    nystrom_landmarks,
    nystrom_residual,
    nystrom_roots,
    sample_positions,
)
from okforest.kernels import RBF, Dirac, Laplacian, OutputKernel
from okforest.kernels.base import describe_kernel
from okforest.kernels.precomputed import check_gram
from okforest.kernels.rbf import MEDIAN_SAMPLE
from okforest.models.tree_model import TreeModel

FLOAT = np.dtype(np.float64)


@dataclass(frozen=True)
class Summary:
    """Properties of one partition that a fit needs.

    Parameters
    ----------
    n_rows, n_features : int
        Its shape. Without rows, nothing below the names of outputs is known.
    output_names : tuple or None
        Names of the columns of y.
    dtype : dtype
        The type of its inputs as numbers.
    n_bytes : int
        The size of its inputs as numbers.
    names : ndarray or None
        Names of the columns of X.
    categories : list
        For each feature its categories, or None if it is numeric. Rows of weight zero are ignored.
    has_missing : ndarray of shape (n_features,)
        Which features have missing values.
    is_empty : ndarray of shape (n_features,)
        Which features have no other values.
    output_shape : tuple
        The shape of one output.
    labels : ndarray or None
        The different outputs of rows of positive weight, if they are labels.
    """

    n_rows: int
    n_features: int
    output_names: tuple[Any, ...] | None
    dtype: np.dtype[Any] = FLOAT
    n_bytes: int = 0
    names: Outputs | None = None
    categories: Categories = field(default_factory=list)
    has_missing: Booleans = field(default_factory=lambda: np.empty(0, dtype=bool))
    is_empty: Booleans = field(default_factory=lambda: np.empty(0, dtype=bool))
    output_shape: tuple[int, ...] = ()
    labels: Outputs | None = None


def summarize(
    model: TreeModel, kernel: OutputKernel, number: int, weight: Floats | None, X: Any, y: Any
) -> Summary:
    """Check one partition, on a worker."""
    n_rows, n_features = X.shape
    if len(y) != n_rows:
        raise ValueError(f"partition {number} has {n_rows} rows of X and {len(y)} of y.")
    output_names = tuple(y.columns) if is_frame(y) else None
    if n_rows == 0:
        return Summary(0, n_features, output_names)
    with naming_partition(number):
        scratch = blank(model)  # other partitions share the model
        inputs = learn_inputs(scratch, X, weight, least_rows=1)
        outputs = kernel.check(y)
        used = outputs if weight is None else outputs[weight > 0]
        labels = kernel.resolve(used).classes if isinstance(kernel, Dirac) else None
    has_missing = missing_features(inputs.X)
    is_empty = np.zeros(n_features, dtype=bool)
    if is_frame(X):
        is_empty[:] = [has_missing[j] and missing(column(X, j)).all() for j in range(n_features)]
    return Summary(
        n_rows,
        inputs.n_features,
        output_names,
        inputs.X.dtype,
        bytes_of(inputs.X),
        getattr(scratch, "feature_names_in_", None),
        inputs.categories,
        has_missing,
        is_empty,
        outputs.shape[1:],
        labels,
    )


def merge(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of all partitions, after checking that they fit each other."""
    used = {number: part for number, part in enumerate(summaries) if part.n_rows}
    if not used:
        raise ValueError(f"all {len(summaries)} partitions are empty; at least 2 rows are needed.")
    n_rows = sum(part.n_rows for part in summaries)
    if n_rows < 2:
        raise ValueError("all partitions together have 1 row; at least 2 are needed.")
    first_number, first = next(iter(used.items()))
    for number, part in enumerate(summaries):
        if part.n_features != first.n_features:
            raise ValueError(
                f"partition {number} of X has {part.n_features} columns and partition "
                f"{first_number} has {first.n_features}; all must have the same columns."
            )
    for number, part in used.items():
        for what, names, first_names in (
            ("X", part.names, first.names),
            ("y", part.output_names, first.output_names),
        ):
            columns, expected = (None if n is None else list(n) for n in (names, first_names))
            if columns != expected:
                raise ValueError(
                    f"partition {number} of {what} has columns {columns} and partition "
                    f"{first_number} has {expected}; all must have the same columns in the same "
                    "order."
                )
        if part.output_shape != first.output_shape:
            raise ValueError(
                f"partition {number} of y has outputs of shape {part.output_shape} and partition "
                f"{first_number} of shape {first.output_shape}."
            )
    dtype = np.result_type(*(part.dtype for part in used.values()))
    labels = {number: part.labels for number, part in used.items() if part.labels is not None}
    return Summary(
        n_rows,
        first.n_features,
        first.output_names,
        dtype,
        sum(part.n_bytes * dtype.itemsize // part.dtype.itemsize for part in used.values()),
        first.names,
        [_merged_categories(used, j) for j in range(first.n_features)],
        np.any([part.has_missing for part in used.values()], axis=0),
        np.all([part.is_empty for part in used.values()], axis=0),
        first.output_shape,
        _distinct(labels, "y") if labels else None,
    )


def _merged_categories(used: dict[int, Summary], j: int) -> npt.NDArray[Any] | None:
    known = {n: found for n, part in used.items() if (found := part.categories[j]) is not None}
    if not known:
        return None
    names = next(iter(used.values())).names
    name = str(j) if names is None else repr(str(names[j]))
    # A column of objects without values has no type.
    numeric = [n for n, part in used.items() if n not in known and not part.is_empty[j]]
    if numeric:
        raise ValueError(
            f"column {name} of X is categorical in partition {next(iter(known))} and numeric in "
            f"partition {numeric[0]}; give it one type in all, for example with astype('category')."
        )
    categories = _distinct(known, f"column {name} of X")
    check_category_count(name, len(categories))
    return categories


def _distinct(values: dict[int, npt.NDArray[Any]], what: str) -> npt.NDArray[Any]:
    """Return the distinct values of all partitions; text and other values do not mix."""
    filled = {number: array for number, array in values.items() if len(array)}
    is_text = {number: isinstance(array[0], str) for number, array in filled.items()}
    if len(set(is_text.values())) > 1:
        text = next(number for number in filled if is_text[number])
        other = next(number for number in filled if not is_text[number])
        raise ValueError(
            f"{what} holds text in partition {text}, such as {str(filled[text][0])!r}, and other "
            f"values in partition {other}, such as {filled[other][0]!s}; convert all to text, or "
            "all to numbers."
        )
    try:
        return np.unique(np.concatenate(list((filled or values).values())))
    except TypeError as error:
        raise ValueError(
            f"{what} holds values that cannot be sorted ({error}); convert all to text."
        ) from None


@dataclass(frozen=True)
class OutputMap:
    """The features of outputs: explicit, Fourier, or Nyström with landmarks from all partitions.

    Parameters
    ----------
    kernel : OutputKernel
        The kernel, resolved.
    kind : {"features", "fourier", "nystrom"}
        Which features.
    rank : int
        Number of Fourier features.
    seed : int
        The seed of their frequencies.
    landmarks, roots : ndarray or None
        Landmarks of Nyström features, and their K^(−1/2).
    residual : float
        The error of approximate features, on a sample of the outputs.
    """

    kernel: OutputKernel
    kind: EmbeddingKind
    rank: int = 0
    seed: int = 0
    landmarks: Outputs | None = None
    roots: Floats | None = None
    residual: float = 0.0

    def features(self, y: Outputs) -> Floats:
        """Return the features of outputs."""
        if self.kind == "features":
            return self.kernel.features(y)
        if self.kind == "fourier":
            return fourier_features(self.kernel, y, self.rank, self.seed)
        assert self.landmarks is not None
        assert self.roots is not None
        return nystrom_features(self.kernel, y, self.landmarks, self.roots)

    def embed(self, y: Outputs) -> Embedding:
        """Return the features around their centre, which trees do not depend on."""
        if self.kind == "features":
            return Embedding(self.kind, centred_features(self.features(y)))
        return centred_factor(self.kind, self.features(y), self.kernel.diag(y))


def resolve(
    kernel: OutputKernel, rows: PartitionedRows, client: object, summary: Summary, weight: Floats
) -> OutputKernel:
    """Fill in what a kernel learns from the outputs, without bringing all of them here."""
    if isinstance(kernel, Dirac):
        assert summary.labels is not None
        return kernel.resolve(summary.labels)
    used = np.flatnonzero(weight)
    spread = np.linspace(0, len(used) - 1, min(len(used), MEDIAN_SAMPLE)).astype(int)
    sample = rows.outputs_at(client, kernel, used[spread])
    resolved = kernel.resolve(sample)
    # A local fit takes the median distance from the same outputs.
    takes_median = isinstance(kernel, RBF | Laplacian) and getattr(kernel, "base", None) is None
    # The labels of a matrix are its columns, whatever the rows.
    counts_columns = sample.ndim == 2 and (
        getattr(resolved, "labels", None) == list(range(sample.shape[1]))
    )
    if takes_median or counts_columns or repr(resolved) == repr(kernel):
        return resolved
    parameters = kernel.get_params(deep=False)
    learnt = ", ".join(
        f"{name}=..."
        for name, value in resolved.get_params(deep=False).items()
        if repr(value) != repr(parameters[name])
    )
    raise ValueError(
        f"{describe_kernel(kernel)} "
        "learns its parameters from all outputs, which are in partitions. Pass them, "
        f"as in {type(kernel).__name__}({learnt}); kernel.resolve(kernel.check(y)) returns a "
        "kernel that has learnt them from a sample y of the outputs."
    )


def output_map(
    model: TreeModel, kernel: OutputKernel, rows: PartitionedRows, client: object, seed: int
) -> OutputMap:
    """Return the features to grow trees from; refuse a kernel that needs a Gram matrix."""
    n = int(rows.n_rows.sum())
    sample = rows.outputs_at(client, kernel, sample_positions(n))
    if not kernel.known_psd:
        check_gram(kernel(sample), f"the Gram matrix of {describe_kernel(kernel)}")
    rank = min(DEFAULT_RANK if model.embedding_rank is None else model.embedding_rank, n)
    if model.embedding == "fourier":
        phi = fourier_features(kernel, sample, rank, seed)
        error = fourier_error(kernel, sample, phi)
        return OutputMap(kernel, "fourier", rank=rank, seed=seed, residual=error)
    if model.embedding == "nystrom":
        landmarks = rows.outputs_at(client, kernel, nystrom_landmarks(n, rank, seed))
        roots = nystrom_roots(kernel, landmarks)
        phi = nystrom_features(kernel, sample, landmarks, roots)
        residual = nystrom_residual(kernel, sample, phi)
        return OutputMap(kernel, "nystrom", landmarks=landmarks, roots=roots, residual=residual)
    dim = kernel.feature_dim(sample)
    if dim is None or dim > n or model.embedding not in ("auto", "features"):
        raise ValueError(
            f"with embedding={model.embedding!r}, {describe_kernel(kernel)} "
            f"needs the Gram matrix of all {n} "
            "outputs, or a factor of it, and the outputs are in partitions. Use "
            "embedding='nystrom' (any kernel), embedding='fourier' (RBF and Laplacian), or a "
            "kernel with explicit features."
        )
    if model.embedding_rank is not None:
        raise ValueError(
            f"embedding_rank={model.embedding_rank} has no effect with explicit features, which "
            "are exact; use embedding='nystrom' or 'fourier', or embedding_rank=None."
        )
    return OutputMap(kernel, "features")
