"""Scores, and what stays the same when an index is changed."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from okforest.retrieval import Hit, IndexBusyError, SubwindowIndex, Vocabulary
from okforest.retrieval.evaluation import average_precision
from okforest.retrieval.postings import Postings, merge
from okforest.segments import RandomSubwindows
from reference import retrieval as reference
from reference.retrieval import make_images, scores_by_name

reuse = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_scores_are_those_of_the_formula(build, images, vocabulary):
    """S(q, i) is the mean of count / size over trees and subwindows with a leaf that is used."""
    index = build(range(9))
    leaves = [vocabulary.reach([image[:, :, None]]).leaves for image in images]
    for query in (0, 10):  # in the index, and not
        reached = vocabulary.reach([images[query][:, :, None]], query=True).leaves
        expected = reference.scores(reached, leaves[:9])
        ids, scores = index.scores(images[query])
        assert ids.tolist() == list(range(9))
        np.testing.assert_allclose(scores, expected, rtol=1e-12)
        assert scores.sum() == pytest.approx(1)


def test_large_counts(tmp_path):
    """More subwindows in a leaf than a byte holds are still counted."""
    images = np.stack([np.zeros((8, 8), np.uint8), np.full((8, 8), 255, np.uint8)])
    segmenter = RandomSubwindows(700, size=2)
    index = SubwindowIndex.build(
        tmp_path / "index", images, segmenter=segmenter, n_trees=2, thumbnail_side=0
    )
    assert index.info()["postings"] == 2 * 2 * 3
    assert index.scores(images[0])[1].tolist() == pytest.approx([1, 0])
    assert [hit.name for hit in index.search(images[1])] == ["image-1"]
    index.compact()
    assert index.scores(images[0])[1].tolist() == pytest.approx([1, 0])


@reuse
@given(seed=st.integers(0, 999))
def test_parts_equal_the_whole(vocabulary, images, labels, tmp_path_factory, seed):
    """Adding, removing, adding again and compacting: the same scores to the last bit."""
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("index")
    order = rng.permutation(12)
    names = [str(i) for i in order]

    def build(name, n):
        return SubwindowIndex.build(
            folder / name,
            images[order[:n]],
            names=names[:n],
            vocabulary=vocabulary,
            thumbnail_side=0,
            commit_every=int(rng.integers(1, 13)),
        )

    whole, parts = build("whole", 12), build("parts", int(rng.integers(0, 12)))
    n = len(parts)
    parts.add(images[order[n:]], names=names[n:], commit_every=int(rng.integers(1, 13)))
    queries = [images[0], images[7], make_images(seed=seed)[0][0]]
    expected = [scores_by_name(whole, query) for query in queries]
    assert [scores_by_name(parts, query) for query in queries] == expected
    gone = rng.permutation(12)[: rng.integers(1, 11)]
    assert parts.remove([names[i] for i in gone]) == len(gone)
    assert len(parts) == 12 - len(gone)
    if rng.random() < 0.5:
        parts.compact()
        assert len(parts.snapshot.segments) == 1
    assert not {names[i] for i in gone} & {hit.name for hit in parts.search(queries[0], 12)}
    assert sum(scores_by_name(parts, queries[0]).values()) == pytest.approx(1)
    parts.add(images[order[gone]], names=[names[i] for i in gone])
    assert [scores_by_name(parts, query) for query in queries] == expected
    parts.compact()
    assert [scores_by_name(parts, query) for query in queries] == expected
    reopened = SubwindowIndex(folder / "parts")
    assert [scores_by_name(reopened, query) for query in queries] == expected


def test_fully_grown_trees(tmp_path):
    """An image of the index finds others, too, in trees with a leaf for each subwindow."""
    images, labels = make_images()
    index = SubwindowIndex.build(
        tmp_path / "index", images, labels=labels, segmenter=RandomSubwindows(100, size=8)
    )
    hits = index.search(images[0])
    assert hits[0].name == "image-0"
    assert {hit.label for hit in hits[:3]} == {"class 0"}
    assert index.evaluate(images, labels).top_1 == 1


def test_removed_leaves_do_not_count(build, images):
    """After a removal, scores are the same as in an index that never had the image."""
    index, without = build(), build(range(1, 12), "without")
    index.remove(["0"])
    for query in images[:3]:
        assert scores_by_name(index, query) == scores_by_name(without, query)


def test_replacing(build, images):
    """The same name with other pixels replaces the image; with the same, nothing is done."""
    index = build(range(3))
    same = index.add(images[:2], names=["0", "1"], labels=["class 0", "class 1"])
    assert same == (0, 0, 2, [])
    assert index.info()["generation"] == 1
    other = index.add(images[3:5], names=["1", "new"], commit_every=1)
    assert other[:3] == (1, 1, 0)
    assert sorted(row.name for row in index.rows()) == ["0", "1", "2", "new"]
    assert index.search(images[3], k=1)[0].name == "1"
    relabelled = index.add(images[:1], names=["0"], labels=["other"])
    assert relabelled.n_replaced == 1
    assert index.row("0").label == "other"
    assert len(index) == 4


def test_compacting_small_segments(build, images):
    """Only small segments are merged; the removed images of the others stay removed."""
    index = build(range(6))
    index.add(images[6:], names=[str(i) for i in range(6, 12)], commit_every=2)
    index.remove(["1", "7"])
    expected = scores_by_name(index, images[0])
    index.compact(at_most=2)
    assert [len(segment.table) for segment in index.snapshot.segments] == [6, 5]
    assert scores_by_name(index, images[0]) == expected
    assert index.info()["removed"] == 1
    before = index.snapshot.manifest.generation
    index.compact(at_most=5)
    assert index.snapshot.manifest.generation == before  # there is nothing to do


def test_readers_keep_their_snapshot(build, images):
    """A reader sees the index as it was, until it refreshes."""
    index = build(range(6), commit_every=2)
    reader = SubwindowIndex(index.path)
    before = scores_by_name(reader, images[0])
    index.add(images[6:], names=[str(i) for i in range(6, 12)])
    index.remove(["0", "3"])
    index.compact()
    assert scores_by_name(reader, images[0]) == before
    assert reader.refresh()
    assert not reader.refresh()
    assert scores_by_name(reader, images[0]) == scores_by_name(index, images[0])


def test_one_writer_at_a_time(build, images):
    """A second writer gets an error, and can write later."""
    index = build(range(3))
    other = SubwindowIndex(index.path)
    with index._writing(), pytest.raises(IndexBusyError, match="another process is writing"):
        other.add(images[3:4], names=["3"])
    other.add(images[3:4], names=["3"])
    assert len(other) == 4
    index.add(images[4:5], names=["4"])  # sees the change of the other
    assert len(index) == 5


def test_merge(build, images):
    """Merged indexes have the scores of one; names in both, and other trees, are errors."""
    whole = build()
    first, second, third = build(range(4), "a"), build(range(4, 9), "b"), build(range(9, 12), "c")
    second.remove(["5"])
    second.add(images[5:6], names=["5"], labels=["class 1"])
    first.merge([second, third])
    for query in images[::4]:
        assert scores_by_name(first, query) == scores_by_name(whole, query)
    assert len({row.id for row in first.rows()}) == 12
    with pytest.raises(ValueError, match=r"names are in several of the indexes, such as '4'"):
        first.merge([second])
    other = build(range(3), "other", vocabulary=Vocabulary.grow(images, n_trees=1))
    with pytest.raises(ValueError, match="has another vocabulary"):
        first.merge([other])


def test_hits(build, images):
    """Hits are ranked and have what the table has; a filter keeps the scores."""
    index = build()
    hits = index.search(images[2], k=5)
    hit = next(hit for hit in hits if hit.id == 2)
    assert hit == Hit(2, "2", "class 2", hit.score, 24, 20)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.label for hit in hits[:3]} == {"class 2"}
    filtered = index.search(images[2], k=20, labels=["class 0", "unknown"])
    assert {hit.label for hit in filtered} <= {"class 0"}
    all_scores = scores_by_name(index, images[2])
    assert all(hit.score == all_scores[hit.name] for hit in filtered)
    assert index.labels == [f"class {k}" for k in range(4)]


def test_ties_are_broken_at_random(tmp_path, images, vocabulary):
    """Equal images take every rank, depending on the seed; the same seed gives the same order."""
    index = SubwindowIndex.build(
        tmp_path / "index",
        [images[0]] * 5,
        names=list("abcde"),
        vocabulary=vocabulary,
        thumbnail_side=0,
    )
    orders = [
        "".join(hit.name for hit in index.search(images[0], random_state=seed))
        for seed in range(60)
    ]
    assert {order[0] for order in orders} == set("abcde")
    assert len(set(orders)) > 30
    again = index.search(images[0], random_state=7)
    assert "".join(hit.name for hit in again) == orders[7]


def test_explanation(build, images):
    """The weights of all pairs sum to the score; boxes lie in the pictures."""
    index = build()
    hit = index.search(images[3], k=2)[1]
    picture = images[int(hit.name)]
    explanation = index.explain(images[3], hit, k=10**6, hit_picture=picture)
    assert explanation.score == pytest.approx(hit.score)
    assert explanation.weights.sum() == pytest.approx(hit.score)
    assert (np.diff(explanation.weights) <= 0).all()
    for boxes in (explanation.query_boxes, explanation.hit_boxes):
        row, col, side = boxes.T
        assert ((row >= 0) & (row + side <= 24) & (col >= 0) & (col + side <= 20)).all()
    assert len(index.explain(images[3], hit, k=3, hit_picture=picture).weights) == 3
    with pytest.raises(ValueError, match="is not the image '7' of the index"):
        index.explain(images[3], "7", hit_picture=images[3])
    with pytest.raises(ValueError, match="was not indexed from a file; pass its pixels"):
        index.explain(images[3], "7")


def test_evaluation(build, images, labels):
    """Measures agree with the rankings; leaving one out equals an index without it."""
    index = build(range(8))
    quality = index.evaluate(images[8:], labels[8:], k=(1, 3))
    assert quality.n_queries == 4
    precisions, relevant_of = [], {}
    for i in range(8, 12):
        hits = index.search(images[i], k=8)
        relevant_of[i] = [hit.label == labels[i] for hit in hits]
        precisions.append(np.mean(relevant_of[i][:3]))
    assert quality.precision[3] == pytest.approx(np.mean(precisions))
    assert quality.top_1 == quality.precision[1] == np.mean([r[0] for r in relevant_of.values()])
    assert 0 < quality.recall[1] <= 0.5
    left_out = build(name="all").evaluate(images, labels)
    expected = [
        build([j for j in range(12) if j != i], f"without {i}").evaluate(
            images[i : i + 1], labels[i : i + 1]
        )
        for i in range(12)
    ]
    assert left_out.mean_average_precision == pytest.approx(
        np.mean([e.mean_average_precision for e in expected])
    )
    with pytest.raises(ValueError, match="no query has an image of its class"):
        index.evaluate(images[8:], ["unknown"] * 4)


@given(st.lists(st.booleans(), min_size=1, max_size=20).filter(any))
def test_average_precision(relevant):
    """It is the mean of the precision at the relevant ranks."""
    expected = reference.average_precision(relevant)
    assert average_precision(np.array(relevant)) == pytest.approx(expected)


def test_info(build):
    """Numbers belong to images that are not removed."""
    index = build()
    index.remove([3])
    info = index.info()
    assert (info["images"], info["removed"], info["subwindows"]) == (11, 1, 220)
    assert (info["trees"], info["segments"], info["labels"]) == (4, 1, 4)
    assert info["bytes"] > info["posting_bytes"] > 0
    assert "11 images" in repr(index)


def test_errors(build, images, tmp_path):
    """Errors say what is wrong and what to do."""
    index = build(range(3))
    with pytest.raises(FileExistsError, match="already has an index; add images to it"):
        build(range(3))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="has other files; choose an empty folder"):
        build(range(3), "full")
    with pytest.raises(FileNotFoundError, match="has no index; build one first"):
        SubwindowIndex(tmp_path / "missing")
    with pytest.raises(ValueError, match="the index has no image 'x'"):
        index.remove(["x"])
    with pytest.raises(ValueError, match="the index has no image -1"):
        index.search(-1)
    with pytest.raises(ValueError, match="image '0' was not indexed from a file"):
        index.search(0)
    with pytest.raises(ValueError, match="k=0; expected an integer of at least 1"):
        index.search(images[0], k=0)
    with pytest.raises(ValueError, match="there are 2 images and 1 names"):
        index.add(images[:2], names=["x"])
    with pytest.raises(ValueError, match="two images have the name 'x'"):
        index.add(images[:2], names=["x", "x"])
    with pytest.raises(ValueError, match="pixels of type float64; an index holds bytes"):
        index.search(np.zeros((9, 9)))
    with pytest.raises(ValueError, match="commit_every=0"):
        index.add(images[3:], commit_every=0)
    skipped = index.add([images[3], np.zeros((9, 9)), np.zeros((9, 9, 2), np.uint8)]).skipped
    assert len(skipped) == 2
    assert "2 channels; expected one, or three" in skipped[1].reason


def test_empty_index(build, images):
    """An index without images finds nothing, and can be filled."""
    index = build([])
    assert index.search(images[0]) == []
    assert index.labels == []
    index.compact()
    index.add(images[:2], names=["0", "1"])
    index.remove(["0", "1"])
    assert index.search(images[0]) == []
    index.compact()
    assert index.snapshot.segments == []
    assert len(index) == 0


@given(seed=st.integers(0, 999), n_leaves=st.integers(1, 200_000), n=st.integers(0, 300))
def test_merging_postings(seed, n_leaves, n):
    """Merged postings equal postings of all subwindows at once, in any number of buckets."""
    rng = np.random.default_rng(seed)
    leaf = rng.integers(0, n_leaves, n).astype(np.uint64)
    image = rng.integers(0, 9, n).astype(np.uint64)
    whole = Postings.of_subwindows(leaf << np.uint64(32) | image, n_leaves)
    whole.check(n_leaves)
    parts = []
    for which in (image < 4, image >= 4):
        first = 0 if not parts else 4
        keys = leaf[which] << np.uint64(32) | (image[which] - np.uint64(first))
        numbers = np.arange(first, first + 5)
        parts.append((Postings.of_subwindows(keys, n_leaves), numbers))
    merged = merge(parts, n_leaves)
    for name in ("offsets", "low", "image", "count"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name)), name
    assert np.array_equal(np.unique(whole.leaves()), np.unique(leaf))
