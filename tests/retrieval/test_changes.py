"""Changes of an index: what they write, in which order, and what is left if they fail."""

import os
import pickle
import threading
import time

import numpy as np
import pytest
from PIL import Image

from okforest.retrieval import SubwindowIndex, changes, pictures, postings, segment, store
from okforest.retrieval.postings import Postings, merge
from reference.retrieval import make_images, scores_by_name


def test_merging_in_chunks(monkeypatch):
    """Postings merged a part at a time equal postings of all subwindows at once."""
    monkeypatch.setattr(postings, "POSTINGS_PER_CHUNK", 50)
    rng, n_leaves = np.random.default_rng(0), 400_000
    leaf = rng.integers(0, n_leaves, 600).astype(np.uint64)
    image = rng.integers(0, 9, 600).astype(np.uint64)
    whole = Postings.of_subwindows(leaf << np.uint64(32) | image, n_leaves)
    parts = []
    for which, first in ((image < 4, 0), (image >= 4, 4)):
        keys = leaf[which] << np.uint64(32) | (image[which] - np.uint64(first))
        parts.append((Postings.of_subwindows(keys, n_leaves), np.arange(first, first + 5)))
    merged = merge(parts, n_leaves)
    for name in ("offsets", "low", "image", "count"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name)), name


def test_numbers_after_a_merge(build, images):
    """Images that are added after a merge get numbers of their own."""
    first, second = build(range(3), "a"), build(range(3, 7), "b")
    first.merge([second])
    first.add(images[7:10], names=["7", "8", "9"])
    assert [row.id for row in first.rows()] == list(range(10))


def test_numbers_and_thumbnails_after_compact(build, images):
    """Compacting keeps the numbers, the labels and the thumbnails; none is used again."""
    index = build(range(6), thumbnail_side=16, commit_every=2)
    before = {row.name: row for row in index.rows()}
    index.remove(["0", "3"])
    index.compact()
    assert {row.name: row for row in index.rows()} == {
        name: row for name, row in before.items() if name not in ("0", "3")
    }
    index.add(images[6:7], names=["6"])
    assert index.row("6").id == 6


def test_segments_are_bounded(build, images, monkeypatch):
    """A segment is written when it has so many keys, without commit_every."""
    monkeypatch.setattr(changes, "KEYS_PER_SEGMENT", 2 * 20 * 4)
    assert [len(s.table) for s in build(range(7)).snapshot.segments] == [2, 2, 2, 1]


def test_replaced_images_stay_until_their_successors_are_written(build, images, monkeypatch):
    """If an addition is interrupted, no image is missing."""
    index = build(range(4))
    commit, n_commits = store.Store.commit, []

    def interrupted(self, *arguments):
        n_commits.append(1)
        if len(n_commits) == 2:
            raise KeyboardInterrupt
        commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.add(images[6:10], names=["new", "1", "2", "3"], commit_every=1)
    after = SubwindowIndex(index.path)
    assert sorted(row.name for row in after.rows()) == ["0", "1", "2", "3", "new"]


def test_names_with_equal_hashes(build, images, monkeypatch):
    """A name is not taken for another one with the same hash."""
    for module in (segment, changes):
        monkeypatch.setattr(module, "name_key", lambda name: 7)
    index = build([])
    index.add(images[:1], names=["a"])
    with pytest.raises(ValueError, match="the index has no image 'b'"):
        index.row("b")


def test_progress_counts_skipped_images(build, images):
    """The last number that the callback gets is the number of all images."""
    seen = []
    build([]).add([images[0], np.zeros((9, 9)), images[1]], callback=seen.append)
    assert seen[-1] == 3


def test_refresh_opens_new_files_only(build, images):
    """Segments and trees that are open already are kept."""
    index = build(range(6), commit_every=2)
    reader = SubwindowIndex(index.path)
    before = reader.snapshot
    index.add(images[6:7], names=["6"])
    assert reader.refresh()
    assert reader.snapshot.vocabulary is before.vocabulary
    assert all(a is b for a, b in zip(reader.snapshot.segments[:3], before.segments, strict=True))


