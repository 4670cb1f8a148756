"""What classification and regression of objects share: an estimator by default."""

from typing import Any, ClassVar, Literal

from sklearn.base import BaseEstimator

from okforest.models import OKExtraTrees
from okforest.segments._base import Segmenter
from okforest.segments._batches import MaxSegments
from okforest.segments.model import SegmentModel

N_TREES = 10  # of the default estimator


class TaskModel(SegmentModel):
    """A model on segments with a kernel, a decoder and a default estimator of its own."""

    min_samples_leaf = 1  # of the default estimator

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

    def _estimator(self) -> Any:
        if self.estimator is None:
            return OKExtraTrees(N_TREES, min_samples_leaf=self.min_samples_leaf)
        return self.estimator
