"""Points of priors made from others: with new values of a feature, or transformed."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import rows_of
from okforest._utils.frames import as_floats, column, is_frame, label


def n_rows(X: Any) -> int:
    """Return the number of points."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def check_points(points: Any, X: Any, what: str) -> None:
    """Raise a ValueError unless points are rows with the features of X."""
    check_sparse(points, "points")
    shape = points.shape if hasattr(points, "shape") else np.shape(points)
    if len(shape) != 2 or shape[0] == 0 or shape[1] != X.shape[1]:
        raise ValueError(
            f"{what} shape {tuple(shape)}; expected (m, {X.shape[1]}): one or more rows with the "
            "features of X."
        )


def position_of(feature: Any, X: Any) -> int:
    """Return the position of a feature, given as a position or as a name."""
    names = [str(name) for name in X.columns] if is_frame(X) else None
    if isinstance(feature, str):
        if names is None:
            raise ValueError(f"feature={feature!r} is a name, and X has none; pass a position.")
        if feature not in names:
            raise ValueError(f"feature={feature!r} is not a column of X, which has {names}.")
        return names.index(feature)
    if not isinstance(feature, int | np.integer) or not 0 <= feature < X.shape[1]:
        raise ValueError(
            f"feature={feature!r}; X has {X.shape[1]} features, at positions from 0 to "
            f"{X.shape[1] - 1}."
        )
    return int(feature)


def numbers_of(X: Any, j: int) -> Floats:
    """Return a feature as numbers; categories, which have no order, raise a ValueError."""
    if sp.issparse(X):
        matrix: Any = X
        return np.asarray(matrix.tocsc()[:, [j]].toarray(), dtype=np.float64).ravel()
    try:
        return as_floats(column(X, j))
    except (TypeError, ValueError):
        raise ValueError(
            f"the feature {label(X, j)} holds {column(X, j)[0]!r}; Monotone needs a feature with "
            "numbers."
        ) from None


def repeated(points: Any, times: int, j: int, values: Floats) -> Any:
    """Return every point several times, with new values of a feature."""
    many: Any = rows_of(points, np.repeat(np.arange(n_rows(points)), times))
    if hasattr(many, "tolil"):
        columns = many.tolil()
        columns[:, [j]] = values[:, None]
        return sp.csr_array(columns)
    if not is_frame(many):
        many = np.array(many, dtype=np.float64)
        many[:, j] = values
        return many
    if hasattr(many, "iloc"):
        many = many.copy()
        many.isetitem(j, values)
        return many
    import polars as pl

    return many.with_columns(pl.Series(many.columns[j], values))


def stacked(a: Any, b: Any) -> Any:
    """Return the points a, then b; b becomes a frame if a is one."""
    if sp.issparse(a) or sp.issparse(b):
        return sp.csr_array(sp.vstack([sp.csr_array(a), sp.csr_array(b)]))
    if not is_frame(a):
        return np.concatenate([np.asarray(a), np.asarray(b)])
    if hasattr(a, "iloc"):
        import pandas as pd

        if not is_frame(b):
            b = pd.DataFrame(np.asarray(b), columns=a.columns)
        return pd.concat([a, b], ignore_index=True)
    import polars as pl

    if not is_frame(b):
        b = pl.DataFrame(np.asarray(b), schema=list(a.columns), orient="row")
    return pl.concat([a, b], how="vertical_relaxed")
