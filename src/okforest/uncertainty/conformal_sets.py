"""Conformal prediction sets in any output space."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from okforest._utils.arrays import Booleans, Floats, Outputs
from okforest._utils.compat import StrOptions, fit_context
from okforest._utils.distinct import check_same_type, distinct
from okforest._utils.errors import warn
from okforest.decode.search import read_candidates
from okforest.kernels import OutputKernel
from okforest.models.wrapping import final_model
from okforest.uncertainty.conformal import (
    SCORES,
    Conformal,
    Method,
    Part,
    ScoreName,
    count_at_least,
    positions_of,
    rank_of,
    row_blocks,
    warn_if_few_rows,
)
from okforest.uncertainty.distributions import Predictions, check_coverage, predictions
from okforest.weights import OutputSet


@dataclass(frozen=True, repr=False)
class PredictionSets:
    """Sets of outputs, one for each prediction: ``sets[0]`` belongs to the first row.

    Parameters
    ----------
    kernel : OutputKernel
        The output kernel.
    candidates : ndarray of m outputs
        The different candidates, in the canonical form of the kernel.
    members : csr_array of shape (n, m)
        Stored entries are members, in order, most typical first; the values are scores.
    coverage : float
        The probability with which a set contains the true output.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKRandomForest
    >>> from okforest.uncertainty import ConformalSets
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OKRandomForest(kernel="dirac", random_state=0)
    >>> sets = ConformalSets(forest, method="oob").fit(X[::2], y[::2]).predict_sets(X[1::2])
    >>> len(sets), sets[0]
    (75, array([0]))
    """

    kernel: OutputKernel
    candidates: Outputs
    members: sp.csr_array
    coverage: float

    def __len__(self) -> int:
        return int(self.members.shape[0])

    @overload
    def __getitem__(self, i: int) -> Outputs: ...
    @overload
    def __getitem__(self, i: slice) -> list[Outputs]: ...
    def __getitem__(self, i: int | slice) -> Outputs | list[Outputs]:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        i = range(len(self))[i]
        entries = slice(self.members.indptr[i], self.members.indptr[i + 1])
        chosen = self.candidates[self.members.indices[entries]]
        shown = self.kernel.in_form(chosen)
        return self.kernel.as_given(chosen) if sp.issparse(shown) else shown

    def __iter__(self) -> Iterator[Outputs]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        mean = self.sizes.mean() if len(self) else 0.0
        return (
            f"<PredictionSets of {len(self)} rows, coverage {self.coverage:g}, "
            f"mean size {mean:.2f}>"
        )

    @property
    def sizes(self) -> npt.NDArray[np.integer]:
        """The number of outputs in each set."""
        return np.diff(self.members.indptr)

    def contain(self, y: Any) -> Booleans:
        """Return whether each set contains the row's own output.

        Parameters
        ----------
        y : array-like of n outputs
            The true outputs.

        Returns
        -------
        contained : ndarray of shape (n,)
            Booleans; their mean is the coverage that was reached.
        """
        outputs = self.kernel.check(y)
        if len(outputs) != len(self):
            raise ValueError(
                f"y has {len(outputs)} outputs for {len(self)} sets; pass one for each."
            )
        places = positions_of(outputs, OutputSet(self.kernel, self.candidates))
        rows = np.repeat(np.arange(len(self)), self.sizes)
        contained = np.zeros(len(self), dtype=bool)
        contained[rows[self.members.indices == places[rows]]] = True
        return contained


class ConformalSets(Conformal):
    """Sets of outputs that contain the true one with a given probability, for any kernel.

    A score measures how strange an output is for a prediction. The scores of the true outputs of
    calibration rows, which the model was not fitted to, show how strange a true output can be; a
    set holds the candidates that are not stranger. If rows are exchangeable, the set of a new row
    contains its true output with at least the given probability ("split"; at least 1 − 2α for a
    coverage of 1 − α, and about 1 − α in practice, with "cross"; without a proof with "oob").

    A true output that is not among the candidates cannot be in a set. Calibration counts such rows:
    the sets grow to make up for them. Where that takes every candidate, at a coverage of about
    ``achievable_coverage_`` and above, :meth:`predict_sets` warns.

    Parameters
    ----------
    estimator : estimator
        A model of okforest, or a pipeline that ends with one.
    method : {"split", "cross", "oob", "prefit"}, default="split"
        Which rows calibrate: a random share that no model is fitted to; every row, by the models of
        cross-validation (CV+); every row, by the trees of a bootstrapped forest that were not grown
        on it; or all rows passed to ``fit``, for a model that is already fitted to others.
    conformity_score : {"margin", "distance", "normalized", "votes"}, default="margin"
        "distance" is ‖φ(c) − F(x)‖², "normalized" divides it by the variance of the predicted
        distribution, "margin" subtracts the distance of the nearest other candidate; "votes" is
        minus the total weight of the training outputs equal to c, for outputs that repeat.
    candidates : array-like, optional
        The outputs that sets are made of; by default all outputs passed to ``fit``, or the training
        outputs of a fitted model.
    calibration_size : float, default=0.25
        The share of the rows that calibrates with ``method="split"``.
    cv : int or splitter, default=5
        The folds of ``method="cross"``.
    random_state : int, RandomState instance or None, default=None
        The seed of random splits.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model, of point predictions.
    estimators_ : list of estimators
        The models whose scores are calibrated; one unless ``method="cross"``.
    scores_ : list of ndarray
        The calibration scores of each model, ascending; infinite where the true output is missing
        from the candidates.
    candidates_ : ndarray
        The different candidates.
    n_calibration_ : int
        Number of calibration rows.
    achievable_coverage_ : float
        The share of calibration rows whose true output is among the candidates. Where the
        candidates are the outputs passed to ``fit``, an output that occurs once counts as missing:
        without its own row it would not be known.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer, "Algorithmic learning in a random world", Springer, 2005.
    Y. Romano, M. Sesia, E. Candès, "Classification with valid and adaptive coverage", NeurIPS 2020
    (CV+). U. Johansson et al., "Regression conformal prediction with random forests", Machine
    Learning 97, 2014 (out of bag).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from okforest import OKRandomForest
    >>> from okforest.uncertainty import ConformalSets
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = OKRandomForest(kernel="dirac", random_state=0)
    >>> model = ConformalSets(forest, method="oob").fit(X[::2], y[::2])
    >>> sets = model.predict_sets(X[73:80:2], coverage=0.97)
    >>> [labels.tolist() for labels in sets]
    [[1], [1], [2, 1], [1]]
    """

    candidates_: Outputs
    achievable_coverage_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Conformal._parameter_constraints,
        "conformity_score": [StrOptions(set(SCORES))],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: Method = "split",
        conformity_score: ScoreName = "margin",
        candidates: Any = None,
        calibration_size: float = 0.25,
        cv: Any = 5,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.candidates = candidates
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the models, and compute the scores of the rows they were not fitted to.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, p)
            Inputs.
        y : array-like of n outputs
            Outputs, of the type that the kernel takes.

        Returns
        -------
        self : object
            The calibrated model.
        """
        score = SCORES[self.conformity_score]
        parts = self._calibrate(X, y)
        span = parts[0].predicted.span
        outputs = span.kernel.check(y)
        check_same_type(outputs, span.outputs, "y")
        candidates, missing = self._candidates(outputs, parts[0])
        scores = []
        for part in parts:
            encoded = OutputSet(part.predicted.span.kernel, candidates)
            values = score.of_truth(part.predicted, outputs[part.rows], encoded)
            scores.append(np.sort(np.where(missing[part.rows], np.inf, values)))
        used = np.concatenate([missing[part.rows] for part in parts])
        self.scores_ = scores
        self.candidates_ = candidates
        self.n_calibration_ = len(used)
        self.achievable_coverage_ = float(1.0 - used.mean())
        return self

    def predict_sets(self, X: Any, coverage: float = 0.9) -> PredictionSets:
        """Predict sets that contain the true output with a given probability.

        A set may be empty: then every candidate is stranger than the true outputs usually are. That
        happens if the model is right more often than the coverage asks for.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        sets : PredictionSets
            ``sets[i]`` holds the outputs of row i, most typical first (in a frame, if label sets or
            ranks were given as one); ``sets.sizes`` their numbers, and ``sets.contain(y)`` whether
            they contain given outputs.
        """
        coverage = check_coverage(coverage)
        check_is_fitted(self)
        warn_if_few_rows(coverage, self.n_calibration_, self.method, "sets hold every candidate")
        n_missing = sum(int(np.isinf(known).sum()) for known in self.scores_)
        if n_missing and rank_of(coverage, self.n_calibration_) > self.n_calibration_ - n_missing:
            warn(
                f"{1 - self.achievable_coverage_:.1%} of the true outputs in calibration are not "
                f"among the candidates, so that coverage={coverage:g} cannot be guaranteed: sets "
                f"hold every candidate, and contain the true output in about "
                f"{self.achievable_coverage_:.1%} of cases. Pass candidates that contain the "
                "missing outputs, or a lower coverage.",
                UserWarning,
            )
        indices, data, counts = [], [], []
        for values, strangeness in self._scored_blocks(X):
            members = values > 1.0 - coverage + 1e-12
            for row, is_member in zip(strangeness, members, strict=True):
                places = np.flatnonzero(is_member)
                order = places[np.argsort(row[places], kind="stable")]
                indices.append(order)
                data.append(row[order])
                counts.append(len(order))
        shape = (len(counts), len(self.candidates_))
        members = sp.csr_array(
            (np.concatenate(data), np.concatenate(indices), np.cumsum([0, *counts])), shape=shape
        )
        kernel = final_model(self.estimator_).kernel_
        return PredictionSets(kernel, self.candidates_, members, coverage)

    def p_values(self, X: Any) -> Floats:
        """Return the conformal p-value of every candidate: the share of true outputs as strange.

        The set of a given coverage holds the candidates whose p-value exceeds 1 − coverage.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.

        Returns
        -------
        p_values : ndarray of shape (n, m)
            One column for each of ``candidates_``.
        """
        check_is_fitted(self)
        return np.concatenate([values for values, _ in self._scored_blocks(X)])

    def _scored_blocks(self, X: Any) -> Any:
        """Yield p-values and mean scores of all candidates, for some rows at a time."""
        score = SCORES[self.conformity_score]
        predicted = [predictions(model, X) for model in self.estimators_]
        sets = [OutputSet(p.span.kernel, self.candidates_) for p in predicted]
        n, m = predicted[0].W.shape[0], len(self.candidates_)
        for rows in row_blocks(n, m):
            counts = np.ones((rows.stop - rows.start, m))
            total = np.zeros_like(counts)
            for p, candidates, known in zip(predicted, sets, self.scores_, strict=True):
                part = Predictions(p.span, p.W[rows])
                values = score.of_candidates(part, candidates)
                counts += count_at_least(known, values)
                total += values
            yield counts / (self.n_calibration_ + 1), total / len(self.estimators_)

    def _candidates(self, outputs: Outputs, part: Part) -> tuple[Outputs, Booleans]:
        """Return the different candidates, and which of the outputs are missing from them."""
        span = part.predicted.span
        if self.candidates is None and self.method != "prefit":
            known = distinct(outputs)
            return outputs[known.first], (np.bincount(known.group) == 1)[known.group]
        searched = span.training
        if self.candidates is not None:
            searched = read_candidates(self.candidates, span)
        return searched.outputs, positions_of(outputs, searched) < 0
