"""From what users pass as ``decoder=`` to a decoder."""

from importlib import import_module
from typing import Any

from okforest.decode.base import Decoder
from okforest.decode.composition import Parts
from okforest.decode.hierarchies import Hierarchical
from okforest.decode.label_sets import Cardinality, ExpectedF1, ExpectedJaccard, Mode, Threshold
from okforest.decode.means import Majority, Mean, Medoid, Quantiles
from okforest.decode.rankings import Borda, Kemeny
from okforest.decode.search import Support, TrainingSet
from okforest.decode.strings import EulerianPath
from okforest.kernels import OutputKernel

NAMES: dict[str, type[Decoder] | tuple[str, str]] = {
    # for any outputs, numbers, classes and survival times
    "majority": Majority,
    "mean": Mean,
    "medoid": Medoid,
    "support": Support,
    "survival_time": ("okforest.survival", "SurvivalTime"),  # imported when it is used
    "training_set": TrainingSet,
    # for label sets and hierarchies
    "cardinality": Cardinality,
    "expected_f1": ExpectedF1,
    "expected_jaccard": ExpectedJaccard,
    "hierarchical": Hierarchical,
    "mode": Mode,
    "threshold": Threshold,
    # for rankings, strings, distributions and tuples
    "borda": Borda,
    "kemeny": Kemeny,
    "eulerian_path": EulerianPath,
    "quantiles": Quantiles,
    "parts": Parts,
}


def as_decoder(decoder: Any, kernel: OutputKernel) -> Decoder:
    """Return a decoder from a decoder, the name of one, or "auto", the kernel's own choice.

    Examples
    --------
    >>> from okforest.decode import as_decoder
    >>> from okforest.kernels import Jaccard, Kendall
    >>> as_decoder("auto", Kendall()), as_decoder("mode", Jaccard())
    (Kemeny(), Mode())
    """
    if isinstance(decoder, str) and decoder == "auto":
        decoder = kernel.default_decoder
    if isinstance(decoder, Decoder):
        return decoder
    if isinstance(decoder, str) and decoder in NAMES:
        named = NAMES[decoder]
        if isinstance(named, tuple):
            module, name = named
            named = getattr(import_module(module), name)
        return named()
    if isinstance(decoder, type) and issubclass(decoder, Decoder):
        raise ValueError(
            f"decoder={decoder.__name__} is a class; pass an object, such as "
            f"{decoder.__name__}(...)."
        )
    raise ValueError(
        f"decoder={decoder!r} is not known; use 'auto', {', '.join(map(repr, NAMES))}, "
        "or an object of okforest.decode."
    )
