"""Forests that stay on the workers which have grown them."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from okforest._utils.arrays import Outputs
from okforest.dask.cluster import LostPart, log, require
from okforest.dask.partitions import (
    aligned_blocks,
    bare,
    input_blocks,
    lazy,
    n_rows_of,
    sent_once,
    with_blocks,
)
from okforest.dask.prediction import (
    accuracy,
    add_sums,
    add_weights,
    columns_of,
    decoded,
    decoded_like,
    inner_products,
    kernel_r2,
    known_of,
    part_kernel,
    part_sums,
    part_weights,
    predictions,
    stack,
    validated,
)
from okforest.decode import as_decoder
from okforest.engine import Trees
from okforest.kernels import Dirac
from okforest.weights import Span

TERMS_PER_TASK = 8  # one task adds up this many contributions


@dataclass
class RemoteForest:
    """A fitted forest whose trees stay on the workers of a cluster; see :func:`fit_remote`.

    Predictions are lazy Dask arrays. Every part of the forest computes its share, and the shares
    are added up.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    model : estimator
        The estimator with all fitted attributes except the trees, and the outputs if they are in
        partitions.
    parts : list of Future
        The trees, in parts.
    sizes : list of int
        The number of trees of each part.
    outputs : ndarray
        The training outputs; a sample of them if they are in partitions.
    rows : PartitionedRows, optional
        The training rows, if they are in partitions.

    See Also
    --------
    fit_remote : Fits such a forest, with an example.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKRandomForest
    >>> from okforest.dask import fit_remote
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> with Client(n_workers=2, processes=False, dashboard_address=":0") as client:
    ...     forest = fit_remote(OKRandomForest(10, random_state=0), X, y)
    ...     predicted = forest.predict(X).compute()
    >>> predicted.shape
    (442,)
    """

    client: Any
    model: Any
    parts: list[Any]
    sizes: list[int]
    outputs: Outputs
    rows: Any = None

    def __post_init__(self) -> None:
        self._known: Any = None

    def __len__(self) -> int:
        return sum(self.sizes)

    def __repr__(self) -> str:
        name = type(self.model).__name__
        if not self.parts:
            return f"<RemoteForest: {name}, released>"
        return f"<RemoteForest: {name} of {len(self)} trees in {len(self.parts)} parts>"

    @property
    def n_train(self) -> int:
        """Number of training rows."""
        return len(self.model.row_weight_)

    def predict(self, X: Any, candidates: Any = None) -> Any:
        """Predict outputs, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n, p)
            Inputs.
        candidates : array-like, optional
            Outputs to choose from; by default the model's ``decoder`` decides.

        Returns
        -------
        y : Dask array of n outputs
            Computed when it is asked for. It has the form of local predictions, as arrays even if
            the training outputs were a sparse matrix or a frame.
        """
        blocks, empty = self._decoded(X, candidates)
        return stack(blocks, X, empty)

    def _decoded(self, X: Any, candidates: Any = None) -> tuple[list[Any], Outputs]:
        """Return the predicted outputs of every partition, lazily, and an empty array of them."""
        span = Span(self.model.kernel_, self.outputs)
        decoder = as_decoder(self.model.decoder, span.kernel)
        if candidates is not None:
            decoder = decoder.with_candidates(candidates)
        empty = decoded_like(decoder, span)
        shared = sent_once(decoder)
        predicted = self._predicted(X, needs_weights="weights" in decoder.needs(span))
        return [lazy(decoded)(block, shared, empty) for block in predicted], empty

    def predict_weights(self, X: Any) -> Any:
        """Return the weights of the training outputs, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n, p)
            Inputs.

        Returns
        -------
        W : Dask array of shape (n, n_train)
            Its blocks are CSR arrays, one for each partition of X and of the training rows.
        """
        array = require("dask.array")
        offsets = [0, self.n_train] if self.rows is None else self.rows.offsets
        totals = self._weights(X)  # its error explains what to pass
        like = sp.csr_array((0, 0))
        blocks = [
            [
                array.from_delayed(lazy(columns_of)(W, begin, end), (n, end - begin), meta=like)
                for begin, end in pairwise(offsets)
                if end > begin
            ]
            for W, n in zip(totals, n_rows_of(X, len(totals)), strict=True)
        ]
        return array.block(blocks, allow_unknown_chunksizes=True)

    def predict_kernel(
        self, X: Any, Z: Any = None, scheme: Literal["convolve", "average"] = "convolve"
    ) -> Any:
        """Predict the output kernel between inputs, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n, p)
            Inputs.
        Z : Dask array or frame of shape (m, p), optional
            Other inputs; by default X.
        scheme : {"convolve", "average"}, default="convolve"
            w(x)ᵀ K w(z) with the weights of the whole forest, or the mean over trees of that.

        Returns
        -------
        K : Dask array of shape (n, m)
            The predicted kernel, in blocks by partitions of X and Z.
        """
        if scheme not in ("convolve", "average"):
            raise ValueError(f"scheme={scheme!r}; use 'convolve' or 'average'.")
        Z = X if Z is None else Z
        block = lazy(inner_products)
        blocks_of: Callable[[Any], list[Any]] = self._predicted
        if scheme == "average":
            block, blocks_of = partial(self._summed, part_kernel, add_sums), self._inputs
        left = blocks_of(X)
        right = left if Z is X else blocks_of(Z)
        n_rows, n_columns = n_rows_of(X, len(left)), n_rows_of(Z, len(right))
        array = require("dask.array")
        blocks = [
            [
                array.from_delayed(block(x, z), (n, m), dtype=np.float64)
                for z, m in zip(right, n_columns, strict=True)
            ]
            for x, n in zip(left, n_rows, strict=True)
        ]
        return array.block(blocks, allow_unknown_chunksizes=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return the kernel R², or the accuracy of a classifier, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n, p)
            Inputs.
        y : Dask array, series or frame of n outputs
            Their true outputs, in the same partitions.
        sample_weight : Dask array or series of shape (n,), optional
            Weights, in the same partitions.

        Returns
        -------
        score : Dask array without axes
            1 − Σ‖φ(y) − F(x)‖² / Σ‖φ(y) − φ̄‖², or with the Dirac kernel the fraction of rows that
            are classified correctly; ``float(score)`` computes it.
        """
        truths = [[part] for part in aligned_blocks(y, "y", X)]
        if sample_weight is not None:
            weights = aligned_blocks(sample_weight, "sample_weight", X)
            truths = [[y, weight] for [y], weight in zip(truths, weights, strict=True)]
        kernel = self.model.kernel_
        if isinstance(kernel, Dirac):
            return accuracy(kernel, self._decoded(X)[0], truths)
        return kernel_r2(kernel, self._predicted(X), truths)

    def to_local(self) -> Any:
        """Bring the trees here, and the training outputs if they are in partitions.

        Returns
        -------
        estimator : estimator
            An ordinary fitted estimator. The forest stays on the workers, too.
        """
        self._check_parts()
        model = clone(self.model)
        for name, value in vars(self.model).items():
            if name.endswith("_"):
                setattr(model, name, value)
        outputs = self.outputs
        if self.rows is not None:
            outputs = self.rows.outputs_at(self.client, self.model.kernel_, np.arange(self.n_train))
        try:
            parts = self.client.gather(self.parts)
        except (require("distributed").client.FutureCancelledError, LostPart):
            raise RuntimeError(self._lost("some")) from None
        log.info("brought %d trees here", len(self))
        model.trees_ = Trees.join([part.whole_trees(self.n_train) for part in parts])
        model.store_outputs(self.model.kernel_, outputs)
        return model

    def release(self) -> None:
        """Remove the forest from the workers, after the predictions that are being computed."""
        # Cancelling tasks that others depend on would cut the client off from the scheduler.
        for part in self.parts:
            part.release()
        self.parts, self.sizes, self._known = [], [], None

    def __reduce__(self) -> Any:
        raise TypeError(
            "a RemoteForest refers to trees on a cluster, and cannot be copied or pickled; "
            "to_local() returns an estimator that can."
        )

    def _check_parts(self) -> None:
        """Raise an error if the trees are no longer on the workers."""
        if not self.parts:
            raise RuntimeError("the forest was released; fit it again.")
        # A "lost" part can be grown again, or becomes an error.
        n_lost = sum(part.status in ("cancelled", "error") for part in self.parts)
        if n_lost:
            raise RuntimeError(self._lost(str(n_lost)))

    def _lost(self, number: str) -> str:
        return (
            f"{number} of {len(self.parts)} parts of the forest were on workers that have died; "
            "fit it again."
        )

    def _inputs(self, X: Any) -> list[Any]:
        """Return the partitions of X as lazy numbers."""
        shell = sent_once(bare(self.model))
        return [
            with_blocks(validated, [block], shell, p) for p, block in enumerate(input_blocks(X))
        ]

    def _summed(self, task: Callable[..., Any], add: Callable[..., Any], *arguments: Any) -> Any:
        """Add up the contributions of all parts, a few at a time."""
        self._check_parts()
        terms = [
            lazy(task)(part, size / len(self), *arguments)
            for part, size in zip(self.parts, self.sizes, strict=True)
        ]
        while len(terms) > 1:
            terms = [
                lazy(add)(terms[i : i + TERMS_PER_TASK])
                for i in range(0, len(terms), TERMS_PER_TASK)
            ]
        return terms[0]

    def _weights(self, X: Any) -> list[Any]:
        n_train = self.n_train
        return [self._summed(part_weights, add_weights, x, n_train) for x in self._inputs(X)]

    def _predicted(self, X: Any, needs_weights: bool = False) -> list[Any]:
        """Return lazy predictions: sums of explicit features if the kernel has few, or weights."""
        self._check_parts()
        dim = self.model.kernel_.feature_dim(self.outputs[:2])
        if dim is None or dim > self.n_train or needs_weights:
            totals = self._weights(X)
        else:
            totals = [self._summed(part_sums, add_sums, x) for x in self._inputs(X)]
        if self._known is None and self.rows is None:
            self._known = self.client.submit(known_of, self.parts[0], pure=False)
        elif self._known is None:  # a task, which is repeated if its worker dies
            known = self.model.kernel_, self.outputs
            self._known = self.client.submit(copy, known, pure=False)
        is_partitioned = self.rows is not None
        return [lazy(predictions)(self._known, total, is_partitioned) for total in totals]
