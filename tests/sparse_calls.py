"""Calls of every public function with sparse matrices that crash whoever reads them unchecked.

Run as a script, it prints each call before it makes it, and then what went wrong, if anything did:
a crash ends the process at the call that was printed last.
"""

import inspect
from functools import cache

import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import okforest
from okforest import datasets, inspection, network, refit, segments
from okforest.engine.cpu import grow
from public import MODULES

# Parameters that take rows of features, or objects cut into segments.
INPUTS = ("X", "Z", "X_new", "Z_new", "X_known", "X_rows", "X_columns", "data")
# These read nothing but the number of rows.
HARMLESS = ("validate_outputs", "get_n_splits", "split")
ROWS, COLUMNS = 12, 12
X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).round(1)
LINKS = np.abs(np.subtract.outer(np.arange(ROWS), np.arange(ROWS))) == 1
NUMBERS = np.arange(ROWS) % 4 + X[:, 0]
OUTPUTS = {
    "linear": NUMBERS,
    "dirac": np.array(["a", "b"])[np.arange(ROWS) % 2],
    "hamming": (X[:, :3] > 0).astype(float),
    "survival": np.rec.fromarrays(
        [np.arange(ROWS) % 3 > 0, 1.0 + np.arange(ROWS)], names="event,time"
    ),
}
FAR = 10**8
KINDS = ("csr_array", "csr_matrix", "csc_array", "coo_array", "bsr_array", "lil_array")


def damaged(kind):
    """Return a sparse matrix whose arrays do not fit together."""
    matrix = getattr(sp, kind)(X)
    if matrix.format == "coo":
        matrix.coords = (matrix.coords[0] + FAR, matrix.coords[1])
    elif matrix.format == "lil":
        matrix.rows[0] = [FAR for _ in matrix.rows[0]]
    else:
        matrix.indptr[-1] = FAR
    return matrix


def public_calls():
    """Return the names of all public functions and methods that take rows of features."""
    names = {}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                for method in dir(thing):
                    if method.startswith(("_", "set_")) or method in HARMLESS:
                        continue
                    if _takes_inputs(thing, method):
                        names[f"{module.__name__}.{name}.{method}"] = thing, method
            elif callable(thing) and _takes_inputs(module, name):
                names[f"{module.__name__}.{name}"] = module, name
    return names


def _takes_inputs(owner, name):
    return any(parameter in INPUTS for parameter in _parameters(owner, name))


def _parameters(owner, name):
    try:
        return inspect.signature(getattr(owner, name)).parameters
    except (AttributeError, TypeError, ValueError):
        return {}


def kernel_of(name):
    """Return the kernel of a model on which a function or method can be called."""
    kernels = {
        "survival": (
            "_risk",
            "_quantiles",
            "survival",
            "calibration",
            "concordance",
            "brier",
            "Censored",
        ),
        "hamming": ("au_prc", "marginals", "Annotator", "DirectionBase"),
        "dirac": ("proba", "entropy", "ConformalSets"),
    }
    if "SegmentClassifier" in name:
        return "dirac"
    if "Regressor" in name:
        return "linear"
    return next((one for one, parts in kernels.items() if any(p in name for p in parts)), "linear")


def through_pipeline(model):
    """Return a pipeline whose first step reads X before the model can check it."""
    return make_pipeline(MaxAbsScaler(), model)


def make(owner, kernel):
    """Return an object of a public class; of a class in its place, if that is abstract."""
    forest = okforest.OKRandomForest(2, kernel=kernel, random_state=0)
    place = {
        okforest.OKModel: okforest.OKTree,
        network.LinkPredictor: network.InputSimilarity,
        refit.Prior: refit.Bounds,
        segments.Segmenter: segments.RandomSubseries,
    }
    owner = place.get(owner, owner)
    special = {
        okforest.DirectionBase: lambda: owner(LinearRegression()),
        okforest.OKEnsemble: lambda: owner([forest, okforest.OKNeighbors(2)], kernel=kernel),
        refit.Bounds: lambda: owner(0.0, 1.0),
        refit.CensoredForest: lambda: owner(
            okforest.OKExtraTrees(2, random_state=0), adjust="outputs"
        ),
        refit.ForestKernel: lambda: owner(okforest.OKTotallyRandomTrees(2, random_state=0)),
        refit.LinearRelation: lambda: owner([1.0, -1.0]),
        refit.Monotone: lambda: owner(0),
        refit.Order: lambda: owner(0, 1),
        refit.Symmetry: lambda: owner(np.negative),
        network.NetworkCompletion: lambda: owner(through_pipeline(forest), calibrate=True, cv=2),
        segments.PixelClassifier: lambda: owner(segments.RandomSubwindows(2)),
    }
    if owner in special:
        return special[owner]()
    parameters = inspect.signature(owner).parameters
    if "segmenter" in parameters:
        return owner(segments.RandomSubseries(2, n_points=4), forest, random_state=0)
    if owner.__module__.startswith(("okforest.uncertainty", "okforest.network.bipartite")):
        return owner(through_pipeline(forest))
    if "estimator" in parameters and owner.__module__.startswith("okforest.refit"):
        return owner(forest)
    return owner(kernel=kernel) if "kernel" in parameters else owner()


