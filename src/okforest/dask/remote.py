"""Forests that stay on the workers which have grown them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from okforest._utils.arrays import Outputs
from okforest.dask import _scoring
from okforest.dask._blocks import aligned_blocks, input_blocks, with_blocks
from okforest.dask._cluster import log, require
from okforest.dask._decoding import takes_sums
from okforest.dask._keeping import LostPart, known_of
from okforest.dask._partitions import bare
from okforest.dask._parts import (
    add_sums,
    add_weights,
    part_kernel,
    part_sums,
    part_weights,
    validated,
)
from okforest.dask._predicted import (
    columns_of,
    decoded,
    inner_products,
    predicted_by_sums,
    predicted_by_support,
    predicted_by_weights,
)
from okforest.dask.prediction import decoded_like, stack
from okforest.decode import as_decoder
from okforest.engine import Trees
from okforest.kernels import Dirac
from okforest.weights import Span

TOGETHER = 8  # contributions that one task adds up


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
        self._sent: Any = None

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
        dask = require("dask")
        span = Span(self.model.kernel_, self.outputs)
        decoder = as_decoder(self.model.decoder, span.kernel)
        if candidates is not None:
            decoder = decoder.with_candidates(candidates)
        empty = decoded_like(decoder, span)
        shared = dask.delayed(decoder, traverse=False)
        decode = dask.delayed(decoded, pure=False)
        predicted = self._predicted(X, needs_weights=not takes_sums(decoder, span))
        return [decode(some, shared, empty) for some in predicted], empty

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
        dask, array = require("dask"), require("dask.array")
        offsets = [0, self.n_train] if self.rows is None else self.rows.offsets
        weights_of_blocks = self._weights(X)  # which explains what to pass if X is no collection
        lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * X.npartitions
        columns = dask.delayed(columns_of, pure=False)
        like = sp.csr_array((0, 0))
        blocks = [
            [
                array.from_delayed(columns(weights, begin, end), (length, end - begin), meta=like)
                for begin, end in pairwise(offsets)
                if end > begin
            ]
            for weights, length in zip(weights_of_blocks, lengths, strict=True)
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
        dask, array = require("dask"), require("dask.array")
        if scheme not in ("convolve", "average"):
            raise ValueError(f"scheme={scheme!r}; use 'convolve' or 'average'.")
        Z = X if Z is None else Z
        if scheme == "average":
            share = dask.delayed(part_kernel, pure=False)
            terms = [self._inputs(X), self._inputs(Z)]

            def block(x: Any, z: Any) -> Any:
                return self._added(partial(_of_part, share, (x, z), ()), add_sums)
        else:
            inner = dask.delayed(inner_products, pure=False)
            left = self._predicted(X)
            terms = [left, left if Z is X else self._predicted(Z)]

            def block(x: Any, z: Any) -> Any:
                return inner(x, z)

        rows, columns = (
            values.chunks[0] if hasattr(values, "chunks") else [np.nan] * len(own)
            for values, own in zip((X, Z), terms, strict=True)
        )
        blocks = [
            [
                array.from_delayed(block(x, z), (n, m), dtype=np.float64)
                for z, m in zip(terms[1], columns, strict=True)
            ]
            for x, n in zip(terms[0], rows, strict=True)
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
            truths = [[*own, weight] for own, weight in zip(truths, weights, strict=True)]
        kernel = self.model.kernel_
        if isinstance(kernel, Dirac):
            return _scoring.accuracy(kernel, self._decoded(X)[0], truths)
        return _scoring.score(kernel, self._predicted(X), truths)

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
        self.parts, self.sizes, self._sent = [], [], None

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
        shell = require("dask").delayed(bare(self.model), traverse=False)
        return [
            with_blocks(validated, [block], shell, p) for p, block in enumerate(input_blocks(X))
        ]

    def _added(self, contribution: Callable[[Any, float], Any], add: Callable[..., Any]) -> Any:
        """Add up what all parts contribute, a few at a time."""
        self._check_parts()
        dask = require("dask")
        total = dask.delayed(add, pure=False)
        terms = [
            contribution(part, size / len(self))
            for part, size in zip(self.parts, self.sizes, strict=True)
        ]
        while len(terms) > 1:
            terms = [total(terms[i : i + TOGETHER]) for i in range(0, len(terms), TOGETHER)]
        return terms[0]

    def _weights(self, X: Any) -> list[Any]:
        share = require("dask").delayed(part_weights, pure=False)
        n_train = self.n_train
        return [
            self._added(partial(_of_part, share, (x,), (n_train,)), add_weights)
            for x in self._inputs(X)
        ]

    def _predicted(self, X: Any, needs_weights: bool = False) -> list[Any]:
        """Return lazy predictions: sums of explicit features if the kernel has few, or weights."""
        self._check_parts()
        dask = require("dask")
        dim = self.model.kernel_.feature_dim(self.outputs[:2])
        known = self._known()
        if dim is None or dim > self.n_train or needs_weights:
            by_weights = predicted_by_weights if self.rows is None else predicted_by_support
            make = dask.delayed(by_weights, pure=False)
            return [make(known, weights) for weights in self._weights(X)]
        share = dask.delayed(part_sums, pure=False)
        make = dask.delayed(predicted_by_sums, pure=False)
        return [
            make(known, self._added(partial(_of_part, share, (x,), ()), add_sums))
            for x in self._inputs(X)
        ]

    def _known(self) -> Any:
        """Return the kernel and the outputs: of a part, or sent once if a part has only its own."""
        if self._sent is None and self.rows is None:
            self._sent = self.client.submit(known_of, self.parts[0], pure=False)
        elif self._sent is None:
            # A task, which is repeated if its worker dies, as the parts of this forest are.
            known = (self.model.kernel_, self.outputs)
            self._sent = self.client.submit(_same, known, pure=False)
        return self._sent


def _same(known: Any) -> Any:
    return known


def _of_part(
    task: Callable[..., Any], inputs: tuple[Any, ...], more: tuple[Any, ...], part: Any, size: float
) -> Any:
    """Return a lazy contribution of a part, which has this share of the trees."""
    return task(part, *inputs, size, *more)
