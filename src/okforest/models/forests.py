"""Forests of output kernel trees: one constructor, presets, and out-of-bag estimates.

Out of bag, a training row is predicted by the trees that were not grown on it.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Integral
from types import FunctionType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from okforest._utils.arrays import Floats, Ints, Outputs, to_host
from okforest._utils.codings import CategoricalEncoding
from okforest._utils.errors import warn
from okforest._utils.inputs import TrainingInputs
from okforest._utils.resources import thread_count
from okforest._utils.state import Maybe
from okforest.decode import Decoder, as_decoder
from okforest.embedding import EmbeddingKind, SearchRank
from okforest.engine import DeviceName, Trees, apply
from okforest.engine.plan import UNLIMITED
from okforest.kernels import Dirac
from okforest.metrics.losses import weights_r2
from okforest.models.outputs import accuracy, tune_out_of_bag
from okforest.models.parameter_docs import document
from okforest.models.tree_model import FitPlan, Target, TreeModel
from okforest.weights import LeafWeights, Span, SparseWeights

# The prediction of a row that every tree was grown on, by kind of output.
UNKNOWN: dict[str, Any] = {"f": np.nan, "i": -1, "u": 0, "O": None}


class OutOfBag(NamedTuple):
    """Weights, predictions and score of the training rows."""

    weights: sp.csr_array
    prediction: Outputs
    score: float


def out_of_bag_weights(trees: Trees, leaves: Ints) -> sp.csr_array:
    """Return the weights of training rows from the trees that were not grown on them."""
    return LeafWeights(trees, np.where(trees.are_members(), np.int32(-1), leaves)).tocsr()


def out_of_bag(W: sp.csr_array, span: Span, decoder: Decoder, sample_weight: Floats) -> OutOfBag:
    """Return the out-of-bag estimates, given the weights of training rows."""
    known = np.diff(W.indptr) > 0
    if not known.all():
        warn(
            f"{(~known).sum()} training rows were drawn for every tree and have no out-of-bag "
            "prediction; grow more trees.",
        )
    decoded = span.kernel.as_given(decoder.decode(SparseWeights(W[known]), span))
    prediction = np.empty((len(known), *decoded.shape[1:]), dtype=decoded.dtype)
    prediction[~known] = UNKNOWN.get(decoded.dtype.kind, "")
    prediction[known] = decoded
    true, weight = span.outputs[known], sample_weight[known]
    if isinstance(span.kernel, Dirac):
        score = accuracy(true, decoded, weight)
    else:
        score = weights_r2(span, SparseWeights(W[known]), true, weight)
    return OutOfBag(W, prediction, score)


class _Forest(TreeModel):
    oob_weights_: Maybe[sp.csr_array]
    oob_prediction_: Maybe[Outputs]
    oob_score_: Maybe[float]

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        kernel: Any = "linear",
        criterion: Literal["variance", "frobenius"] = "variance",
        max_features: Any = None,
        ignore_constant: bool = False,
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float | Literal["auto"] = "auto",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        bootstrap: bool = False,
        max_samples: float | None = None,
        oob_score: bool = False,
        categorical_features: Any = "from_dtype",
        categorical_encoding: CategoricalEncoding = "auto",
        embedding: EmbeddingKind | Literal["auto"] = "auto",
        embedding_rank: int | None = None,
        search_rank: SearchRank = "auto",
        decoder: Any = "auto",
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        device: DeviceName = "cpu",
        verbose: int = 0,
        callback: Any = None,
    ):
        self.n_estimators = n_estimators
        self.kernel = kernel
        self.criterion = criterion
        self.max_features = max_features
        self.ignore_constant = ignore_constant
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.categorical_features = categorical_features
        self.categorical_encoding = categorical_encoding
        self.embedding = embedding
        self.embedding_rank = embedding_rank
        self.search_rank = search_rank
        self.decoder = decoder
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.callback = callback

    def _plan(self, X: Any, y: Any, sample_weight: Any, device: DeviceName = "cpu") -> FitPlan:
        if self.oob_score and not self.bootstrap:
            raise ValueError(
                "oob_score=True needs bootstrap=True: without it every tree is grown on all rows."
            )
        return super()._plan(X, y, sample_weight, device)

    def _n_draws(self, weight: Floats) -> int:
        """Return how many rows are drawn for each tree, by scikit-learn's rule; 0 for no draw."""
        if not self.bootstrap:
            if self.max_samples is not None:
                raise ValueError(
                    f"max_samples={self.max_samples!r} has no effect with bootstrap=False; "
                    "set bootstrap=True or max_samples=None."
                )
            return 0
        if self.max_samples is None:
            return int(np.count_nonzero(weight))
        if isinstance(self.max_samples, Integral):
            n_draws = int(self.max_samples)
        else:
            n_draws = max(1, int(self.max_samples * weight.sum()))
            if n_draws < max(10.0, len(weight) ** (1 / 3)):
                of, remedy = f"{len(weight)} rows", "Increase it"
                if (weight != 1.0).any():
                    of = f"a sum of weights of {weight.sum():.4g}"
                    remedy = "Rescale sample_weight"
                warn(
                    f"max_samples={self.max_samples!r} of {of} draws {n_draws} rows for each "
                    f"tree. {remedy}, or pass max_samples as an integer.",
                )
        if n_draws > UNLIMITED:
            raise ValueError(
                f"max_samples={self.max_samples!r} would draw {n_draws} rows for each tree; "
                f"at most {UNLIMITED} can be drawn. Lower max_samples, or the sum of "
                "sample_weight."
            )
        return n_draws

    def _finish(self, plan: FitPlan, grown: Trees | None) -> None:
        super()._finish(plan, grown)
        if plan.target is None:
            return
        decoder = as_decoder(self.decoder, self.kernel_)
        if not self.oob_score and decoder.is_tuned:
            return
        span = self.span_
        leaves = to_host(apply(self.trees_, plan.growth.X, thread_count(self.n_jobs), self.device))
        W = out_of_bag_weights(self.trees_, leaves)
        if not decoder.is_tuned:
            decoder = self.decoder_ = tune_out_of_bag(decoder, W, span)
        if self.oob_score:
            self.oob_weights_, self.oob_prediction_, self.oob_score_ = out_of_bag(
                W, span, decoder, plan.growth.row_weight
            )