@cache
def fitted(owner, kernel):
    """Return an object of a public class, fitted if it can be."""
    if owner is okforest.dask.RemoteForest:
        return okforest.dask.fit_remote(make(okforest.OKRandomForest, kernel), X, OUTPUTS[kernel])
    model = make(owner, kernel)
    if isinstance(model, network.LinkPredictor):
        return model.fit(X, LINKS)
    if isinstance(model, network.BipartiteCompletion):
        return model.fit(X, X, LINKS)
    if isinstance(model, segments.PixelClassifier):
        return model.fit(*datasets.make_textures(4, seed=0))
    return model.fit(X, OUTPUTS[kernel]) if hasattr(model, "fit") else model


def model_of(module, name, kernel):
    """Return what a function takes as its model: a pipeline, wherever that is accepted."""
    if module is network:
        bipartite = fitted(network.BipartiteCompletion, kernel)
        return bipartite if "bipartite" in name else network.InputSimilarity()
    special = {
        "plot_learning_curve": okforest.OKBoost,
        "select_ccp_alpha": okforest.OKTree,
    }
    if name == "select_leaf_penalty":
        return refit.CensoredForest()
    if name in special:
        return fitted(special[name], kernel)
    if name.startswith("fit"):
        return make(okforest.OKExtraTrees, kernel)
    model = fitted(okforest.OKExtraTrees, kernel)
    of_scikit_learn = type(getattr(module, name)).__module__.startswith("sklearn")
    if of_scikit_learn or module in (inspection, okforest.dask) or name.startswith("plot_"):
        return model
    return through_pipeline(clone(model)).fit(X, OUTPUTS[kernel])


def arguments(owner, name, kernel):
    """Return what a function or method is called with, by parameter: X is a valid one."""
    known = {
        **dict.fromkeys(INPUTS, X),
        **dict.fromkeys(("y", "y_true"), OUTPUTS[kernel]),
        **dict.fromkeys(("graph", "links"), LINKS),
        **{"K_known": X @ X.T, "grow": grow, "groups": {"first": [0, 1]}, "time": 5.0},
        **{"n_outputs": 2, "scale": np.asarray},
    }
    parameters = _parameters(owner, name)
    wanted = [one for one in parameters if one in known]
    models = [one for one in ("model", "estimator", "tree") if one in parameters]
    return {one: known[one] for one in wanted} | {
        one: model_of(owner, name, kernel) for one in models if inspect.ismodule(owner)
    }


def damaged_calls():
    """Yield the name of each call and a function that makes it."""
    for name, (owner, short) in public_calls().items():
        kernel = kernel_of(name)
        if isinstance(owner, type):
            owner = make(owner, kernel) if short.startswith("fit") else fitted(owner, kernel)
        call = getattr(owner, short, None)
        if call is None:  # it depends on the kernel, and this class takes no other
            continue
        valid = arguments(owner, short, kernel)
        for parameter in valid.keys() & set(INPUTS):
            for kind in KINDS:
                X = damaged(kind)
                value = {"test": (X, OUTPUTS[kernel])} if parameter == "data" else X
                yield (
                    f"{name}({parameter}={kind})",
                    lambda call=call, arguments={**valid, parameter: value}: call(**arguments),
                )


def main():
    """Make the calls, and print those that do not raise the expected error."""
    for name, call in damaged_calls():
        print(name, end=" ", flush=True)
        try:
            result = call()
            if inspect.isgenerator(result):
                next(result)
            print("WRONG: no error", flush=True)
        except (TypeError, ValueError) as error:
            # Some segmenters do not take tables, and some functions only Dask collections.
            other = ".segments." in name or "Dask" in str(error)
            expected = "do not fit together" in str(error) or other
            print("ok" if expected else f"WRONG: {type(error).__name__}: {error}", flush=True)
        except Exception as error:
            print(f"WRONG: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    with Client(n_workers=1, processes=False, dashboard_address=None):
        main()
