"""What trees are grown from: data as arrays, rules and a seed."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from okforest._utils.arrays import Floats, Inputs, Ints

UNLIMITED = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class GrowthRules:
    """How trees are grown.

    Parameters
    ----------
    random_splits : bool
        One uniform threshold per candidate feature, instead of every threshold.
    frobenius : bool
        Splits bring the kernel between leaves close to the outputs' kernel, instead of outputs
        close to their leaf's mean. Needs an uncentred Gram matrix and numeric features.
    max_features : int
        Number of candidate features at a node; more are tried until one can split it.
    ignore_constant : bool
        Whether features that are constant in a node do not count among these.
    order : {"depth", "variance", "gain"}
        Depth first, or best first by a node's total variance or by the gain of its split.
    max_depth, max_leaf_nodes : int
        Limits of a tree. A limit of leaves needs an order other than ``"depth"``.
    min_samples_split, min_samples_leaf : float
        Samples a node needs to be split, and a child needs to be allowed. A row counts as its
        weight, and as at least one.
    min_impurity_decrease : float
        Least gain of a split, divided by the tree's total weight.
    stop_when_pure : bool
        Whether a node of equal outputs is a leaf. Otherwise only inputs stop the growth.
    """

    random_splits: bool = False
    frobenius: bool = False
    max_features: int = UNLIMITED
    ignore_constant: bool = False
    order: Literal["depth", "variance", "gain"] = "depth"
    max_depth: int = UNLIMITED
    max_leaf_nodes: int = UNLIMITED
    min_samples_split: float = 2.0
    min_samples_leaf: float = 1.0
    min_impurity_decrease: float = 0.0
    stop_when_pure: bool = True


@dataclass(frozen=True)
class GrowthPlan:
    """All that trees depend on, validated; with a tree's number it determines the tree.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p), float32 or float64
        Inputs. An array may have any memory layout and is never copied; a sparse matrix is never
        made dense. NaN is a missing value; all others are finite.
    outputs : ndarray of shape (n, rank), (n, n) or (n,), C-contiguous
        A factor of the outputs' Gram matrix or, with ``gram=True``, the matrix itself, in float64.
        The trees are the same. Neither needs to be centred, but rounding is smaller if it is. On
        the CPU, numbers of classes, int32, stand for a factor whose rows indicate them.
    gram : bool
        Which of the two forms ``outputs`` has.
    rules : GrowthRules
        How to grow.
    row_weight : ndarray of shape (n,)
        Weights of the rows; rows of weight zero take no part.
    n_categories : ndarray of shape (p,), int32
        Number of categories of each feature, whose values are codes 0, 1, …; 0 for numeric
        features.
    seed : int
        The seed of all trees.
    n_draws : int
        Number of rows drawn with replacement for each tree, with probability proportional to
        their weights; 0 to grow every tree on all rows.
    row_sums : ndarray of shape (n,), optional
        The sums of the rows of a Gram matrix, if they are known.
    row_errors : ndarray of shape (n,), optional
        By how much equal outputs may differ because of rounding, as squared distances: a node whose
        variance is smaller is a leaf. What ``outputs`` shows by itself needs not be given.
    """

    X: Inputs
    outputs: npt.NDArray[Any]
    gram: bool
    rules: GrowthRules
    row_weight: Floats
    n_categories: Ints
    seed: int
    n_draws: int = 0
    row_sums: Floats | None = None
    row_errors: Floats | None = None

    def tree_bytes(self) -> int:
        """Return what a thread needs for a tree beyond O(n): coordinates of the Frobenius rule.

        These are numbers for every row and leaf of the tree.
        """
        if not self.rules.frobenius:
            return 0
        used = self.row_weight[self.row_weight > 0]
        n_samples = self.n_draws or float(np.maximum(used, 1.0).sum())
        n_rows = min(len(used), self.n_draws or len(used))
        n_leaves = min(
            n_rows,
            self.rules.max_leaf_nodes,
            2 ** min(self.rules.max_depth, 62),
            int(n_samples / max(1.0, self.rules.min_samples_leaf)),
        )
        return 8 * n_rows * n_leaves