def test_unused_files_are_deleted(build, images):
    """After each change, the folder has the files that the manifest names, and no others."""
    index = build(range(6), commit_every=2)
    index.remove(["0"])
    index.remove(["1"])
    index.add(images[6:7], names=["6"])
    for change in (lambda: None, index.compact):
        change()
        manifest = index.snapshot.manifest
        named = {*manifest.segments, "manifest.okf", "vocabulary.okf", "write.lock"}
        if manifest.removed:
            named.add(manifest.removed)
        assert {path.name for path in index.path.iterdir()} == named


def test_files_are_on_the_disk_before_the_manifest(build, images, monkeypatch):
    """The folder is flushed after the segment is named in it, and again after the manifest is."""
    index, events = build(range(3)), []
    replace, sync = os.replace, store.sync_folder

    def renamed(old, new):
        events.append(os.path.basename(new).split("-")[0])
        replace(old, new)

    def synced(folder):
        events.append("sync")
        sync(folder)

    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(store, "sync_folder", synced)
    index.add(images[3:4], names=["3"])
    assert events == ["segment", "sync", "manifest.okf", "sync"]


def test_opening_while_another_process_compacts(build, images, monkeypatch):
    """If files vanish after the manifest was read, it is read again."""
    index = build(range(6), commit_every=2)
    expected = scores_by_name(index, images[0])
    read_manifest, n_reads = store.Manifest.read.__func__, []

    def slow(cls, path):
        manifest = read_manifest(cls, path)
        n_reads.append(1)
        if len(n_reads) == 1:
            index.compact()
        return manifest

    monkeypatch.setattr(store.Manifest, "read", classmethod(slow))
    assert scores_by_name(SubwindowIndex(index.path), images[0]) == expected


def test_images_from_a_generator(tmp_path, images, vocabulary):
    """Images may come from any iterable, which is read once."""
    index = SubwindowIndex.build(
        tmp_path / "index", (image for image in images[:3]), n_trees=2, thumbnail_side=0
    )
    assert len(index) == 3
    assert index.add(iter(images[3:5])).n_added == 2


def test_images_that_are_left_out(tmp_path, images, vocabulary):
    """Build warns of images that cannot be read."""
    added = [images[0], np.zeros((9, 9)), np.zeros((9, 9, 4), np.uint8)]
    with pytest.warns(UserWarning, match="2 of 3 images were left out; the first: .* float64"):
        index = SubwindowIndex.build(tmp_path / "index", added, vocabulary=vocabulary)
    assert len(index) == 1


def test_automatic_names(build, images):
    """They differ from names of other images, in the index or in the same call."""
    index = build([])
    index.add(images[:3], names=["image-3", "image-4", "z"])
    index.add(images[3:6])
    index.add(images[6:9], names=["image-7", "", "image-8"])
    names = [row.name for row in index.rows()]
    assert len(set(names)) == 9
    assert {"image-3-1", "image-4-1", "image-5", "image-7-1"} <= set(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["x"]}, "there are 3 images and 1 labels"),
        ({"names": ["x", "x", "y"]}, "two images have the name 'x'"),
        ({"commit_every": 0}, "commit_every=0; expected an integer of at least 1"),
        ({"thumbnail_side": -1}, "thumbnail_side=-1; expected an integer of at least 0"),
        ({"thumbnail_side": 1.5}, "thumbnail_side=1.5; expected an integer of at least 0"),
        ({"vocabulary": None, "random_state": None}, "random_state=None; expected an integer"),
        ({"vocabulary": None, "n_trees": 2.5}, "n_trees=2.5; expected an integer of at least 1"),
        ({"labels": "abc"}, "is a single text; pass a list"),
    ],
)
def test_failed_builds_leave_nothing(tmp_path, images, vocabulary, options, message):
    """A call that is corrected can be repeated."""
    options = {"vocabulary": vocabulary} | options
    with pytest.raises(ValueError, match=message):
        SubwindowIndex.build(tmp_path / "index", images[:3], **options)
    assert not (tmp_path / "index").exists()


