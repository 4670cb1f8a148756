"""Checks of X, y and weights as users pass them; the rest of the package trusts its arrays."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from okforest._utils.arrays import (
    Booleans,
    Floats,
    Inputs,
    Ints,
    Outputs,
    namespace,
    on_gpu,
    to_host,
)
from okforest._utils.codings import (
    CategoricalEncoding,
    Coded,
    Codings,
    coded_columns,
    column_of_coordinates,
    encode_levels,
    expand,
)
from okforest._utils.compat import check_sample_weight
from okforest._utils.frames import (
    Categories,
    as_columns,
    categorical_names,
    category_counts,
    encode,
    learn_categories,
    needs_conversion,
)


@dataclass(frozen=True)
class TrainingInputs:
    """The inputs of a fit, validated, and what is learnt from them.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        The inputs as numbers; once categories are coded, what trees are grown from.
    n_features : int
        Number of features.
    categories : list
        For each feature its categories, or None if it is numeric.
    coded : Coded or None
        What has been learnt of categories that are coordinates.
    """

    X: Inputs
    n_features: int
    categories: Categories
    coded: Coded | None = None

    @property
    def n_categories(self) -> Ints:
        """The number of categories of each column of X; 0 for numbers and coordinates."""
        return column_category_counts(self.categories, self.coded and self.coded.codings)

    @property
    def has_missing(self) -> Booleans:
        """Which features have missing values."""
        return missing_features(self.X if self.coded is None else self.coded.codes)


PLAIN_TYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint8))


def learn_inputs(
    estimator: BaseEstimator,
    X: Any,
    sample_weight: Any = None,
    least_rows: int = 2,
    *,
    on_device: bool = False,
) -> TrainingInputs:
    """Validate the X of a fit, and set the number and the names of features.

    It is for models that take missing values and categories.

    X becomes a float32, float64 or uint8 array, or a sparse matrix of floats, copied only if it is
    not one already. Categories become codes, in a copy. It must have ``least_rows`` rows. An array
    of numbers on a GPU stays there with ``on_device``.
    """
    X = as_columns(X if on_device else to_host(X))
    categories = learn_categories(
        X,
        estimator.categorical_features,
        to_host(sample_weight),
        limited=getattr(estimator, "categorical_encoding", "subsets") == "subsets",
    )
    X = _check_trees_X(estimator, X, categories, reset=True, least_rows=least_rows)
    return TrainingInputs(X, estimator.n_features_in_, categories)


def adopt_inputs(estimator: BaseEstimator, fitted: BaseEstimator) -> None:
    """Copy the attributes about inputs from a fitted part of an estimator to the estimator."""
    estimator.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        estimator.feature_names_in_ = fitted.feature_names_in_


def continue_inputs(estimator: BaseEstimator, X: Inputs) -> TrainingInputs:
    """Return inputs that were validated against an earlier fit, with what that fit has learnt."""
    categories = getattr(estimator, "categories_", [None] * estimator.n_features_in_)
    return TrainingInputs(X, estimator.n_features_in_, categories)


def code_categories(
    inputs: TrainingInputs,
    encoding: CategoricalEncoding,
    vectors: Callable[[], Floats],
    weight: Floats,
    seed: int,
    *,
    boosted: bool = False,
) -> TrainingInputs:
    """Return inputs whose categories with many levels are coordinates.

    ``vectors`` returns the outputs in their leading principal directions, and is called if there
    are such categories.
    """
    columns = coded_columns(inputs.categories, encoding)
    if not columns:
        return inputs
    n_levels = {j: len(known) for j in columns if (known := inputs.categories[j]) is not None}
    coded = encode_levels(np.asarray(inputs.X), n_levels, vectors(), weight, seed, boosted=boosted)
    return replace(inputs, X=coded.growth, coded=coded)


def column_category_counts(categories: Categories, codings: Codings | None) -> Ints:
    """Return the number of categories of each column that trees split; 0 for coordinates."""
    counts = category_counts(categories)
    if codings is None:
        return counts
    counts[[table is not None for table in codings]] = 0
    return counts[column_of_coordinates(codings)]


def check_inputs(
    estimator: BaseEstimator, X: Any, *, on_device: bool = False, coded: bool = True
) -> Inputs:
    """Validate the X of a prediction in the same way, with the categories of the fit.

    ``coded`` is whether levels that the fit has coded become coordinates.
    """
    if _is_valid(estimator, X):
        return X
    X = as_columns(X if on_device else to_host(X))
    X = _check_trees_X(estimator, X, estimator.categories_, reset=False)
    codings = getattr(estimator, "codings_", None)
    return expand(X, codings) if coded and codings is not None else X


def _is_valid(estimator: BaseEstimator, X: Any) -> bool:
    """Return True if X is an array that certainly passes all checks, and would not be changed.

    The checks of scikit-learn take as long as the prediction of a row.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in PLAIN_TYPES or not len(X):
        return False
    known = vars(estimator)
    if X.shape[1] != known.get("n_features_in_") or "feature_names_in_" in known:
        return False
    if any(stride % X.itemsize for stride in X.strides):
        return False
    if any(categories is not None for categories in estimator.categories_):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return X.dtype == np.uint8 or bool(np.isfinite(X.sum()))  # else entries are looked at


