"""Estimators with models inside: the inner model, its kernel and tags, clones and checks of it."""

from copy import copy
from typing import Any, Self

from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags

from okforest._utils.inputs import adopt_inputs
from okforest._utils.state import FittedState
from okforest.models.base import OKModel


def final_model(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def clone_with_kernel(estimator: Any, kernel: Any) -> Any:
    """Return a clone of a model, or of a pipeline that ends with one, with another kernel."""
    final = final_model(estimator)
    if not isinstance(final, OKModel):
        kind = f"the class {final.__name__}" if isinstance(final, type) else repr(final)
        raise TypeError(
            f"estimator is {kind}; use a model of okforest, such as OKExtraTrees(), or a pipeline "
            "that ends with one."
        )
    cloned = clone(estimator)
    final_model(cloned).set_params(kernel=kernel)
    return cloned


def check_inner(fitted: Any, name: str, kind: type[OKModel] = OKModel) -> None:
    """Raise a ValueError unless a restored attribute holds a model of this kind, undamaged."""
    if not isinstance(fitted, kind):
        wanted = "a model" if kind is OKModel else "a tree or a forest"
        raise ValueError(f"{name} is of type {type(fitted).__name__}, not {wanted} of okforest")
    if kind is OKModel and not hasattr(fitted, "outputs_"):  # trees can grow without outputs
        raise ValueError(f"{name} has no training outputs")
    fitted.check_state()


class Wrapper(FittedState):
    """An estimator that fits clones of the model in its parameter ``estimator``.

    It takes the inputs that the model takes. A subclass that allows ``estimator=None`` implements
    ``_default_estimator``.
    """

    estimator: Any

    def _default_estimator(self) -> Any:
        """Return the model that stands for ``estimator=None``."""
        return None

    def _inner(self) -> Any:
        """Return the model that is cloned."""
        return self._default_estimator() if self.estimator is None else self.estimator

    def _keep(self, fitted: Any) -> None:
        """Store the fitted model, and the features that it was fitted to."""
        self.estimator_ = fitted
        if hasattr(fitted, "n_features_in_"):  # models on images, for example, have none
            adopt_inputs(self, fitted)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._inner()).input_tags
        return tags


class WrapperModel(Wrapper, OKModel):
    """A model with the kernel and the decoder of the model in its parameter ``estimator``."""

    @property
    def kernel(self) -> Any:
        """The kernel of the estimator; Dirac or linear for an estimator of scikit-learn."""
        inner = self._inner()
        if isinstance(inner, OKModel):
            return inner.kernel
        return "dirac" if is_classifier(inner) else "linear"

    @property
    def decoder(self) -> Any:
        """The decoder of the estimator."""
        return getattr(self._inner(), "decoder", "auto")

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
        if not hasattr(self, "outputs_"):
            return model
        kernel = self.kernel_.restrict(self.outputs_)
        if isinstance(self.estimator, OKModel):  # kernels of default estimators hold no data
            model.estimator = clone(self.estimator).set_params(kernel=kernel)
        if hasattr(self, "estimator_"):
            model.estimator_ = self.estimator_.compact()
        model.store_outputs(kernel, self.outputs_)
        return model
