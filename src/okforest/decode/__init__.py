"""Pre-images: from weights over training outputs back to outputs."""

from okforest.decode.as_decoder import as_decoder
from okforest.decode.base import Decoder, TunableDecoder
from okforest.decode.composition import Parts, Sharpened
from okforest.decode.expected_loss import ExpectedLoss
from okforest.decode.hierarchies import Hierarchical
from okforest.decode.label_sets import (
    Cardinality,
    ExpectedF1,
    ExpectedJaccard,
    LabelSetDecoder,
    Mode,
    Threshold,
)
from okforest.decode.means import FixedPoint, Majority, Mean, Medoid, Quantiles
from okforest.decode.rankings import Borda, Kemeny, RankingDecoder
from okforest.decode.search import CandidateLists, Candidates, SearchDecoder, Support, TrainingSet
from okforest.decode.strings import EulerianPath

__all__ = [
    "Borda",
    "CandidateLists",
    "Candidates",
    "Cardinality",
    "Decoder",
    "EulerianPath",
    "ExpectedF1",
    "ExpectedJaccard",
    "ExpectedLoss",
    "FixedPoint",
    "Hierarchical",
    "Kemeny",
    "LabelSetDecoder",
    "Majority",
    "Mean",
    "Medoid",
    "Mode",
    "Parts",
    "Quantiles",
    "RankingDecoder",
    "SearchDecoder",
    "Sharpened",
    "Support",
    "Threshold",
    "TrainingSet",
    "TunableDecoder",
    "as_decoder",
]
