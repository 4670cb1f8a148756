"""Checks of what users pass as X, y and weights; after them the package trusts its arrays."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from okforest._categories import encode, learn_categories
from okforest._compat import check_sample_weight
from okforest._typing import Booleans, Floats, Outputs
from okforest.engine.inputs import Inputs
from okforest.kernels import OutputKernel


def check_inputs(
    estimator: BaseEstimator, X: Any, *, reset: bool, sample_weight: Any = None
) -> Inputs:
    """Return X as a float32 or float64 array or sparse matrix, copied only if it was neither.

    With ``reset`` the number, names and categories of features are learnt, otherwise compared.
    Categories become codes, which takes a copy.
    """
    if reset:
        estimator.categories_ = learn_categories(X, estimator.categorical_features, sample_weight)
    rules = {
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2 if reset else 1,
    }
    if any(values is not None for values in estimator.categories_):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return check_array(encode(X, estimator.categories_), **rules)
    X = validate_data(estimator, X, reset=reset, accept_sparse=("csr", "csc"), **rules)
    if not sp.issparse(X) and any(stride % X.itemsize for stride in X.strides):
        X = X.copy()  # a field of records: the engine steps from number to number
    return X


def check_numbers(estimator: BaseEstimator, X: Any, *, reset: bool, missing: str = "") -> Inputs:
    """Return X as a float64 array or CSR array, for models that know numeric features alone.

    With ``reset`` the number and names of features are learnt, otherwise compared. ``missing`` says
    what to do about missing values; they are let through where it is empty.
    """
    if any(values is not None for values in learn_categories(X, "from_dtype")):
        raise ValueError(
            f"X has categorical or text columns; {type(estimator).__name__} takes numbers. Encode "
            "them, for example by scikit-learn's OneHotEncoder in a pipeline, or use trees."
        )
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        ensure_min_samples=2 if reset else 1,
    )
    if missing and missing_features(X).any():
        raise ValueError(f"X has missing values (NaN); {missing}")
    return X if isinstance(X, np.ndarray) else sp.csr_array(X)


def check_pairwise(X: Inputs, parameter: str, *, square: bool) -> None:
    """Check an X that holds a number for each pair of rows, as a parameter says."""
    if sp.issparse(X):
        raise ValueError(f"X is sparse; with {parameter} it must be a dense array.")
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}; with {parameter} it holds a number for each pair of training "
            "rows, and is square."
        )


def missing_features(X: Inputs) -> Booleans:
    """Return which features have missing values."""
    if not sp.issparse(X):
        return np.isnan(np.asarray(X)).any(axis=0, keepdims=True)[0]
    columns = sp.csc_array(X)
    column_of = np.repeat(np.arange(X.shape[1]), np.diff(columns.indptr))
    missing = np.zeros(X.shape[1], dtype=bool)
    missing[column_of[np.isnan(columns.data)]] = True
    return missing


def check_outputs(estimator: BaseEstimator, kernel: OutputKernel, X: Any, y: Any) -> Outputs:
    """Return the outputs of X's rows in the kernel's canonical form."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    outputs = kernel.check(y)
    check_consistent_length(X, outputs)
    return outputs


def check_weights(sample_weight: Any, X: Inputs | Outputs) -> Floats:
    """Return one non-negative float64 weight per row of X, ones by default."""
    weight: Floats = check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if np.count_nonzero(weight) < 2:
        raise ValueError(
            f"sample_weight leaves {np.count_nonzero(weight)} rows with a positive weight; "
            "at least 2 are needed. Remove it, or weigh more rows."
        )
    if weight.max() > 1e100 or weight[weight > 0].min() < 1e-100:
        raise ValueError(
            f"sample_weight goes from {weight[weight > 0].min():.3g} to {weight.max():.3g}; "
            "rescale it to between 1e-100 and 1e100."
        )
    return np.ascontiguousarray(weight)
