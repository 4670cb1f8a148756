"""Pre-images: from weights over training outputs back to outputs."""

from okforest.decode._base import Decoder, SearchDecoder
from okforest.decode.candidate_lists import CandidateLists
from okforest.decode.choice import as_decoder
from okforest.decode.exact import Majority, Mean
from okforest.decode.expected_loss import ExpectedLoss
from okforest.decode.fixed_point import FixedPoint
from okforest.decode.search import Candidates, Support, TrainingSet
from okforest.decode.sharpness import PowerChoice, Sharpened, select_power
from okforest.decode.survival import SurvivalTime

__all__ = [
    "CandidateLists",
    "Candidates",
    "Decoder",
    "ExpectedLoss",
    "FixedPoint",
    "Majority",
    "Mean",
    "PowerChoice",
    "SearchDecoder",
    "Sharpened",
    "Support",
    "SurvivalTime",
    "TrainingSet",
    "as_decoder",
    "select_power",
]
