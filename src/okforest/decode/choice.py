"""From what users pass as ``decoder=`` to a decoder."""

from typing import Any

from okforest.decode._base import Decoder
from okforest.decode.exact import Majority, Mean
from okforest.decode.search import Support, TrainingSet
from okforest.kernels import OutputKernel

NAMES: dict[str, type[Decoder]] = {
    "majority": Majority,
    "mean": Mean,
    "support": Support,
    "training_set": TrainingSet,
}


def as_decoder(decoder: Any, kernel: OutputKernel) -> Decoder:
    """Return a decoder from a decoder, the name of one, or "auto".

    "auto" takes the closed form where the kernel has one, else the search over the training set.
    """
    if isinstance(decoder, Decoder):
        return decoder
    if isinstance(decoder, str) and decoder == "auto":
        return NAMES[kernel.preimage or "training_set"]()
    if isinstance(decoder, str) and decoder in NAMES:
        return NAMES[decoder]()
    raise ValueError(
        f"decoder={decoder!r} is not known; use 'auto', {', '.join(map(repr, NAMES))}, "
        "or an object of okforest.decode."
    )
