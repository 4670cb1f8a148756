"""More than one machine: forests on a Dask cluster.

:func:`fit` grows the trees of a forest on all workers, and returns an ordinary estimator.
:func:`predict` predicts the partitions of a Dask collection with any fitted model.
:func:`fit_remote` is for data or forests that no machine can hold: rows stay in their partitions
and trees on their workers, as a :class:`RemoteForest`. :func:`shared` sends a Gram matrix once for
a search with joblib's dask backend.
"""

from okforest.dask.fitting import fit, fit_remote
from okforest.dask.prediction import predict
from okforest.dask.remote import RemoteForest
from okforest.dask.sharing import shared

__all__ = ["RemoteForest", "fit", "fit_remote", "predict", "shared"]
