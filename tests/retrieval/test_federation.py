"""Indexes that are searched as one: the same scores, to the last bit."""

import pytest

from okforest.retrieval import (
    FederatedIndex,
    IndexChangedError,
    RemoteError,
    RemoteIndex,
    SubwindowIndex,
    Vocabulary,
)
from reference.retrieval import make_images


def by_name(hits):
    return [(hit.name, hit.label, hit.score, hit.height, hit.width) for hit in hits]


def test_shards_equal_one_index(build, images, serving):
    """Four shards, two of them over HTTP, find what one index finds, score for score."""
    whole = build()
    parts = [build(range(k, 12, 4), f"shard {k}") for k in range(4)]
    urls = [serving(part) for part in parts[2:]]
    federated = FederatedIndex([*parts[:2], *(RemoteIndex(url) for url in urls)])
    for query in (*images[:3], *make_images(seed=9)[0][:2]):
        for options in ({}, {"labels": ["class 1", "class 2"]}, {"n_subwindows": 57}):
            expected = whole.search(query, 12, **options)
            assert by_name(federated.search(query, 12, **options)) == by_name(expected)
    hits = federated.search(images[5], 12)
    assert all(int(hit.name) % 4 == hit.shard for hit in hits)


def test_remote_indexes_alone(build, images, serving):
    """Without a local index, the vocabulary is downloaded."""
    url = serving(build())
    remote = FederatedIndex([RemoteIndex(url)])
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
    """The search starts again if an index has changed; scores are those of one state."""
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
        RemoteIndex("ftp://example.org")
    with pytest.raises(RemoteError, match=r"http://127.0.0.1:9 cannot be reached"):
        RemoteIndex("http://127.0.0.1:9", timeout=2).info()


def test_index_is_not_written(build, serving, images):
    """A server without a token refuses changes, and says why."""
    index = build()
    remote = RemoteIndex(serving(index), token="guess")
    with pytest.raises(RemoteError, match=r"\(403\): this server is read-only"):
        remote.remove(3)
    assert len(SubwindowIndex(index.path)) == 12
