"""Models made from a forest, whose kernel and decoder are their own."""

from abc import abstractmethod
from copy import copy
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils import Tags, get_tags

from okforest.models.base import OKModel


class RefittedModel(OKModel):
    """A model with a parameter ``estimator``, a forest that it clones and changes."""

    estimator: Any
    estimator_: Any

    @abstractmethod
    def _default_forest(self) -> Any:
        """Return the forest that stands for ``estimator=None``."""

    def _forest(self) -> Any:
        return self._default_forest() if self.estimator is None else self.estimator

    @property
    def kernel(self) -> Any:
        """The kernel of the estimator."""
        return getattr(self._forest(), "kernel", None)

    @property
    def decoder(self) -> Any:
        """The decoder of the estimator."""
        return getattr(self._forest(), "decoder", "auto")

    def compact(self) -> Self:
        """Return a smaller copy of the model; this one does not change.

        The kernel is restricted to the training outputs, and out-of-bag estimates are dropped, as
        by other models.

        Returns
        -------
        model : estimator
            The smaller model.
        """
        model = copy(self)
        kernel = self.kernel_.restrict(self.outputs_)
        model.estimator = clone(self._forest()).set_params(kernel=kernel)
        model.estimator_ = self.estimator_.compact()
        model.store_outputs(kernel, self.outputs_)
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._forest()).input_tags
        return tags
