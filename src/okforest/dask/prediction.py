"""Prediction for the partitions of a Dask collection."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from okforest._utils.arrays import Outputs
from okforest.dask._blocks import input_blocks, naming_partition, with_blocks
from okforest.dask._cluster import find_client, require, with_replicated
from okforest.dask._predicted import as_array
from okforest.decode import Decoder
from okforest.models import OKModel
from okforest.weights import Span, SparseWeights


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
    dask = require("dask")
    empty = _empty_prediction(estimator, candidates)
    client = _current_client(client)
    if client is None:
        model = dask.delayed(estimator, traverse=False)
    else:
        future = require("distributed").Future
        # Sent again if a worker dies meanwhile; a second future keeps the model on the cluster.
        model = with_replicated(client, estimator, lambda sent: future(sent.key, client))
    shared = dask.delayed(candidates, traverse=False)
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
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
    arrays = [
        array.from_delayed(block, shape=(length, *empty.shape[1:]), meta=empty)
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return array.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


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
    """Return a given client or the current one, checked; None if there is none."""
    if client is None:
        try:
            client = require("distributed").get_client()
        except ValueError:
            return None
    return find_client(client)
