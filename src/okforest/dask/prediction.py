"""Predictions and scores, computed on workers.

:func:`predict` sends a fitted model to the workers. The parts of a
:class:`~okforest.dask.RemoteForest` stay on them: each contributes its share, and the shares are
added up, as sums of explicit features or as weights, and decoded. The weights of the forest are the
sum of the weights of its parts, each times its share of the trees. Scores are reductions over
partitions.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from okforest._utils.arrays import Floats, Inputs, Outputs
from okforest._utils.compat import check_sample_weight
from okforest._utils.inputs import check_inputs
from okforest.dask.cluster import find_client, require, with_replicated
from okforest.dask.partitions import (
    Positions,
    input_blocks,
    lazy,
    n_rows_of,
    naming_partition,
    sent_once,
    with_blocks,
)
from okforest.decode import Decoder, as_decoder
from okforest.engine import Trees, apply
from okforest.kernels import OutputKernel
from okforest.models import OKModel
from okforest.models.tree_model import TreeModel
from okforest.weights import LeafWeights, Span, SparseWeights, SummedWeights, WeightMatrix

# Predictions of a partition, as weights of outputs.
Predicted = tuple[Span, WeightMatrix]


def predict(estimator: Any, X: Any, candidates: Any = None, client: Any = None) -> Any:
    """Predict the outputs of a Dask collection, lazily, with one task for each partition.

    Parameters
    ----------
    estimator : estimator
        A fitted model of okforest, or a pipeline that ends with one. It is sent to the cluster
        once, not with every task.
    X : Dask array or frame of shape (n, p)
        Inputs.
    candidates : array-like, optional
        Outputs to choose from; by default the model's ``decoder`` decides.
    client : distributed.Client, optional
        The client of the cluster; by default the current one. Without a cluster, Dask predicts in
        threads of this process.

    Returns
    -------
    y : Dask array of n outputs
        Computed when it is asked for; by ``client.compute(y, sync=True)`` if ``client`` is not the
        current one. It has the form of local predictions, as arrays even if the training outputs
        were a sparse matrix or a frame.

    See Also
    --------
    fit : Fit a forest on a cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKExtraTrees
    >>> from okforest.dask import predict
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = OKExtraTrees(20, random_state=0).fit(X, y)
    >>> predicted = predict(forest, da.from_array(X, chunks=(100, -1)))
    >>> predicted.numblocks
    (5,)
    >>> (predicted.compute() == forest.predict(X)).all()
    np.True_
    """
    empty = _empty_prediction(estimator, candidates)
    client = _current_client(client)
    if client is None:
        model = sent_once(estimator)
    else:
        future = require("distributed").Future
        # Sent again if a worker dies meanwhile; a second future keeps the model on the cluster.
        model = with_replicated(client, estimator, lambda sent: future(sent.key, client))
    shared = sent_once(candidates)
    predicted = [
        with_blocks(predict_block, [block], model, shared, empty, p)
        for p, block in enumerate(input_blocks(X))
    ]
    return stack(predicted, X, empty)


def predict_block(estimator: Any, candidates: Any, empty: Outputs, number: int, X: Any) -> Outputs:
    """Predict one partition, on a worker; an empty one has no outputs."""
    if X.shape[0] == 0:
        return empty
    options = {} if candidates is None else {"candidates": candidates}
    with naming_partition(number):
        return as_array(estimator.predict(X, **options))


def stack(blocks: list[Any], X: Any, empty: Outputs) -> Any:
    """Return a Dask array of lazy blocks, which have as many rows as the partitions of X."""
    array = require("dask.array")
    arrays = [
        array.from_delayed(block, shape=(n_rows, *empty.shape[1:]), meta=empty)
        for block, n_rows in zip(blocks, n_rows_of(X, len(blocks)), strict=True)
    ]
    return array.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def as_array(outputs: Any) -> Outputs:
    """Return predicted outputs as an array, of which Dask makes one collection."""
    return outputs.toarray() if hasattr(outputs, "toarray") else np.asarray(outputs)


def decoded_like(decoder: Decoder, span: Span) -> Outputs:
    """Return an empty array of the shape and type that a decoder returns."""
    first = SparseWeights(sp.csr_array(([1.0], ([0], [0])), shape=(1, len(span))))
    return as_array(span.kernel.in_form(decoder.decode(first, span)))[:0]


def _empty_prediction(estimator: Any, candidates: Any) -> Outputs:
    model = estimator
    while isinstance(model, Pipeline):
        model = model[-1]
    if not isinstance(model, OKModel):
        raise TypeError(
            f"predict takes a fitted model of okforest, or a pipeline that ends with one; got "
            f"{type(model).__name__}."
            + (" Pass its best_estimator_." if hasattr(model, "best_estimator_") else "")
        )
    decoder = model._decoder()
    if candidates is not None:
        decoder = decoder.with_candidates(candidates)
    return decoded_like(decoder, model.span_)


def _current_client(client: Any) -> Any:
    """Return the client that was passed, or the current one, checked; None without any."""
    if client is None:
        try:
            client = require("distributed").get_client()
        except ValueError:
            return None
    return find_client(client)


def check_decoder(model: TreeModel, span: Span, partitioned: bool) -> None:
    """Raise a ValueError, before trees grow, if the forest could not decode its predictions."""
    decoder = as_decoder(model.decoder, span.kernel)
    decoder.check(span)
    if not decoder.is_tuned:
        raise ValueError(
            f"{decoder!r} is tuned from out-of-bag predictions of all trees, which stay on their "
            "workers. Use okforest.dask.fit, or a decoder that was tuned on a sample of the rows: "
            f"decoder=okforest.tune_decoder(model, X, y, {decoder!r})."
        )
    if partitioned and "training_outputs" in decoder.needs(span):
        name = "'training_set'" if model.decoder in ("auto", "training_set") else repr(decoder)
        raise ValueError(
            f"decoder {name} searches all training outputs, which are in partitions. Set "
            "decoder='support', which searches outputs of nonzero weight; predict(X, "
            "candidates=...) then takes candidates, too."
        )


@dataclass(frozen=True)
class Part:
    """Some trees of a forest, with the outputs of the rows that they were grown on.

    Parameters
    ----------
    trees : Trees
        The trees; their members are positions in ``outputs``.
    kernel : OutputKernel
        The kernel, resolved.
    outputs : ndarray
        Outputs in canonical form.
    rows : ndarray or None
        Their positions among all training rows, ascending; None if they are all.
    """

    trees: Trees
    kernel: OutputKernel
    outputs: Outputs
    rows: Positions | None = None

    @cached_property
    def features(self) -> Floats:
        """Explicit features of the outputs."""
        return np.ascontiguousarray(self.kernel.features(self.outputs))

    def leaf_weights(self, X: Inputs) -> LeafWeights:
        """Return the weights of the outputs."""
        return LeafWeights(self.trees, apply(self.trees, _aligned(X)))

    def tree_weights(self, X: Inputs) -> list[LeafWeights]:
        """Return the weights of the outputs, tree by tree."""
        leaves = apply(self.trees, _aligned(X))
        return [
            LeafWeights(self.trees[t], np.ascontiguousarray(leaves[:, t : t + 1]))
            for t in range(leaves.shape[1])
        ]

    def whole_trees(self, n_train: int) -> Trees:
        """Return the trees of a local forest, with positions among all rows."""
        if self.rows is None:
            return self.trees
        members = self.rows[self.trees.members].astype(np.int32)
        return replace(self.trees, members=members, row_weight=np.ones(n_train))


@dataclass(frozen=True)
class Weighted:
    """Weights over all training rows, with the outputs of rows that have a weight.

    Parameters
    ----------
    matrix : csr_array of shape (n, n_train)
        The weights.
    rows : ndarray
        The training rows that have a weight, ascending.
    outputs : ndarray
        Their outputs.
    """

    matrix: sp.csr_array
    rows: Positions
    outputs: Outputs

    def support(self) -> sp.csr_array:
        """Return the weights of ``outputs``."""
        columns = np.searchsorted(self.rows, self.matrix.indices)
        parts = (self.matrix.data, columns, self.matrix.indptr)
        return sp.csr_array(parts, shape=(self.matrix.shape[0], len(self.rows)))


def validated(shell: TreeModel, number: int, X: Any) -> Inputs:
    """Return the inputs of a partition to predict as numbers; the engine takes no others."""
    if X.shape[0] == 0:
        return np.empty((0, shell.n_features_in_))
    with naming_partition(number):
        return check_inputs(shell, X)


def _aligned(X: Inputs) -> Inputs:
    """Return inputs whose numbers are aligned, which they may not be in a message."""
    return X if sp.issparse(X) else np.require(X, requirements="A")


def part_sums(part: Part, share: float, X: Inputs) -> Floats:
    """Return what a part adds to the predictions in explicit features."""
    if X.shape[0] == 0:
        return np.zeros((0, part.features.shape[1]))
    return share * (part.leaf_weights(X) @ part.features)


def part_weights(part: Part, share: float, X: Inputs, n_train: int) -> Weighted:
    """Return what a part adds to the weights."""
    if X.shape[0] == 0:
        nothing = sp.csr_array((0, n_train))
        return Weighted(nothing, np.empty(0, dtype=np.intp), part.outputs[:0])
    W = part.leaf_weights(X).tocsr()
    used = np.unique(W.indices)
    rows = np.arange(n_train) if part.rows is None else part.rows
    matrix = sp.csr_array((share * W.data, rows[W.indices], W.indptr), shape=(X.shape[0], n_train))
    return Weighted(matrix, rows[used], part.outputs[used])


def part_kernel(part: Part, share: float, X: Inputs, Z: Inputs) -> Floats:
    """Return what a part adds to the mean over trees of the predicted kernel."""
    if X.shape[0] == 0 or Z.shape[0] == 0:
        return np.zeros((X.shape[0], Z.shape[0]))
    span = Span(part.kernel, part.outputs)
    return share * span.mean_gram(part.tree_weights(X), part.tree_weights(Z))


def add_sums(terms: list[Floats]) -> Floats:
    """Return the sum of the contributions of parts."""
    return np.sum(terms, axis=0)


def add_weights(terms: list[Weighted]) -> Weighted:
    """Return the sum of weights, with the outputs of all of them."""
    matrix = terms[0].matrix
    for term in terms[1:]:
        matrix = matrix + term.matrix
    rows, first = np.unique(np.concatenate([term.rows for term in terms]), return_index=True)
    outputs = np.concatenate([term.outputs for term in terms])[first]
    matrix.sort_indices()
    return Weighted(sp.csr_array(matrix), rows, outputs)


def predictions(
    known: tuple[OutputKernel, Outputs], total: Floats | Weighted, is_partitioned: bool
) -> Predicted:
    """Return the predictions that the sum of all contributions stands for."""
    kernel, outputs = known
    if not isinstance(total, Weighted):
        return Span(kernel, outputs), SummedWeights(total, len(outputs))
    if is_partitioned:  # the outputs are a sample
        return Span(kernel, total.outputs), SparseWeights(total.support())
    return Span(kernel, outputs), SparseWeights(total.matrix)


def decoded(predicted: Predicted, decoder: Decoder, empty: Outputs) -> Outputs:
    """Decode predictions; without any, return the empty array."""
    span, W = predicted
    return as_array(span.kernel.in_form(decoder.decode(W, span))) if W.shape[0] else empty


def columns_of(W: Weighted, begin: int, end: int) -> sp.csr_array:
    """Return the weights of a range of training rows."""
    return W.matrix[:, begin:end]


def inner_products(left: Predicted, right: Predicted) -> Floats:
    """Return the inner products of predictions, which may have different outputs."""
    (span, W), (other, V) = left, right
    if W.shape[0] == 0 or V.shape[0] == 0:
        return np.zeros((W.shape[0], V.shape[0]))
    if isinstance(W, SummedWeights) and isinstance(V, SummedWeights):
        return W.sums @ V.sums.T
    both = Span(span.kernel, np.concatenate([span.outputs, other.outputs]))
    n, m = len(span), len(other)
    wide = sp.hstack([W.tocsr(), sp.csr_array((W.shape[0], m))], format="csr")
    far = sp.hstack([sp.csr_array((V.shape[0], n)), V.tocsr()], format="csr")
    return both.gram(wide, far)


def known_of(part: Any) -> Any:
    """Return the kernel and the training outputs, which every part has."""
    return part.kernel, part.outputs


class Truth(NamedTuple):
    """The true outputs of a partition, and their weights."""

    outputs: Outputs
    weight: Floats


class Terms(NamedTuple):
    """The contribution of the rows of a partition to the kernel R².

    ``loss`` and ``square`` are weighted sums of ‖φ(y) − F(x)‖² and ‖φ(y)‖². With explicit features,
    ``mean`` is the weighted mean of φ(y), and ``spread`` the weighted sum of squares around it.
    """

    loss: float
    square: float
    weight: float
    n_rows: int
    mean: Any = 0.0
    spread: float = 0.0


def kernel_r2(kernel: OutputKernel, predicted: list[Any], truths: list[list[Any]]) -> Any:
    """Return the kernel R² as a lazy array without axes; truths are outputs, or with weights."""
    shared = sent_once(kernel)
    true = [with_blocks(truth_of, blocks, shared) for blocks in truths]
    terms = [lazy(terms_of)(*pair) for pair in zip(predicted, true, strict=True)]
    products = None
    if kernel.feature_dim(np.zeros((1, 1))) is None:
        products = [lazy(pair_sum)(shared, a, b) for a in true for b in true]
    return require("dask.array").from_delayed(lazy(r2)(terms, products), (), np.float64)


def accuracy(kernel: OutputKernel, predicted: list[Any], truths: list[list[Any]]) -> Any:
    """Return the share of rows whose class is predicted as a lazy array without axes."""
    shared = sent_once(kernel)
    counts = [
        lazy(correct)(labels, with_blocks(truth_of, blocks, shared))
        for labels, blocks in zip(predicted, truths, strict=True)
    ]
    return require("dask.array").from_delayed(lazy(ratio)(counts), (), np.float64)


def truth_of(kernel: OutputKernel, y: Any, weight: Any = None) -> Truth:
    """Check the true outputs of a partition."""
    if len(y) == 0:
        return Truth(np.empty(0), np.empty(0))
    outputs = kernel.check(y)
    return Truth(outputs, check_sample_weight(weight, outputs, ensure_non_negative=True))


def check_rows(n_rows: int, true: Truth) -> None:
    """Raise an error unless there are as many true outputs as predicted ones."""
    if len(true.outputs) != n_rows:
        raise ValueError(f"a partition has {n_rows} rows of X and {len(true.outputs)} of y.")


def correct(predicted: Outputs, true: Truth) -> tuple[float, float]:
    """Return the weight of the rows whose class is predicted, and of all rows."""
    check_rows(len(predicted), true)
    is_right = np.asarray(predicted == true.outputs, dtype=np.float64)
    return float(true.weight @ is_right), float(true.weight.sum())


def ratio(counts: list[tuple[float, float]]) -> Floats:
    """Return the sum of the first numbers divided by the sum of the others."""
    right, total = np.sum(counts, axis=0)
    return np.array(right / total if total > 0 else np.nan)


def terms_of(predicted: Predicted, true: Truth) -> Terms:
    """Return what a partition contributes to the kernel R²."""
    span, W = predicted
    outputs, weight = true
    check_rows(W.shape[0], true)
    if len(outputs) == 0:
        return Terms(0.0, 0.0, 0.0, 0)
    kernel, total = span.kernel, float(weight.sum())
    terms = Terms(
        float(weight @ span.losses(W, outputs)),
        float(weight @ kernel.diag(outputs)),
        total,
        len(outputs),
    )
    if total == 0 or kernel.feature_dim(outputs[:1]) is None:
        return terms
    features = kernel.features(outputs)
    mean = weight @ features / total
    return terms._replace(mean=mean, spread=float(weight @ ((features - mean) ** 2).sum(axis=1)))


def pair_sum(kernel: OutputKernel, a: Truth, b: Truth) -> float:
    """Return Σ ω_i ω_j k(y_i, y_j), a block of rows at a time."""
    if len(a.outputs) == 0 or len(b.outputs) == 0:
        return 0.0
    blocks = Span(kernel, a.outputs).blocks(len(a.outputs), len(b.outputs))
    return float(
        sum(a.weight[rows] @ kernel(a.outputs[rows], b.outputs) @ b.weight for rows in blocks)
    )


def r2(terms: list[Terms], products: list[float] | None) -> Floats:
    """Return 1 − loss / spread as :func:`okforest.metrics.kernel_r2` does, as an array."""
    loss, square, weight = (sum(part[i] for part in terms) for i in range(3))
    if sum(part.n_rows for part in terms) < 2:
        return np.array(np.nan)
    if weight == 0:
        spread = 0.0
    elif products is None:
        centre = sum(part.weight * part.mean for part in terms) / weight
        around = [part.weight * np.sum((part.mean - centre) ** 2) for part in terms if part.weight]
        spread = sum(part.spread for part in terms) + sum(around)
    else:
        spread = square - sum(products) / weight
        spread = spread if spread > 1e-13 * square else 0.0
    if spread <= 1e-28 * square:
        return np.array(1.0 if loss <= 1e-13 * square else 0.0)
    return np.array(1.0 - loss / spread)
