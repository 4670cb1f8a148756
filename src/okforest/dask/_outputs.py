"""Outputs in partitions as numbers: a map that any worker can apply to any outputs."""

from dataclasses import dataclass

import numpy as np

from okforest._utils.arrays import Floats, Outputs
from okforest.dask._partitions import PartitionedRows
from okforest.dask._summary import Summary
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
        """Return the features of some outputs."""
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
    # The median distance is that of these outputs in a local fit, too.
    takes_median = isinstance(kernel, RBF | Laplacian) and getattr(kernel, "base", None) is None
    # The labels of a matrix are its columns, whatever the rows.
    counts_columns = sample.ndim == 2 and (
        getattr(resolved, "labels", None) == list(range(sample.shape[1]))
    )
    if takes_median or counts_columns or repr(resolved) == repr(kernel):
        return resolved
    given = kernel.get_params(deep=False)
    learnt = ", ".join(
        f"{name}=..."
        for name, value in resolved.get_params(deep=False).items()
        if repr(value) != repr(given[name])
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
