"""Regression on objects by their segments."""

from numbers import Integral
from typing import Any

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from okforest.segments._task import TaskModel
from okforest.segments.evidence import Evidence


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
    min_samples_leaf = 5

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
        """Explain a predicted number: what each segment predicts, and where it is.

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
        if not isinstance(output, Integral) or int(output) not in range(n):
            raise ValueError(
                f"output={output!r}, and this {type(self).__name__} predicts vectors of {n} "
                f"numbers; pass the position of the one to explain, from 0 to {n - 1}."
            )
        return int(output)
