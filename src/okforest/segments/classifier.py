"""Classification of objects by their segments."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from okforest._typing import Floats, Outputs
from okforest.segments._task import TaskModel


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