def _with_defaults(owner: str, **defaults: Any) -> Callable[..., None]:
    """Return the constructor of a forest with different defaults of keyword parameters."""
    init = _Forest.__init__
    copy = FunctionType(init.__code__, init.__globals__, init.__name__, init.__defaults__)
    copy.__qualname__ = f"{owner}.__init__"  # shown in errors about arguments
    copy.__kwdefaults__ = {**(init.__kwdefaults__ or {}), **defaults}
    copy.__annotations__ = init.__annotations__
    return copy


def _without(init: Callable[..., None], *names: str) -> Callable[..., None]:
    """Return a constructor without some of the keyword parameters."""

    @wraps(init)
    def shorter(self: Any, *args: Any, **parameters: Any) -> None:
        for name in names:
            if name in parameters:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}.")
        init(self, *args, **parameters)

    shown = signature(init)
    kept = [parameter for parameter in shown.parameters.values() if parameter.name not in names]
    shorter.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    return shorter


@document
class OKExtraTrees(_Forest):
    """Extremely randomised output kernel trees: random thresholds, best of some features.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    OKRandomForest : Best thresholds, on bootstrap samples.
    OKTree : A single tree, easy to interpret.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, "Kernelizing the output of tree-based methods",
    ICML 2006.

    Examples
    --------
    Complete the lower half of handwritten digits from the upper half:

    >>> from sklearn.datasets import load_digits
    >>> from okforest import OKExtraTrees
    >>> digits = load_digits().data
    >>> upper, lower = digits[:, :32], digits[:, 32:]
    >>> forest = OKExtraTrees(kernel="rbf", random_state=0).fit(upper[:500], lower[:500])
    >>> forest.predict(upper[500:502]).shape
    (2, 32)
    >>> forest.predict_weights(upper[500:502]).shape
    (2, 500)
    """

    splitter: Literal["best", "random"] = "random"
    __init__ = _with_defaults(__qualname__, max_features="sqrt")


@document
class OKRandomForest(_Forest):
    """A random forest of output kernel trees: best thresholds, some features, bootstrap samples.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    OKBagging : The same, with all features at every node.
    OKExtraTrees : Random thresholds, faster to grow.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKRandomForest
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OKRandomForest(kernel="dirac", random_state=0).fit(X, y)
    >>> forest.predict(X[::50])
    array([0, 1, 2])
    """

    __init__ = _with_defaults(__qualname__, max_features="sqrt", bootstrap=True)


@document
class OKBagging(_Forest):
    """Bagged output kernel trees: best thresholds, all features, bootstrap samples.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    OKRandomForest : The same, with some features at every node.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from okforest import OKBagging
    >>> X, y = load_diabetes(return_X_y=True)
    >>> OKBagging(random_state=0).fit(X[:300], y[:300]).predict(X[300:302]).shape
    (2,)
    """

    __init__ = _with_defaults(__qualname__, bootstrap=True)


@document
class OKTotallyRandomTrees(_Forest):
    """Totally randomised trees: one random feature and threshold at every node.

    The trees do not depend on the outputs, and can be grown without y: the model then has weights,
    leaves and a tree kernel, but predicts no outputs. (With other values of ``max_features``,
    ``max_leaf_nodes``, ``min_impurity_decrease`` or ``ccp_alpha`` the trees do depend on y.)

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    OKExtraTrees : The best of a few random splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKTotallyRandomTrees
    >>> X, _ = load_iris(return_X_y=True)
    >>> OKTotallyRandomTrees(min_samples_leaf=5, random_state=0).fit(X).tree_kernel(X[:2]).shape
    (2, 2)
    """

    splitter: Literal["best", "random"] = "random"
    _uses_outputs: ClassVar[bool] = False
    __init__ = _without(
        _with_defaults(__qualname__, max_features=1, categorical_encoding="subsets"),
        *("criterion", "search_rank", "categorical_encoding"),
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OKTotallyRandomTrees":
        """Grow the trees.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs; float32, float64 and uint8 arrays are not copied. NaN is a missing value.
        y : array-like of n outputs, optional
            Outputs, of the type that the kernel takes; the trees do not depend on them.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        super().fit(X, y, sample_weight)
        return self

    def _embed(
        self, inputs: TrainingInputs, y: Any, weight: Floats, seed: int, device: DeviceName
    ) -> Target | None:
        return None if y is None else super()._embed(inputs, y, weight, seed, device)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
