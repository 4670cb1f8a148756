"""Pre-images by search over candidates."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import check_sparse, on_gpu
from okforest._utils.distinct import check_same_type
from okforest.decode.base import Decoder, Need, SearchDecoder
from okforest.weights import OutputSet, Span, WeightMatrix

BLOCK = 2**16  # candidates that are read at a time


class TrainingSet(SearchDecoder):
    """Searches all training outputs.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(decoder="training_set").fit([[0]] * 3 + [[1]], [0.0, 1.0, 5.0, 2.0])
    >>> tree.predict([[0]])  # the mean of the leaf is 2; 2.0 is in another leaf
    array([2.])
    """

    def candidates(self, span: Span) -> OutputSet:
        """Return the training outputs."""
        return span.training


class Support(TrainingSet):
    """Searches the training outputs of nonzero weight, as the papers on output kernel trees do.

    In the papers' image completion experiment with 800 training images (extra-trees), the loss is
    0.7100 with it and 0.7045 with :class:`TrainingSet`.

    Examples
    --------
    >>> from okforest import OKTree
    >>> tree = OKTree(decoder="support").fit([[0]] * 3 + [[1]], [0.0, 1.0, 5.0, 2.0])
    >>> tree.predict([[0]])  # the mean is 2, but the output 2.0 is in another leaf
    array([1.])
    """

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights": only outputs of nonzero weight are searched."""
        return frozenset({"weights"})

    def allowed(self, W: WeightMatrix) -> sp.csr_array:
        """Return where the weights are nonzero; everything in a row of zeros."""
        matrix = abs(W.tocsr())
        matrix.eliminate_zeros()
        empty = sp.csr_array((np.diff(matrix.indptr) == 0)[:, None], dtype=float)
        if empty.nnz:
            matrix = sp.csr_array(matrix + empty @ sp.csr_array(np.ones((1, matrix.shape[1]))))
        return matrix


class Candidates(SearchDecoder):
    """Searches outputs given by the user, which need not occur in the training set.

    More than 65,536 candidates are read and searched in parts: an array that is memory-mapped from
    a file may be larger than the memory.

    Parameters
    ----------
    outputs : array-like
        The candidates, of the type that the kernel takes.

    See Also
    --------
    CandidateLists : Different candidates for every prediction.
    ExpectedLoss : Searches candidates for the least expected loss.

    Examples
    --------
    >>> from okforest import OKTree
    >>> from okforest.decode import Candidates
    >>> decoder = Candidates([0.0, 5.0, 10.0])
    >>> tree = OKTree(kernel="rbf", decoder=decoder).fit([[0], [1]], [1.0, 9.0])
    >>> tree.predict([[0], [1]])
    array([ 0., 10.])
    """

    def __init__(self, outputs: Any):
        self.outputs = outputs

    def check(self, span: Span) -> None:
        """Check that the candidates are like the training outputs."""
        for _ in candidate_blocks(self.outputs, span):
            pass

    def needs(self, span: Span) -> frozenset[Need]:
        """Return "weights", or nothing if the kernel has explicit features."""
        return frozenset({"weights"} if span.features is None else ())

    def candidates(self, span: Span) -> OutputSet:
        """Return the given outputs."""
        return read_candidates(self.outputs, span)

    def _candidate_blocks(self, span: Span) -> Iterator[OutputSet]:
        return candidate_blocks(self.outputs, span)


def candidate_blocks(outputs: Any, span: Span) -> Iterator[OutputSet]:
    """Yield candidates given by the user, in parts of bounded size."""
    n = count_candidates(outputs)
    if n <= BLOCK:
        yield read_candidates(outputs, span)
        return
    if sp.issparse(outputs):
        matrix: Any = outputs
        check_sparse(matrix, "candidates")
        outputs = matrix.tocsr()  # not every format has slices
    for start in range(0, n, BLOCK):
        yield read_candidates(outputs[start : start + BLOCK], span)


def read_candidates(outputs: Any, span: Span) -> OutputSet:
    """Return candidates given by the user, checked against the training outputs."""
    if outputs is None:
        raise ValueError("candidates is None; pass at least one output.")
    if isinstance(outputs, Decoder):
        inner = "candidates.outputs" if isinstance(outputs, Candidates) else "outputs"
        raise ValueError(
            f"candidates is the decoder {type(outputs).__name__}; pass outputs, "
            f"candidates={inner}, or set the decoder: "
            f"model.set_params(decoder={type(outputs).__name__}(...))."
        )
    if isinstance(outputs, Iterator):
        raise ValueError(
            f"candidates is of type {type(outputs).__name__}, which can be read only once; pass "
            "list(candidates)."
        )
    if hasattr(outputs, "__len__") and count_candidates(outputs) == 0:
        raise ValueError("candidates is empty; pass at least one output.")
    try:
        checked = span.kernel.check(outputs)
    except ValueError as error:
        raise ValueError(f"the candidates are not valid outputs: {error}") from None
    check_same_type(checked, span.outputs, "candidates")
    return OutputSet(span.kernel, checked if on_gpu(checked) else np.asarray(checked))


def count_candidates(outputs: Any) -> int:
    """Return the number of candidates given by the user; a sparse matrix has no length."""
    if sp.issparse(outputs):
        matrix: Any = outputs
        return int(matrix.shape[0])
    return len(outputs) if hasattr(outputs, "__len__") else 0
