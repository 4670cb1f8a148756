"""Random numbers of objects: they depend on the seed and the content."""

import networkx as nx
import numpy as np
import pytest

from okforest.segments import KmerWindows, Neighborhoods, RandomSubseries, RandomSubwindows
from okforest.segments.base import content_seed


@pytest.mark.parametrize(
    ("segmenter", "item"),
    [
        (KmerWindows(3, 20, alphabet="ab"), "abbabaabbaababba" * 3),
        (RandomSubseries(20), np.arange(50.0)),
        (Neighborhoods(20), nx.path_graph(30)),
        (RandomSubwindows(20), np.arange(900.0).reshape(30, 30)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_segments_depend_on_the_seed(segmenter, item):
    """Every segmenter draws other segments for another seed, and the same for the same."""
    objects = segmenter.check([item])
    segmenter = segmenter.resolve(objects)
    first, again, other = (segmenter.cut(objects, seed).places for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_seeds_depend_on_shape_and_type():
    """Objects with the same bytes in another shape or type are other objects."""
    item = np.arange(64, dtype=np.uint8)
    parts = [item, item.reshape(8, 8), item.reshape(4, 16), item.view(np.int8)]
    assert len({content_seed(0, [part]) for part in parts}) == 4
