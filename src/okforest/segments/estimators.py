"""Classification of and regression on objects by their segments."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from okforest._utils.arrays import Floats, Outputs
from okforest._utils.parameters import as_integer
from okforest.models import OKExtraTrees
from okforest.segments.base import Segmenter
from okforest.segments.evidence import Evidence
from okforest.segments.model import MaxSegments, SegmentModel

N_DEFAULT_TREES = 10


class TaskModel(SegmentModel):
    """A model on segments with a kernel, a decoder and a default estimator of its own."""

    default_min_samples_leaf = 1

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SegmentModel._parameter_constraints,
        "estimator": [BaseEstimator, None],
    }

    def __init__(
        self,
        segmenter: Segmenter,
        estimator: Any = None,
        *,
        combine: Literal["mean", "confidence"] = "mean",
        max_segments: MaxSegments = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            segmenter,
            estimator,
            combine=combine,
            max_segments=max_segments,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    def _default_estimator(self) -> Any:
        return OKExtraTrees(N_DEFAULT_TREES, min_samples_leaf=self.default_min_samples_leaf)


class SegmentClassifier(ClassifierMixin, TaskModel):
    """Classifies objects by the mean of the class probabilities of their segments.

    Parameters
    ----------
    segmenter : Segmenter
        How objects are cut: :class:`RandomSubwindows`, :class:`RandomSubseries`,
        :class:`KmerWindows`, :class:`Neighborhoods`, or one of your own.
    estimator : estimator, optional
        The classifier of segments: any model of okforest, whose kernel is replaced by the Dirac
        kernel, or any classifier of scikit-learn with ``predict_proba``. By default
        ``OKExtraTrees(10)``, grown until leaves are pure.
    combine : {"mean", "confidence"}, default="mean"
        Whether segments count the same, or in proportion to the squared distance of their class
        probabilities from the frequencies of the classes.
    max_segments : int, "auto" or None, default="auto"
        The estimator is fitted to at most this number of training segments, equally many of each
        object and at least one, so that the memory of ``fit`` is bounded. If there are more, the
        leaves of trees are then filled with all segments, a batch at a time. "auto" is a million,
        or one per object if there are more objects, with a warning if there are more segments;
        None is no bound.
    random_state : int, RandomState instance or None, default=None
        The seed of the segments, and of the estimator if it has none of its own.
    n_jobs : int, optional
        Number of threads; -1 for all cores. It is passed on to an estimator without its own.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    kernel_ : OutputKernel
        The Dirac kernel.
    outputs_ : ndarray
        The training labels, one per object.
    segmenter_ : Segmenter
        The segmenter, with what it has learnt from the training objects.
    learner_ : object
        The fitted estimator, as ``learner_.estimator_``, and what turns its predictions into
        weights over the training objects.
    object_weight_ : ndarray of shape (n,)
        The weights of the training objects.
    seed_ : int
        The seed of the segments.
    n_features_in_ : int
        Number of columns of X, if X is an array with two axes.

    See Also
    --------
    SegmentModel : Any other output.

    References
    ----------
    R. Marée, P. Geurts, J. Piater, L. Wehenkel, "Random subwindows for robust image
    classification", CVPR 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from okforest.segments import RandomSubwindows, SegmentClassifier
    >>> digits = load_digits()
    >>> model = SegmentClassifier(RandomSubwindows(20, side_range=(0.5, 1.0)), random_state=0)
    >>> model.fit(digits.images[:500], digits.target[:500]).predict(digits.images[500:503])
    array([8, 2, 2])
    >>> model.predict_proba(digits.images[500:503]).shape
    (3, 10)
    """

    classes_: Outputs

    _task = "classifier"
    kernel = "dirac"
    decoder = "majority"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Cut the objects and fit the classifier to their segments.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects, as the segmenter takes them.
        y : array-like of n labels
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the objects.

        Returns
        -------
        self : object
            The fitted model.
        """
        if y is not None:
            y = column_or_1d(y, warn=True)
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        super().fit(X, y, sample_weight)
        self.classes_ = np.unique(self.outputs_)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes: the means over an object's segments.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects.

        Returns
        -------
        P : ndarray of shape (n, n_classes)
            One column for each of ``classes_``.
        """
        W = self.weight_matrix(X)
        return W @ np.equal.outer(self.outputs_, self.classes_).astype(np.float64)

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        if not np.array_equal(self.classes_, np.unique(self.outputs_)):
            raise ValueError("classes_ are not the labels in outputs_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class SegmentRegressor(RegressorMixin, TaskModel):
    """Predicts numbers or vectors of objects by the mean of the predictions for their segments.

    Parameters
    ----------
    segmenter : Segmenter
        How objects are cut: :class:`RandomSubwindows`, :class:`RandomSubseries`,
        :class:`KmerWindows`, :class:`Neighborhoods`, or one of your own.
    estimator : estimator, optional
        The regressor on segments: any model of okforest, whose kernel is replaced by the linear
        kernel, or any regressor of scikit-learn. By default
        ``OKExtraTrees(10, min_samples_leaf=5)``.
    combine : {"mean", "confidence"}, default="mean"
        Whether segments count the same, or in proportion to the squared distance of their
        predictions from the mean of the training outputs.
    max_segments : int, "auto" or None, default="auto"
        The estimator is fitted to at most this number of training segments, equally many of each
        object and at least one, so that the memory of ``fit`` is bounded. If there are more, the
        leaves of trees are then filled with all segments, a batch at a time. "auto" is a million,
        or one per object if there are more objects, with a warning if there are more segments;
        None is no bound.
    random_state : int, RandomState instance or None, default=None
        The seed of the segments, and of the estimator if it has none of its own.
    n_jobs : int, optional
        Number of threads; -1 for all cores. It is passed on to an estimator without its own.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    kernel_ : OutputKernel
        The linear kernel.
    outputs_ : ndarray
        The training outputs, one per object.
    segmenter_ : Segmenter
        The segmenter, with what it has learnt from the training objects.
    learner_ : object
        The fitted estimator, as ``learner_.estimator_``, and what turns its predictions into
        weights over the training objects.
    object_weight_ : ndarray of shape (n,)
        The weights of the training objects.
    seed_ : int
        The seed of the segments.
    n_features_in_ : int
        Number of columns of X, if X is an array with two axes.

    See Also
    --------
    SegmentModel : Any other output.

    Examples
    --------
    Predict how fast a wave oscillates from parts of it:

    >>> import numpy as np
    >>> from okforest.segments import RandomSubseries, SegmentRegressor
    >>> rng = np.random.default_rng(0)
    >>> frequency = rng.uniform(1, 5, 200)
    >>> X = np.sin(np.linspace(0, 6, 80) * frequency[:, None] + rng.uniform(0, 6, (200, 1)))
    >>> model = SegmentRegressor(RandomSubseries(50), random_state=0).fit(X[:150], frequency[:150])
    >>> bool(model.score(X[150:], frequency[150:]) > 0.8)
    True
    """

    _task = "regressor"
    kernel = "linear"
    decoder = "mean"
    default_min_samples_leaf = 5

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², averaged over the components of vectors.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects.
        y : array-like of n numbers or vectors
            Their outputs.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        score : float
            R², as in scikit-learn.
        """
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def evidence(self, item: Any, output: int | None = None) -> Evidence:
        """Explain a predicted number by the predictions of segments, and their places.

        Parameters
        ----------
        item : object
            An object, as in a list that is passed to :meth:`predict`.
        output : int, optional
            Which number of the output to explain, from 0, if outputs are vectors.

        Returns
        -------
        evidence : Evidence
            ``support`` has the prediction for each segment, ``total`` is that for the object.
            ``evidence.map`` has the means over the segments that cover each part of the object,
            and ``evidence.plot()`` draws them.
        """
        checked, segments, weights = self.cut_one(item)
        n = self.outputs_[0].size
        column, name = self._column(output, n), "prediction"
        if n > 1:
            name = f"prediction of output {column}"
        support = weights @ self.outputs_.reshape(-1, n)[:, column]
        shares = self._shares(segments, weights)
        predicted = float(shares @ support)
        return Evidence(self.segmenter_, checked, segments.places, support, shares, predicted, name)

    def _column(self, output: Any, n: int) -> int:
        """Return which of the n numbers of an output is explained."""
        if n == 1:
            if output is not None:
                raise ValueError(
                    f"output={output!r}, and this {type(self).__name__} predicts a single number; "
                    "call evidence(item) without an output."
                )
            return 0
        reason = f"this {type(self).__name__} predicts {n} numbers, one of which is explained"
        return as_integer("output", output, 0, n - 1, reason=reason)
