"""Annotation: several labels for an object, and where they are seen."""

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, check_sparse
from okforest._utils.compat import Interval, StrOptions, fit_context
from okforest._utils.state import FittedState
from okforest.segments.base import Segmenter
from okforest.segments.estimators import SegmentRegressor
from okforest.segments.learners import check_estimator
from okforest.segments.model import MAX_SEGMENTS, MaxSegments


class SegmentAnnotator(FittedState):
    """Predicts sets of labels of objects, and where in an object each label is seen.

    Training needs the labels of whole objects only: a segment has all labels of its object. A label
    is predicted if its mean over the segments reaches a threshold of its own.

    Parameters
    ----------
    segmenter : Segmenter
        How objects are cut.
    estimator : estimator, optional
        The model on segments, from features to vectors of zeros and ones; as in
        :class:`SegmentRegressor`.
    threshold : "cv" or float, default="cv"
        The threshold of labels. With "cv", each label has the one with the highest F1 score of
        cross-validated predictions for the training objects.
    cv : int, default=3
        Number of folds.
    combine : {"mean", "confidence"}, default="mean"
        How segments are combined; as in :class:`SegmentModel`.
    max_segments : int, "auto" or None, default="auto"
        The largest number of training segments that ``fit`` holds; as in :class:`SegmentModel`.
    random_state : int, RandomState instance or None, default=None
        The seed of the segments and folds, and of the estimator if it has none of its own.
    n_jobs : int, optional
        Number of threads; -1 for all cores.
    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; numbers of columns if y is a matrix.
    thresholds_ : ndarray of shape (n_labels,)
        The threshold of each label.
    model_ : SegmentRegressor
        The fitted model, whose outputs are indicators of labels.
    takes_sets_ : bool
        Whether y was a list of sets.

    Examples
    --------
    >>> from okforest.datasets import make_textures
    >>> from okforest.segments import RandomSubwindows, SegmentAnnotator
    >>> images, maps = make_textures(40, seed=0)
    >>> labels = [set(labels.ravel().tolist()) for labels in maps]
    >>> segmenter = RandomSubwindows(50, side_range=(0.2, 0.3))
    >>> model = SegmentAnnotator(segmenter, random_state=0).fit(images[:30], labels[:30])
    >>> model.predict(images[30:32]).shape
    (2,)
    >>> model.label_map(images[30]).shape
    (64, 64, 4)
    """

    classes_: npt.NDArray[Any]
    thresholds_: Floats
    model_: SegmentRegressor
    takes_sets_: bool

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "segmenter": [Segmenter],
        "estimator": [BaseEstimator, None],
        "threshold": [Interval(Real, 0.0, 1.0, closed="both"), StrOptions({"cv"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "combine": [StrOptions({"mean", "confidence"})],
        "max_segments": MAX_SEGMENTS,
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        segmenter: Any,
        estimator: Any = None,
        *,
        threshold: float | Literal["cv"] = "cv",
        cv: int = 3,
        combine: Literal["mean", "confidence"] = "mean",
        max_segments: MaxSegments = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.segmenter = segmenter
        self.estimator = estimator
        self.threshold = threshold
        self.cv = cv
        self.combine = combine
        self.max_segments = max_segments
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model on segments, and choose the thresholds.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects, as the segmenter takes them.
        y : list of n sets of labels, or array-like of shape (n, n_labels)
            Labels, or a matrix of zeros and ones.

        Returns
        -------
        self : object
            The fitted model.
        """
        check_sparse(X, "X")
        if self.estimator is not None:
            check_estimator(self, self.estimator, "regressor")
        indicator = self._read_labels(y)
        model = SegmentRegressor(
            self.segmenter,
            self.estimator,
            combine=self.combine,
            max_segments=self.max_segments,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        if self.threshold == "cv":
            if self.cv > len(indicator):
                raise ValueError(
                    f"cv={self.cv} is more than the {len(indicator)} objects; set a smaller cv, or "
                    "a threshold, such as threshold=0.5."
                )
            folds = KFold(self.cv, shuffle=True, random_state=self.random_state)
            scores = cross_val_predict(clone(model), X, indicator, cv=folds)
            self.thresholds_ = np.array(
                [_best_threshold(*pair) for pair in zip(indicator.T > 0, scores.T, strict=True)]
            )
        else:
            self.thresholds_ = np.full(len(self.classes_), float(self.threshold))
        self.model_ = model.fit(X, indicator)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the mean over an object's segments of the predictions of each label.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects.

        Returns
        -------
        P : ndarray of shape (n, n_labels)
            One column for each of ``classes_``.
        """
        check_is_fitted(self)
        return self.model_.predict(X)

    def predict(self, X: Any) -> Any:
        """Return the labels whose means reach their thresholds.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects.

        Returns
        -------
        y : ndarray of n sets, or of shape (n, n_labels)
            In the form of the training labels.
        """
        chosen = self.predict_proba(X) >= self.thresholds_
        if not self.takes_sets_:
            return chosen.astype(np.int64)
        sets = np.empty(len(chosen), dtype=object)
        sets[:] = [set(self.classes_[row].tolist()) for row in chosen]
        return sets

    def label_map(self, item: Any) -> Floats:
        """Return where each label is seen: the mean over the segments that cover a place.

        Parameters
        ----------
        item : object
            An object, as in a list that is passed to :meth:`predict`.

        Returns
        -------
        maps : ndarray of shape (..., n_labels)
            For an image, (height, width, n_labels); NaN where no segment is.
        """
        check_is_fitted(self)
        model = self.model_
        checked, segments, weights = model.cut_one(item)
        return model.segmenter_.spread(checked, segments.places, weights @ model.outputs_)

    def _read_labels(self, y: Any) -> Floats:
        """Return indicators of labels, and store what the labels are."""
        if y is None:
            raise ValueError("SegmentAnnotator requires y to be passed, but the target y is None.")
        rows = list(y)
        self.takes_sets_ = bool(rows) and isinstance(rows[0], set | frozenset)
        if self.takes_sets_:
            if not all(isinstance(row, set | frozenset) for row in rows):
                other = next(row for row in rows if not isinstance(row, set | frozenset))
                raise ValueError(
                    f"y mixes sets with other types, such as {type(other).__name__}; pass a set "
                    "for each object."
                )
            labels = frozenset().union(*rows)
            if len({isinstance(label, str) for label in labels}) != 1:
                found = "both text and numbers as labels" if labels else "empty sets only"
                raise ValueError(f"y has {found}; pass labels of one type, text or numbers.")
            self.classes_ = _sorted_labels(labels)
            return np.array([[float(c in row) for c in self.classes_.tolist()] for row in rows])
        try:
            indicator = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            indicator = np.empty(0)
        if indicator.ndim != 2 or not np.isin(indicator, (0.0, 1.0)).all():
            raise ValueError(
                f"y has the first entry {rows[0] if rows else None!r}; it is neither a list of "
                "sets of labels, such as [{'sea', 'sand'}, {'snow'}], nor a matrix of zeros and "
                "ones with a row per object."
            )
        self.classes_ = np.arange(indicator.shape[1])
        return indicator

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        n_labels = self.model_.outputs_.shape[1]
        if len(self.classes_) != n_labels or self.thresholds_.shape != (n_labels,):
            raise ValueError("classes_ and thresholds_ do not fit the outputs of model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _sorted_labels(labels: frozenset[Any]) -> npt.NDArray[Any]:
    """Return labels as a sorted array that holds them unchanged."""
    try:
        ordered = sorted(labels)
        classes = np.array(ordered)
    except (TypeError, ValueError):  # labels without an order, tuples of different lengths
        ordered, classes = list(labels), np.empty(0)
    if classes.ndim != 1 or classes.dtype.kind == "O" or classes.tolist() != ordered:
        example = max(ordered, key=lambda label: not isinstance(label, int | float))
        raise ValueError(
            f"y has labels that an array cannot hold unchanged, such as {example!r}; pass text, "
            "integers of at most 64 bits, or floats. Replace other labels, such as tuples or None, "
            "by text."
        )
    return classes


def _best_threshold(present: Booleans, scores: Floats) -> float:
    """Return the threshold with the highest F1 score, in the middle between two scores."""
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(present[order])
    n = np.arange(1, len(scores) + 1)
    f1 = 2 * found / (n + present.sum())
    descending = scores[order]
    f1[:-1][descending[:-1] == descending[1:]] = -1.0  # a threshold cannot separate equal scores
    best = int(np.argmax(f1))
    below = descending[best + 1] if best + 1 < len(scores) else descending[best]
    return float((descending[best] + below) / 2)
