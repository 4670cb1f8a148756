"""Trees in their compact form, their file, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from okforest import OKTotallyRandomTrees
from okforest.engine import are_byte_trees, reach_leaves
from okforest.persistence import FileFormatError
from okforest.retrieval import SubwindowIndex, Vocabulary
from okforest.retrieval.pictures import as_sources, content_hash
from okforest.retrieval.vocabulary import _sample, pack_trees
from okforest.segments import RandomSubwindows
from reference.retrieval import reach


@given(n=st.integers(2, 60), p=st.integers(1, 5), seed=st.integers(0, 99), least=st.integers(2, 9))
def test_leaves_are_those_of_the_forest(n, p, seed, least):
    """Packed trees send every row to the leaf that the forest does, numbered from left to right."""
    X = np.random.default_rng(seed).integers(0, 256, (n, p)).astype(np.uint8)
    forest = OKTotallyRandomTrees(3, min_samples_split=least, random_state=seed)
    forest.fit(X.astype(np.float32))
    nodes, offsets = pack_trees(forest.trees_)
    assert are_byte_trees(nodes, offsets, p)
    leaves = reach_leaves(nodes, offsets, X)
    for t in range(3):
        expected = [reach(forest.trees_[t], row) for row in X]
        assert (leaves[:, t] - (offsets[t] + t)).tolist() == expected


def test_threads_do_not_matter(vocabulary, images):
    """Leaves and squares are the same for any number of threads."""
    pictures = [image[:, :, None] for image in images]
    one, two = vocabulary.reach(pictures), vocabulary.reach(pictures, n_threads=2)
    assert np.array_equal(one.leaves, two.leaves)
    assert np.array_equal(one.squares, two.squares)


@pytest.mark.parametrize(
    ("nodes", "offsets"),
    [
        ([[0, 0]], [0, 1]),  # the right subtree begins at the node itself
        ([[0, 2]], [0, 1]),  # it ends beyond the array
        ([[5 << 8, 1]], [0, 1]),  # an unknown feature
        ([[0, 1]], [0, 2]),
        ([[0, 1]], [1, 1]),
        ([[0, 2], [0, 3], [0, 3]], [0, 3]),  # the left subtree ends beyond its parent's
    ],
)
def test_damaged_nodes_are_refused(nodes, offsets):
    """Nodes whose walk might leave the array are not trees."""
    assert not are_byte_trees(np.array(nodes, np.uint32), np.array(offsets), 5)


def test_round_trip(vocabulary, images, tmp_path):
    """A vocabulary is the same after it was saved and loaded."""
    vocabulary.save(tmp_path / "words.okf")
    loaded = Vocabulary.load(tmp_path / "words.okf")
    assert loaded.key == vocabulary.key
    assert "4 trees" in repr(loaded)
    pictures = [images[0][:, :, None]]
    assert np.array_equal(loaded.reach(pictures).leaves, vocabulary.reach(pictures).leaves)


def test_key_depends_on_everything(images):
    """Other seeds, settings or images give other keys; the same ones the same key."""
    segmenter = RandomSubwindows(5, size=4)
    keys = [
        Vocabulary.grow(images, segmenter=segmenter, n_trees=2).key,
        Vocabulary.grow(images, segmenter=segmenter, n_trees=2, random_state=1).key,
        Vocabulary.grow(images, segmenter=segmenter, n_trees=3).key,
        Vocabulary.grow(images[1:], segmenter=segmenter, n_trees=2).key,
        Vocabulary.grow(images, segmenter=RandomSubwindows(6, size=4), n_trees=2).key,
    ]
    assert len(set(keys)) == 5
    assert Vocabulary.grow(images, segmenter=segmenter, n_trees=2).key == keys[0]


def test_sample_is_bounded(images):
    """Trees have at most as many leaves as subwindows that they are grown on."""
    segmenter = RandomSubwindows(20, size=4)
    vocabulary = Vocabulary.grow(images, segmenter=segmenter, n_trees=1, max_segments=30)
    assert 10 < vocabulary.n_leaves <= 30


def test_color_is_that_of_the_images(images):
    """Grey images have one channel; if one image has three, all are taken as RGB."""
    segmenter = RandomSubwindows(5, size=4)
    assert Vocabulary.grow(images, segmenter=segmenter).segmenter.color == "grey"
    mixed = [images[0], np.stack([images[1]] * 3, axis=2)]
    vocabulary = Vocabulary.grow(mixed, segmenter=segmenter)
    assert vocabulary.segmenter.color == "rgb"
    assert vocabulary.n_features == 48


def test_wrong_parameters(images):
    """Errors name the parameter."""
    with pytest.raises(ValueError, match="n_trees=0; expected an integer of at least 1"):
        Vocabulary.grow(images, n_trees=0)
    with pytest.raises(ValueError, match="there are no images to grow trees on"):
        Vocabulary.grow([])
    with pytest.raises(ValueError, match="none of 1 images can be read"):
        Vocabulary.grow([np.zeros((4, 4), np.float32)])
    with pytest.raises(ValueError, match="a vocabulary needs 'grey', 'rgb' or 'hsv'"):
        Vocabulary(RandomSubwindows(5), np.zeros((0, 2), np.uint32), np.zeros(2, np.int64), 0)


def test_other_files_are_refused(tmp_path, build):
    """A segment is not a vocabulary."""
    index = build()
    with pytest.raises(FileFormatError, match="it is not a vocabulary"):
        Vocabulary.load(next(index.path.glob("segment-*.okf")))


def test_key_depends_on_the_settings(vocabulary):
    """The same trees with other subwindows are another vocabulary."""
    settings = {"n_segments": 20, "size": 8, "color": "grey"}
    keys = {vocabulary.key}
    for other, seed in (
        ({"n_segments": 21}, vocabulary.seed),
        ({"side_range": (0.5, 1.0)}, vocabulary.seed),
        ({"mirror": not vocabulary.segmenter.mirror}, vocabulary.seed),
        ({}, vocabulary.seed + 1),
    ):
        segmenter = RandomSubwindows(**settings | other)
        keys.add(Vocabulary(segmenter, vocabulary.nodes, vocabulary.offsets, seed).key)
    assert len(keys) == 5


def test_sample_is_random(images):
    """Trees are grown on images from everywhere in the list, which depend on the seed."""
    sources = as_sources([*images], [str(i) for i in range(12)])
    chosen = set()
    for seed in range(20):
        pictures, n_each = _sample(sources, 10, 30, seed, 1, 0)
        assert (len(pictures), n_each) == (3, 10)
        chosen.add(b"".join(content_hash(picture) for picture in pictures))
    assert len(chosen) > 10


def test_vocabulary_from_a_file(tmp_path, images, vocabulary):
    """The trees of an index can be given as a file."""
    vocabulary.save(tmp_path / "words.okf")
    index = SubwindowIndex.build(
        tmp_path / "index", images, vocabulary=tmp_path / "words.okf", thumbnail_side=0
    )
    assert index.vocabulary.key == vocabulary.key