def learn_numbers(estimator: BaseEstimator, X: Any, missing: str = "") -> TrainingInputs:
    """Validate the X of a fit, for models that require numbers, and set what it has of features.

    X becomes a float64 array or CSR array. ``missing`` is the advice in the error about missing
    values; if it is empty, they are allowed.
    """
    X = _check_numeric_X(estimator, X, missing, reset=True)
    return TrainingInputs(X, estimator.n_features_in_, [None] * X.shape[1])


def check_numbers(estimator: BaseEstimator, X: Any, missing: str = "") -> Inputs:
    """Validate the X of a prediction in the same way."""
    return _check_numeric_X(estimator, X, missing, reset=False)


def _check_trees_X(
    estimator: BaseEstimator, X: Any, categories: Categories, *, reset: bool, least_rows: int = 1
) -> Inputs:
    floats = [np.float64, np.float32]
    rules = {
        "dtype": floats if sp.issparse(X) else [*floats, np.uint8],
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": least_rows,
    }
    if needs_conversion(X) or any(known is not None for known in categories):
        advice = "Name columns of text in categorical_features, or convert them to numbers."
        if not reset:
            advice = "There were only numbers in training."
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return check_array(encode(X, categories, advice), input_name="X", **rules)
    if on_gpu(X):
        return _check_trees_X_on_device(estimator, X, reset, least_rows)
    X = validate_data(estimator, X, reset=reset, accept_sparse=("csr", "csc"), **rules)
    if not sp.issparse(X) and any(stride % X.itemsize for stride in X.strides):
        X = X.copy()  # a field of a structured array, whose strides the engine does not support
    return X


def _check_trees_X_on_device(
    estimator: BaseEstimator, X: Any, reset: bool, least_rows: int
) -> Inputs:
    """Check an array on a GPU; whatever is wrong is explained on the host."""
    infinite = X.dtype.kind == "f" and bool(namespace(X).isinf(X).any())
    if X.ndim != 2 or X.dtype.kind not in "biuf" or infinite or X.shape[0] < least_rows:
        return _check_trees_X(estimator, to_host(X), [], reset=reset, least_rows=least_rows)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    kept = X.dtype in (np.float64, np.float32, np.uint8)
    checked: Inputs = X if kept else X.astype(np.float64)
    return checked


def _check_numeric_X(estimator: BaseEstimator, X: Any, missing: str, *, reset: bool) -> Inputs:
    X = as_columns(to_host(X))
    advice = (
        f"{type(estimator).__name__} requires numbers: encode categories, for example with "
        "scikit-learn's OneHotEncoder in a pipeline, or use trees."
    )
    categories = learn_categories(X, "from_dtype")
    if any(known is not None for known in categories):
        raise ValueError(
            f"X has categorical or text columns: {categorical_names(X, categories)}. {advice}"
        )
    rules = {
        "dtype": np.float64,
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2 if reset else 1,
    }
    if needs_conversion(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        X = check_array(encode(X, categories, advice), input_name="X", **rules)
    else:
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", **rules)
    if missing and missing_features(X).any():
        raise ValueError(f"X has missing values (NaN); {missing}")
    return X if isinstance(X, np.ndarray) else sp.csr_array(X)


def check_pairwise(X: Inputs, parameter: str, *, square: bool) -> None:
    """Check an X that holds one value per pair of rows, as a parameter requires."""
    if sp.issparse(X):
        raise ValueError(f"X is sparse; with {parameter} it must be a dense array.")
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}; with {parameter} it must be square, with one value per pair "
            "of training rows."
        )


def missing_features(X: Inputs) -> Booleans:
    """Return which features have missing values."""
    if X.dtype == np.uint8:
        return np.zeros(X.shape[1], dtype=bool)
    if on_gpu(X):
        missing = to_host(namespace(X).isnan(X).any(axis=0))
        return np.asarray(missing, dtype=bool)
    if not sp.issparse(X):
        return np.isnan(np.asarray(X)).any(axis=0, keepdims=True)[0]
    any_missing = np.zeros(X.shape[1], dtype=bool)
    if np.isnan(X.data).any():
        rows = sp.csr_array(X)
        any_missing[rows.indices[np.isnan(rows.data)]] = True
    return any_missing


def check_weights(sample_weight: Any, X: Inputs | Outputs) -> Floats:
    """Return a non-negative float64 weight for each row of X, 1 by default."""
    sample_weight = to_host(sample_weight)
    if np.ma.is_masked(sample_weight):
        raise ValueError("sample_weight has masked entries; pass a weight for every row.")
    weight: Floats = to_host(
        check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    )
    if np.count_nonzero(weight) < 2:
        raise ValueError(
            f"sample_weight has {np.count_nonzero(weight)} positive entries; at least 2 rows must "
            "have a positive weight."
        )
    if weight.max() > 1e100 or weight[weight > 0].min() < 1e-100:
        raise ValueError(
            f"sample_weight ranges from {weight[weight > 0].min():.3g} to {weight.max():.3g}; "
            "rescale it to between 1e-100 and 1e100."
        )
    return weight.copy()  # models keep it
