"""Pre-images: from weights over training outputs back to outputs."""

from okforest.decode._base import Decoder, SearchDecoder
from okforest.decode.choice import as_decoder
from okforest.decode.exact import Majority, Mean
from okforest.decode.search import Candidates, Support, TrainingSet
from okforest.decode.survival import SurvivalTime

__all__ = [
    "Candidates",
    "Decoder",
    "Majority",
    "Mean",
    "SearchDecoder",
    "Support",
    "SurvivalTime",
    "TrainingSet",
    "as_decoder",
]
