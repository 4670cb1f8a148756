"""Indexes that are searched as one: the same scores, to the last bit."""

from dataclasses import replace

import pytest

from okforest.retrieval import (
    FederatedIndex,
    IndexChangedError,
    SubwindowIndex,
    Vocabulary,
)
from okforest.retrieval.postings import Words
from reference.retrieval import make_images
from reference.web import encoded

web = pytest.importorskip("okforest.retrieval.web", reason="the extra serve is not installed")


def by_name(hits):
    return [(hit.name, hit.label, hit.score, hit.height, hit.width) for hit in hits]


def test_shards_equal_one_index(build, images, serving):
    """Four shards, two of them over HTTP, find what one index finds, score for score."""
    whole = build()
    parts = [build(range(k, 12, 4), f"shard {k}") for k in range(4)]
    urls = [serving(part) for part in parts[2:]]
    federated = FederatedIndex([*parts[:2], *(web.RemoteIndex(url) for url in urls)])
    for query in (*images[:3], *make_images(seed=9)[0][:2]):
        for options in ({}, {"labels": ["class 1", "class 2"]}, {"n_subwindows": 57}):
            expected = whole.search(query, 12, **options)
            assert by_name(federated.search(query, 12, **options)) == by_name(expected)
    hits = federated.search(images[5], 12)
    assert all(int(hit.name) % 4 == hit.shard for hit in hits)


def test_remote_indexes_alone(build, images, serving):
    """Without a local index, the vocabulary is downloaded."""
    url = serving(build())
    remote = FederatedIndex([web.RemoteIndex(url)])
    assert remote.vocabulary.key == build(name="other").vocabulary.key
    assert by_name(remote.search(images[0])) == by_name(build(name="third").search(images[0]))


class Restless:
    """A shard that changes between the two steps of a search, some times."""

    def __init__(self, index, n_changes):
        self.index, self.n_changes = index, n_changes
        self.vocabulary = index.vocabulary

    def leaf_sizes(self, leaves):
        answer = self.index.leaf_sizes(leaves)
        if self.n_changes:
            self.n_changes -= 1
            self.index.remove([next(self.index.rows()).id])
        return answer

    def best_hits(self, *arguments, **options):
        return self.index.best_hits(*arguments, **options)


def test_changes_between_the_steps(build, images):
    """The search starts again if an index has changed; scores belong to one state."""
    index = build()
    hits = FederatedIndex([Restless(index, 2)]).search(images[3])
    assert by_name(hits) == by_name(index.search(images[3]))
    assert len(index) == 10
    with pytest.raises(IndexChangedError, match="has changed since its leaves were counted"):
        FederatedIndex([Restless(index, 9)]).search(images[3])


def test_errors(build, images):
    """Other trees cannot be searched together; servers that are away are named."""
    other = build(name="other", vocabulary=Vocabulary.grow(images, n_trees=1))
    with pytest.raises(ValueError, match="has another vocabulary than the other indexes"):
        FederatedIndex([build(), other])
    with pytest.raises(ValueError, match="there are no indexes"):
        FederatedIndex([])
    with pytest.raises(ValueError, match="expected an address that begins with http"):
        web.RemoteIndex("ftp://example.org")
    with pytest.raises(web.RemoteError, match=r"http://127.0.0.1:9 cannot be reached"):
        web.RemoteIndex("http://127.0.0.1:9", timeout=2).info()


def test_index_is_not_written(build, serving, images):
    """A server without a token refuses changes, and says why."""
    index = build()
    remote = web.RemoteIndex(serving(index), token="guess")
    with pytest.raises(web.RemoteError, match=r"\(403\): this server is read-only"):
        remote.remove(3)
    assert len(SubwindowIndex(index.path)) == 12


def test_ties_between_shards(tmp_path, images, vocabulary):
    """Equal images in several indexes are ranked as in one."""

    def build(names):
        return SubwindowIndex.build(
            tmp_path / names,
            [images[0]] * len(names),
            names=list(names),
            vocabulary=vocabulary,
            thumbnail_side=0,
        )

    whole, shards = build("abcdef"), FederatedIndex([build("abc"), build("def")])
    for seed in range(10):
        expected = [hit.name for hit in whole.search(images[0], 4, random_state=seed)]
        assert [hit.name for hit in shards.search(images[0], 4, random_state=seed)] == expected


def test_remote_index_that_changes(build, serving, images):
    """A change between the two steps is an IndexChangedError, and the search starts again."""
    index = build(range(6))
    remote = web.RemoteIndex(serving(SubwindowIndex(index.path)))
    words = Words.count(index.reach(images[0]).leaves)
    sizes, generation = remote.leaf_sizes(words.leaves)
    index.remove(["5"])
    options = {"labels": None, "random_state": 0, "generation": generation}
    with pytest.raises(IndexChangedError, match="has changed"):
        remote.best_hits(words, sizes, 3, **options)
    counted = remote.leaf_sizes

    def restless(leaves):
        answer = counted(leaves)
        if len(index) == 5:
            index.remove(["4"])
        return answer

    remote.leaf_sizes = restless
    hits = FederatedIndex([remote]).search(images[0])
    assert hits == [replace(hit, shard=0) for hit in index.search(images[0])]
    assert len(index) == 4


def test_options_of_a_remote_search(build, serving, images):
    """Labels, subwindows and the seed are those that are passed."""
    index = build()
    remote, body = web.RemoteIndex(serving(index)), encoded(images[0])
    for options in (
        {"labels": ["class 1", "class 2"]},
        {"labels": ["none"]},
        {"labels": []},
        {"n_subwindows": 57},
    ):
        assert remote.search(body, 12, **options) == index.search(images[0], 12, **options)
    index.add([images[0]] * 4, names=list("abcd"))
    orders = {
        tuple(hit.name for hit in remote.search(body, 4, random_state=seed)) for seed in range(20)
    }
    assert len(orders) > 5
