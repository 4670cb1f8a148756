"""Segment and combine: a model on segments makes a model on objects."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import InputTags, Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from okforest._utils.arrays import Floats, check_sparse
from okforest._utils.compat import Interval, StrOptions, fit_context
from okforest._utils.errors import warn
from okforest._utils.frames import is_frame
from okforest._utils.inputs import check_weights
from okforest._utils.progress import ProgressBar
from okforest._utils.resources import check_memory, thread_count
from okforest._utils.state import check_floats
from okforest.kernels import Linear
from okforest.models.wrapping import WrapperModel
from okforest.segments.base import Objects, Segmenter, Segments, as_table, is_vector, some_of_each
from okforest.segments.evidence import Evidence, read_output
from okforest.segments.learners import (
    Learner,
    Task,
    check_estimator,
    make_learner,
    with_shared_parameters,
)
from okforest.weights import Span, WeightMatrix
from okforest.weights.grouped import group_rows, stack_rows

BATCH_BYTES = 2**22  # segments are made, and files are read, in batches of this size
AUTO_SEGMENTS = 1_000_000  # training segments that max_segments="auto" stands for

MaxSegments = int | Literal["auto"] | None
MAX_SEGMENTS: list[Any] = [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"}), None]


def cut_in_batches(
    segmenter: Segmenter, objects: Objects, seed: int, n_threads: int
) -> Iterator[Segments]:
    """Yield the segments of as many objects as take about 4 MB, of at least one.

    Objects that are read when they are needed, such as image files, count too.
    """
    in_memory = isinstance(objects, list)
    batch: list[Any] = []
    held, segment_bytes = 0, BATCH_BYTES  # not known before the first object is cut, alone
    for item in objects:
        n_segments = segmenter.count([item])
        read = 0 if in_memory else int(getattr(item, "nbytes", 0))
        if batch and held + read + n_segments * segment_bytes > BATCH_BYTES:
            segments = segmenter.cut(batch, seed, n_threads)
            yield segments
            segment_bytes = segments.values.itemsize * segments.values.shape[1]
            batch, held = [], 0
        batch.append(item)
        held += read + n_segments * segment_bytes
    if batch:
        yield segmenter.cut(batch, seed, n_threads)


def joined(
    batches: Iterator[tuple[Any, ...]], n_objects: int, total: int, max_segments: MaxSegments
) -> tuple[Any, ...]:
    """Return the training segments in one array, the object of each, and what else is known of it.

    ``batches`` are tuples of arrays: segments, their objects, and any others with a row for each.
    There are ``total`` segments of ``n_objects`` objects; at most ``max_segments`` are kept.
    """
    per_object = _kept_of_each(n_objects, total, max_segments)
    rows = total if per_object is None else min(total, per_object * n_objects)
    S: Any = None
    others: list[tuple[Any, ...]] = []
    done = 0
    for batch in batches:
        if per_object is not None:
            drawn = some_of_each(batch[1], per_object)
            batch = tuple(part[drawn] for part in batch)
        values, *rest = batch
        dtype = values.dtype if S is None else np.result_type(S, values)
        if S is None or dtype != S.dtype:  # bytes, and then floats
            check_memory(
                dtype.itemsize * values.shape[1] * rows,
                f"the array of {rows} segments of the training objects",
                "Set max_segments, or use fewer or smaller segments.",
            )
            wider = np.empty((rows, values.shape[1]), dtype)
            if S is not None:
                wider[:done] = S[:done]
            S = wider
        S[done : done + len(values)] = values
        others.append(tuple(rest))
        done += len(values)
    return S[:done], *(np.concatenate(parts) for parts in zip(*others, strict=True))


def _kept_of_each(n_objects: int, total: int, max_segments: MaxSegments) -> int | None:
    """Return how many segments of each object are kept, None for all of them."""
    most = max(AUTO_SEGMENTS, n_objects) if max_segments == "auto" else max_segments
    if most is None:
        return None
    if most < n_objects:
        raise ValueError(
            f"max_segments={most} is less than the number of objects, {n_objects}, and each "
            f"needs a segment; set it to at least {n_objects}, or to None."
        )
    if total <= most:
        return None
    per_object = most // n_objects
    if max_segments == "auto":
        warn(
            f"the {n_objects} training objects have {total} segments; the estimator is fitted to "
            f"at most {per_object} of each, so that memory is bounded. Set max_segments={most} to "
            "accept this without a warning, or max_segments=None to fit it to all segments.",
            UserWarning,
        )
    return per_object


LARGEST_ERROR = 1e-12  # a rounding error, relative to the distance
EPS = float(np.finfo(np.float64).eps)


def distances_from_mean(span: Span, weights: WeightMatrix, object_weight: Floats) -> Floats:
    """Return ‖F − φ̄‖² of predictions, 0 where it is a rounding error.

    Explicit features are centred first: no digits are lost to a large mean.
    """
    share = object_weight / object_weight.sum()
    features = span.features
    if features is None and isinstance(span.kernel, Linear):  # more columns than outputs
        features = span.kernel.features(span.outputs)
    if features is None:
        mean = share[None, :]
        square, norms = span.squared_norms(mean)[0], span.squared_norms(weights)
        distances = norms - 2.0 * span.gram(weights, mean)[:, 0] + square
        return np.where(distances > LARGEST_ERROR * (norms + square), distances, 0.0)
    centred = features - share @ features
    centred -= share @ centred  # the first mean has the rounding error of the offset
    distances = ((weights @ centred) ** 2).sum(axis=1)
    size, offset = (centred**2).sum(axis=1).max(), (features**2).sum(axis=1).max()
    rounding = LARGEST_ERROR**2 * size + (4 * EPS) ** 2 * offset
    return np.where(distances > rounding, distances, 0.0)


class SegmentModel(WrapperModel):
    """Cuts objects into segments, fits a model to the segments, and combines its predictions.

    A segment has the output of its object. The prediction for an object is the mean of the
    predictions for its segments: weights over the training objects, so that every output kernel,
    decoder and metric of okforest applies.

    Parameters
    ----------
    segmenter : Segmenter
        How objects are cut: :class:`RandomSubwindows`, :class:`RandomSubseries`,
        :class:`KmerWindows`, :class:`Neighborhoods`, or one of your own.
    estimator : estimator
        The model on segments: any model of okforest, with its own ``kernel`` and ``decoder``, or
        any classifier with ``predict_proba`` or regressor of scikit-learn.
    combine : {"mean", "confidence"}, default="mean"
        How the segments of an object are combined: all count the same, or a segment counts in
        proportion to ‖F − φ̄‖², the squared distance of its prediction from the mean of the training
        outputs in feature space. Segments that could belong to any object count little. It helps
        where few segments tell, with leaves of several samples.
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
        The kernel, with parameters that depend on the outputs filled in.
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
    SegmentClassifier : Classification.
    SegmentRegressor : Regression.

    Notes
    -----
    Segments are made and used in batches of about 4 MB. ``fit`` holds those that the estimator is
    fitted to, at most ``max_segments``, at once. The kernel is the estimator's; for estimators of
    scikit-learn, Dirac for a classifier and linear for a regressor.

    Examples
    --------
    Predict curves from random parts of series, with an RBF kernel on curves:

    >>> import numpy as np
    >>> from okforest import OKExtraTrees
    >>> from okforest.segments import RandomSubseries, SegmentModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 30)).cumsum(axis=1)
    >>> Y = X[:, -3:]
    >>> model = SegmentModel(RandomSubseries(20), OKExtraTrees(10, kernel="rbf"), random_state=0)
    >>> model.fit(X[:30], Y[:30]).predict(X[30:]).shape
    (10, 3)
    >>> model.predict_weights(X[30:]).shape
    (10, 30)
    """

    segmenter_: Segmenter
    learner_: Learner
    object_weight_: Floats
    seed_: int
    _task: Task | None = None  # an estimator of another library must be for this task

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "segmenter": [Segmenter],
        "estimator": [BaseEstimator],
        "combine": [StrOptions({"mean", "confidence"})],
        "max_segments": MAX_SEGMENTS,
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        segmenter: Any,
        estimator: Any,
        *,
        combine: Literal["mean", "confidence"] = "mean",
        max_segments: MaxSegments = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.segmenter = segmenter
        self.estimator = estimator
        self.combine = combine
        self.max_segments = max_segments
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Cut the objects and fit the estimator to their segments.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects, as the segmenter takes them.
        y : array-like of n outputs
            Outputs, of the type that the kernel takes.
        sample_weight : array-like of shape (n,), optional
            Weights of the objects.

        Returns
        -------
        self : object
            The fitted model.
        """
        check_estimator(self, self._inner(), self._task)
        objects = self._check_objects(X, reset=True)
        if len(objects) < 2:
            raise ValueError(
                f"X has {len(objects)} sample(s) (objects) while a minimum of 2 is required."
            )
        weight = check_weights(sample_weight, np.empty((len(objects), 1)))
        kernel, outputs = self.validate_outputs(np.empty((len(objects), 1)), y, weight)
        self.seed_ = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        self.segmenter_ = self.segmenter.resolve(objects)
        total = self.segmenter_.count(objects)
        S, owner = joined(self._inputs(objects), len(objects), total, self.max_segments)
        span = Span(kernel, outputs)
        self.learner_ = make_learner(self._base()).fit(S, owner, span, weight, self.seed_)
        if len(S) < total:
            self.learner_.fill(self._inputs(objects, "filling leaves"), weight)
        self.object_weight_ = weight
        self.store_outputs(kernel, outputs)
        return self

    def weight_matrix(self, X: Any) -> WeightMatrix:
        """Return the weights of the training objects: the means over an object's segments.

        Parameters
        ----------
        X : array-like or list of n objects
            Objects.

        Returns
        -------
        W : okforest.weights.WeightMatrix of shape (n, n_train)
            Row i holds the weights of object i, with sum one.
        """
        check_is_fitted(self, "learner_")
        objects = self._check_objects(X, reset=False)
        if len(objects) == 0:
            raise ValueError("X has 0 sample(s) (objects) while a minimum of 1 is required.")
        parts = []
        for segments in self._batches(objects):
            weights = self.learner_.weight_matrix(segments.values)
            parts.append(group_rows(weights, segments.offsets, self._shares(segments, weights)))
        return stack_rows(parts)

    def evidence(self, item: Any, output: Any = None) -> Evidence:
        """Explain a prediction: which segments support an output, and where they are.

        Parameters
        ----------
        item : object
            An object, as in a list that is passed to :meth:`predict`.
        output : optional
            The output to explain, of the type that the kernel takes; by default the prediction.
            A class must be one of the training labels.

        Returns
        -------
        evidence : Evidence
            For each segment, the inner product ⟨F, φ(y)⟩ of its prediction and the output; for
            classes, that is the probability of the class. ``evidence.map`` has their means over
            the segments that cover each part of the object, and ``evidence.plot()`` draws them.
        """
        checked, segments, weights = self.cut_one(item)
        span, shares = self.span_, self._shares(segments, weights)
        if output is None:
            whole = group_rows(weights, segments.offsets, shares)
            outputs = self._decoder().decode(whole, span)
            shown = span.kernel.in_form(outputs)
            output = shown[0] if isinstance(shown, np.ndarray) else outputs[0]
        else:
            outputs = read_output(span, output)
        support = span.inner(weights, outputs)[:, 0]
        return Evidence(self.segmenter_, checked, segments.places, support, shares, output)

    def cut_one(self, item: Any) -> tuple[Any, Segments, WeightMatrix]:
        """Cut one object, and predict the weights of its segments.

        Parameters
        ----------
        item : object
            An object, as in a list that is passed to :meth:`predict`.

        Returns
        -------
        item : object
            The object in the segmenter's canonical form.
        segments : Segments
            Its segments.
        weights : okforest.weights.WeightMatrix of shape (n_segments, n_train)
            Their weights over the training objects.
        """
        check_is_fitted(self, "learner_")
        objects = self.segmenter_.check([item])[:1]
        segments = self.segmenter_.cut(objects, self.seed_, thread_count(self.n_jobs))
        return objects[0], segments, self.learner_.weight_matrix(segments.values)

    def _base(self) -> Any:
        """Return a copy of the estimator that shares what this model sets and it leaves open."""
        return with_shared_parameters(clone(self._inner()), self)

    def _check_objects(self, X: Any, *, reset: bool) -> Objects:
        """Return objects in canonical form; arrays with two axes are validated as scikit-learn's.

        A list of arrays may hold objects of any size, whatever the model was fitted on.
        """
        check_sparse(X, "X")
        segmenter = self.segmenter if reset else self.segmenter_
        X = as_table(X) if segmenter.tabular else X
        axes = len(getattr(X, "shape", ()))
        if segmenter.tabular and (is_frame(X) or axes == 2 or is_vector(X)):
            X = validate_data(
                self, X, reset=reset, dtype="numeric", ensure_min_samples=2 if reset else 1
            )
        return segmenter.check(X)

    def _batches(self, objects: Objects, label: str = "cutting objects") -> Iterator[Segments]:
        """Yield the segments of some objects at a time, of about equal size in memory."""
        bar, done = ProgressBar(len(objects), label) if self.verbose else None, 0
        n_threads = thread_count(self.n_jobs)
        for segments in cut_in_batches(self.segmenter_, objects, self.seed_, n_threads):
            yield segments
            done += len(segments.offsets) - 1
            if bar is not None:
                bar(done)

    def _inputs(self, objects: Objects, label: str = "cutting objects") -> Iterator[Any]:
        """Yield batches of segments as the estimator gets them, and the object of each."""
        first = 0
        for segments in self._batches(objects, label):
            yield segments.values, segments.owner + first
            first += len(segments.offsets) - 1

    def _shares(self, segments: Segments, weights: WeightMatrix) -> Floats:
        """Return the share of each segment in the mean of its object."""
        owner = segments.owner
        votes = np.ones(len(owner))
        if self.combine == "confidence":
            distances = distances_from_mean(self.span_, weights, self.object_weight_)
            total = np.bincount(owner, distances)
            votes = np.where(total[owner] > 0, distances, votes)
        return votes / np.bincount(owner, votes)[owner]

    def check_state(self) -> None:
        """Raise a ValueError unless the fitted attributes fit each other."""
        super().check_state()
        check_floats(self, "object_weight_", 1, (len(self.outputs_),))
        self.learner_.check_objects(len(self.outputs_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tabular = bool(getattr(self.segmenter, "tabular", False))
        tags.input_tags = InputTags(two_d_array=tabular, three_d_array=True)
        return tags
