"""How images are ranked: ties, explanations, evaluation, numbers of subwindows."""

import numpy as np
import pytest

from okforest.retrieval import FederatedIndex, SubwindowIndex


def test_ties_at_the_last_rank(tmp_path, images, vocabulary):
    """Which of equal images are the last hits depends on the seed, too."""
    index = SubwindowIndex.build(
        tmp_path / "index",
        [images[0]] * 6,
        names=list("abcdef"),
        vocabulary=vocabulary,
        thumbnail_side=0,
    )
    found = [index.search(images[0], 2, random_state=seed) for seed in range(60)]
    assert {hit.name for hits in found for hit in hits} == set("abcdef")
    for seed, hits in enumerate(found):
        assert hits == index.search(images[0], 6, random_state=seed)[:2]


def test_ties_in_an_evaluation(tmp_path, images, vocabulary):
    """Equal images are ranked by the seed."""
    index = SubwindowIndex.build(
        tmp_path / "index",
        [images[0]] * 6,
        names=list("abcdef"),
        labels=["x", "y"] * 3,
        vocabulary=vocabulary,
        thumbnail_side=0,
    )
    other = images[4:5]
    tops = {index.evaluate(other, ["x"], random_state=seed).top_1 for seed in range(30)}
    assert tops == {0.0, 1.0}


def test_boxes_of_an_explanation_share_leaves(build, images, vocabulary):
    """Each pair of boxes is one of subwindows with a leaf in common, and its weight that sum."""
    index = build()
    explanation = index.explain(images[3], "7", k=10**6, hit_picture=images[7])
    mine = vocabulary.reach([images[3][:, :, None]], query=True)
    its = vocabulary.reach([images[7][:, :, None]])
    sizes = {}
    for image in images:
        for leaf in vocabulary.reach([image[:, :, None]]).leaves.ravel().tolist():
            sizes[leaf] = sizes.get(leaf, 0) + 1
    n_used = sum(leaf in sizes for leaf in mine.leaves.ravel().tolist())
    expected = []
    for q, q_leaves in enumerate(mine.leaves):
        for h, h_leaves in enumerate(its.leaves):
            shared = q_leaves[q_leaves == h_leaves].tolist()
            if shared:
                weight = sum(1 / (sizes[leaf] * n_used) for leaf in shared)
                boxes = (*mine.squares[q].tolist(), *its.squares[h].tolist())
                expected.append((*boxes, round(weight, 12)))
    got = [
        (*q, *h, round(weight, 12))
        for q, h, weight in zip(
            explanation.query_boxes.tolist(),
            explanation.hit_boxes.tolist(),
            explanation.weights.tolist(),
            strict=True,
        )
    ]
    assert sorted(got) == sorted(expected)


def test_subwindows_of_the_query(build, images, labels):
    """Explain and evaluate cut the query into as many subwindows as they are told."""
    index = build(range(8))
    hit = index.search(images[9], k=1, n_subwindows=90)[0]
    options = {"hit_picture": images[int(hit.name)], "n_subwindows": 90}
    assert index.explain(images[9], hit, **options).score == pytest.approx(hit.score)
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (20, 24, 20)).astype(np.uint8)
    classes = [f"class {i % 4}" for i in range(20)]
    few, many = (index.evaluate(noise, classes, n_subwindows=n) for n in (1, 300))
    assert few != many
    expected = []
    for image, label in zip(noise, classes, strict=True):
        hits = index.search(image, 1, n_subwindows=300)
        expected.append(hits[0].label == label)
    assert many.top_1 == np.mean(expected)


def test_labels_of_removed_images(build):
    """A label without images is not listed."""
    index = build(range(5))
    index.remove(["3"])
    assert index.labels == ["class 0", "class 1", "class 2"]
    assert index.info()["labels"] == 3


def test_bytes_per_subwindow_and_tree(build):
    """They are the sizes of the postings and of the trees."""
    info = build().info()
    total = info["posting_bytes"] + info["tree_bytes"]
    assert info["tree_bytes"] == 8 * (info["leaves"] - info["trees"])
    assert info["bytes_per_subwindow_and_tree"] == total / (12 * 20 * 4)


def test_queries_without_a_class(tmp_path, build, images, vocabulary):
    """Images without a label are of no class."""
    index = SubwindowIndex.build(
        tmp_path / "plain", images, vocabulary=vocabulary, thumbnail_side=0
    )
    with pytest.raises(ValueError, match="no query has an image of its class"):
        index.evaluate(images)
    with pytest.raises(ValueError, match="k=0; expected an integer of at least 1"):
        build().evaluate(images, ["class 0"] * 12, k=(0,))


def test_wrong_arguments_of_a_search(build, images):
    """Errors name the argument and what it should be."""
    index = build()
    for options, message in (
        ({"labels": "class 1"}, "labels='class 1' is a single text; pass a list"),
        ({"n_subwindows": 0}, "n_subwindows=0; expected an integer from 1 to"),
        ({"n_subwindows": 10**12}, "n_subwindows=1000000000000; expected an integer from 1 to"),
        ({"k": 2.5}, "k=2.5; expected an integer of at least 1"),
        ({"k": True}, "k=True; expected an integer of at least 1"),
        ({"random_state": None}, "random_state=None; expected an integer of at least 0"),
    ):
        for one in (index, FederatedIndex([index])):
            with pytest.raises(ValueError, match=message):
                one.search(images[0], **options)
    seeded = index.search(images[0], random_state=np.int64(7), k=np.int32(3))
    assert seeded == index.search(images[0], random_state=7, k=3)
