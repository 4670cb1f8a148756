"""Which estimators can learn from segments, and the parameters that they are given."""

from typing import Any, Literal

from sklearn.base import is_classifier, is_regressor

from okforest.models.base import OKModel

Task = Literal["classifier", "regressor"]


def check_estimator(owner: Any, estimator: Any, task: Task | None = None) -> None:
    """Raise a ValueError unless an estimator predicts what the model on objects needs.

    Models of okforest do: their kernel is that of the model on objects.
    """
    name, inner = type(owner).__name__, type(estimator).__name__
    sound = {
        "classifier": is_classifier(estimator),
        "regressor": is_regressor(estimator),
        None: is_classifier(estimator) or is_regressor(estimator),
    }
    if not isinstance(estimator, OKModel) and not sound[task]:
        kind = "classifier" if is_classifier(estimator) else "regressor"
        found = f"is a {kind}" if sound[None] else "is neither a classifier nor a regressor"
        names = ("classifier", "regressor") if task is None else (task,)
        raise ValueError(
            f"estimator={inner} of {name} {found}; expected a model of okforest or a scikit-learn "
            f"{' or '.join(names)}."
        )
    _check_out_of_bag(name, inner, estimator)


def _check_out_of_bag(name: str, inner: str, estimator: Any) -> None:
    for key, value in estimator.get_params(deep=True).items():
        if key.split("__")[-1] == "oob_score" and value:
            raise ValueError(
                f"{key}={value!r} of {inner}: a segment that is out of bag comes from an object "
                "whose other segments are in the bag, so that the score is too high. Set it to "
                f"False, and use cross_val_score({name}(...), X, y), which leaves out whole "
                "objects."
            )


def with_shared_parameters(base: Any, owner: Any) -> Any:
    """Set the seed, number of threads and verbosity of an estimator where it has none of its own.

    ``owner`` has parameters ``n_jobs`` and ``verbose`` and an attribute ``seed_``.
    """
    given = base.get_params(deep=False)
    shared = {"random_state": owner.seed_ % 2**32, "n_jobs": owner.n_jobs}
    open_ = {name: value for name, value in shared.items() if given.get(name, 0) is None}
    if owner.verbose and given.get("verbose") == 0:
        open_["verbose"] = owner.verbose
    return base.set_params(**open_)
