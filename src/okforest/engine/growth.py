"""Growing trees from inputs and embedded outputs (output kernel trees, OK3)."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from okforest import _core
from okforest._typing import Floats, Ints, Progress
from okforest.engine.inputs import Inputs, by_columns
from okforest.engine.trees import Trees

UNLIMITED = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class Rules:
    """How trees are grown.

    Parameters
    ----------
    random_splits : bool
        One uniform threshold per feature tried, instead of every threshold.
    frobenius : bool
        Splits bring the kernel between leaves near the outputs' kernel, instead of outputs near
        their leaf's mean. Needs a Gram matrix, which is not centred, and numeric features.
    max_features : int
        How many features are tried at a node, and more until one can split it.
    order : {"depth", "variance", "gain"}
        Depth first, or best first by a node's total variance or by the gain of its split.
    max_depth, max_leaf_nodes : int
        Limits of a tree.
    min_samples_split, min_samples_leaf : float
        Samples a node must have to be split, and a child to be allowed. A row counts as its
        weight, and at least as one.
    min_impurity_decrease : float
        Least gain of a split, as a part of the tree's total weight.
    stop_when_pure : bool
        Whether a node of equal outputs is a leaf. Otherwise only inputs stop the growth.
    """

    random_splits: bool = False
    frobenius: bool = False
    max_features: int = UNLIMITED
    order: Literal["depth", "variance", "gain"] = "depth"
    max_depth: int = UNLIMITED
    max_leaf_nodes: int = UNLIMITED
    min_samples_split: float = 2.0
    min_samples_leaf: float = 1.0
    min_impurity_decrease: float = 0.0
    stop_when_pure: bool = True


def grow(
    X: Inputs,
    outputs: Floats,
    rules: Rules,
    *,
    n_categories: Ints | None = None,
    gram: bool = False,
    row_weight: Floats | None = None,
    seed: int = 0,
    first_tree: int = 0,
    n_trees: int = 1,
    n_draws: int = 0,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Trees:
    """Grow trees.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p), float32 or float64
        Inputs. An array may have any memory layout and is never copied; a sparse matrix is never
        made dense. NaN is a missing value.
    outputs : ndarray of shape (n, rank) or (n, n), float64, C-contiguous
        A factor of the outputs' Gram matrix or, with ``gram=True``, the matrix itself. The trees
        are the same; neither needs to be centred, but rounding is smaller if it is.
    rules : Rules
        How to grow.
    n_categories : ndarray of shape (p,), int32, optional
        Number of categories of each feature, whose values are codes 0, 1, …; 0 if it is numeric.
    gram : bool
        Which of the two forms ``outputs`` has.
    row_weight : ndarray of shape (n,), optional
        Weights of the rows, ones by default; rows of weight zero take no part.
    seed : int
        Tree number t depends on this seed and on t alone.
    first_tree, n_trees : int
        Which trees to grow.
    n_draws : int
        Rows drawn with replacement for each tree, a row's chance being its weight. With 0, every
        tree is grown on all rows.
    n_threads : int
        Threads to use; they do not change the result.
    progress : callable, optional
        Called with the number of trees done, about twenty times a second.
    """
    n_rows, n_features = X.shape
    if row_weight is None:
        row_weight = np.ones(n_rows)
    if n_categories is None:
        n_categories = np.zeros(n_features, dtype=np.int32)
    arrays = _core.grow(
        X=by_columns(X),
        outputs=outputs,
        gram=gram,
        row_weight=row_weight,
        seed=seed,
        first_tree=first_tree,
        n_trees=n_trees,
        n_draws=n_draws,
        n_threads=n_threads,
        n_categories=n_categories,
        progress=progress,
        **asdict(rules),
    )
    # A drawn row weighs as often as it was drawn: its own weight was spent in the draw.
    members_weight = np.ones(n_rows) if n_draws else row_weight
    return Trees(**arrays, row_weight=members_weight, n_categories=n_categories)
