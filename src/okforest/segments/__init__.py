"""Images, series, sequences and graphs as inputs: cut into segments, and combined.

A *segmenter* cuts an object into many random segments of a fixed number of features. A model works
on segments, and its predictions for the segments of an object are combined.
"""

from okforest.segments.annotator import SegmentAnnotator
from okforest.segments.base import Segmenter, Segments
from okforest.segments.estimators import SegmentClassifier, SegmentRegressor
from okforest.segments.evidence import Evidence
from okforest.segments.images import list_images
from okforest.segments.kmers import KmerWindows
from okforest.segments.model import SegmentModel
from okforest.segments.neighborhoods import Neighborhoods
from okforest.segments.pixels import PixelClassifier
from okforest.segments.subseries import RandomSubseries
from okforest.segments.subwindows import RandomSubwindows

__all__ = [
    "Evidence",
    "KmerWindows",
    "Neighborhoods",
    "PixelClassifier",
    "RandomSubseries",
    "RandomSubwindows",
    "SegmentAnnotator",
    "SegmentClassifier",
    "SegmentModel",
    "SegmentRegressor",
    "Segmenter",
    "Segments",
    "list_images",
]
