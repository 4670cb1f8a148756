"""Networks: links predicted from features of vertices, and how good the predictions are."""

from okforest.network._base import LinkPredictor
from okforest.network.completion import NetworkCompletion
from okforest.network.kernel import complete_kernel

__all__ = ["LinkPredictor", "NetworkCompletion", "complete_kernel"]