def test_builds_that_fail_while_they_write(tmp_path, images, vocabulary, monkeypatch):
    """An index without any image is deleted; one with some images can be continued."""

    def build(commit_every):
        n_commits, commit = [], store.Store.commit

        def failing(self, *arguments):
            n_commits.append(1)
            if len(n_commits) == 2 or commit_every is None:
                raise OSError("no more")
            commit(self, *arguments)

        options = {"vocabulary": vocabulary, "commit_every": commit_every}
        with monkeypatch.context() as patch:
            patch.setattr(store.Store, "commit", failing)
            with pytest.raises(OSError, match="no more"):
                SubwindowIndex.build(tmp_path / "index", images, **options)

    build(None)
    assert not (tmp_path / "index").exists()
    build(5)
    assert len(SubwindowIndex(tmp_path / "index")) == 5


def test_interrupts_keep_what_was_done(build, monkeypatch):
    """Images that were indexed before Ctrl-C stay."""
    index = build([])
    images = make_images(70)[0]

    def interrupt(done):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.add(images, names=[str(i) for i in range(70)], callback=interrupt)
    assert len(index) == pictures.BATCH_SIZE
    assert index.add(images, names=[str(i) for i in range(70)])[:3] == (6, 0, 64)
    assert scores_by_name(index, images[0]).keys() == {str(i) for i in range(70)}


def test_names_of_images_to_remove(build):
    """Each image counts once; texts, booleans and real numbers are no lists or numbers."""
    index = build(range(4))
    with pytest.raises(ValueError, match=r"images='012' is a single text; pass a list"):
        index.remove("012")
    for wrong in (True, 1.0, None):
        with pytest.raises(ValueError, match=f"the index has no image {wrong}"):
            index.remove([wrong])
    assert index.remove(["0", 0, "1"]) == 2
    assert len(index) == 2


def test_threads_that_refresh(build, images, monkeypatch):
    """A slow refresh that began before a change does not put back the state before it."""
    index = build(range(3))
    writer = SubwindowIndex(index.path)
    opened, gate = threading.Event(), threading.Event()
    read = store.Manifest.read.__func__

    def slow(cls, path):
        manifest = read(cls, path)
        if threading.current_thread() is reader:
            opened.set()
            gate.wait(30)
        return manifest

    monkeypatch.setattr(store.Manifest, "read", classmethod(slow))
    reader = threading.Thread(target=index.refresh)
    writer.add(images[3:4], names=["3"])
    reader.start()
    assert opened.wait(30)  # the state with 3, without 4
    writer.add(images[4:5], names=["4"])
    remover = threading.Thread(target=index.remove, args=[["0"]])
    remover.start()
    time.sleep(0.2)
    gate.set()
    reader.join()
    remover.join()
    assert {row.name for row in SubwindowIndex(index.path).rows()} == {"1", "2", "3", "4"}
    assert {row.name for row in index.rows()} == {"1", "2", "3", "4"}


def test_sites_with_the_same_names(tmp_path, vocabulary):
    """Files of other folders are merged under their paths, and are still found."""
    indexes = []
    for k, site in enumerate(("here", "there")):
        for i, image in enumerate(make_images(2, seed=k)[0]):
            path = tmp_path / site / "cat" / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
        indexes.append(
            SubwindowIndex.build(tmp_path / f"index {k}", tmp_path / site, vocabulary=vocabulary)
        )
    index, other = indexes
    expected = other.picture("cat/1.png")
    index.merge([other])
    name = str(tmp_path / "there" / "cat" / "1.png")
    assert {row.name for row in index.rows()} >= {"cat/0.png", "cat/1.png", name}
    assert np.array_equal(index.picture(name), expected)
    assert index.row(name).label == "cat"
    assert index.add(tmp_path / "there")[:3] == (0, 0, 2)


def test_pickle(build, images):
    """An index that is sent to another process is opened there."""
    index = build(range(3), n_jobs=2)
    again = pickle.loads(pickle.dumps(index))
    assert (again.path, again.n_jobs) == (index.path, 2)
    assert again.search(images[0]) == index.search(images[0])
