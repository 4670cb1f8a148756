"""The classes that a file may name: okforest's own, and no other."""

from inspect import isabstract, isclass
from types import ModuleType

from sklearn.base import BaseEstimator

from okforest import decode, kernels, models
from okforest.kernels import FromCallable
from okforest.network import BipartiteCompletion, NetworkCompletion


def _classes(module: ModuleType) -> dict[str, type[BaseEstimator]]:
    room = module.__name__.rpartition(".")[2]
    public = ((name, getattr(module, name)) for name in module.__all__)
    return {f"{room}.{name}": thing for name, thing in public if isclass(thing)}


# Baselines hold estimators of scikit-learn, which are not ours to write.
NETWORKS = {f"network.{cls.__name__}": cls for cls in (NetworkCompletion, BipartiteCompletion)}
MODELS = frozenset((_classes(models) | NETWORKS).values())
CLASSES = NETWORKS | {
    name: cls
    for module in (models, kernels, decode)
    for name, cls in _classes(module).items()
    if not isabstract(cls) and cls is not FromCallable  # a function is code
}
NAMES = {cls: name for name, cls in CLASSES.items()}
