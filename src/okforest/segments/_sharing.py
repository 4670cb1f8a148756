"""Parameters that a model on segments leaves open take the values of the model on objects."""

from typing import Any


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
