"""Damaged and malicious index files: a clear error or the right answer, never a crash."""

import os
import shutil

import numpy as np
import pytest

from okforest.persistence import FileFormatError
from okforest.persistence.container import read, write
from okforest.retrieval import SubwindowIndex, Vocabulary
from reference.retrieval import scores_by_name


def damage(content, rng):
    """Return bytes with a random mistake."""
    data = bytearray(content)
    kind = rng.integers(6)
    if kind == 0:  # flip a bit
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    elif kind == 1:  # cut the end off
        del data[rng.integers(len(data)) :]
    elif kind == 2:  # overwrite a part
        begin = rng.integers(len(data))
        end = min(len(data), begin + rng.integers(1, 200))
        data[begin:end] = rng.bytes(end - begin)
    elif kind == 3:  # zeros, as after a crash of the machine
        begin = rng.integers(len(data))
        data[begin:] = bytes(len(data) - begin)
    elif kind == 4:  # something added
        data += rng.bytes(rng.integers(1, 100))
    else:  # a part repeated or lost
        begin, end = np.sort(rng.integers(0, len(data) + 1, 2))
        data[begin:end] = data[begin:end] * int(rng.integers(0, 3))
    return bytes(data)


@pytest.mark.parametrize(
    "n", [200, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_damaged_files(build, images, tmp_path, n):
    """Random damage to any file of an index."""
    index = build(commit_every=7)
    index.remove(["4"])
    expected = scores_by_name(index, images[0])
    files = {path.name: path.read_bytes() for path in index.path.glob("*.okf")}
    assert len(files) == 5  # manifest, vocabulary, two segments, removed
    rng = np.random.default_rng(0)
    refused = []
    folder = tmp_path / "damaged"
    shutil.copytree(index.path, folder)
    for _ in range(n):
        name = sorted(files)[rng.integers(len(files))]
        (folder / name).write_bytes(damage(files[name], rng))
        try:
            assert scores_by_name(SubwindowIndex(folder), images[0]) == expected  # in the padding
        except FileFormatError as error:
            refused.append((name, str(error)))
        try:
            unverified = SubwindowIndex(folder, verify=False)
            unverified.search(images[0])
            unverified.info()
            unverified.compact()
            shutil.rmtree(folder)
            shutil.copytree(index.path, folder)
        except ValueError:  # FileFormatError is one
            pass
        (folder / name).write_bytes(files[name])
    assert len(refused) > 0.7 * n
    assert all(name in message or "vocabulary" in message for name, message in refused)


def rewrite(path, change):
    """Change the content and the arrays of a file; the checksums are right."""
    _, content, arrays = read(path, mapped=False, verify=True)
    arrays = {name: array.copy() for name, array in zip(content["arrays"], arrays, strict=True)}
    change(content, arrays)
    content["arrays"] = list(arrays)
    with open(path, "wb") as file:
        write(file, content, list(arrays.values()))


def set_entry(name, position, value):
    def change(content, arrays):
        arrays[name][position] = value

    return change


def set_content(name, value):
    return lambda content, arrays: content.update({name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry("offsets", 1, 10**9), "the offsets of postings do not ascend"),
        (set_entry("offsets", -1, 10**9), "the offsets of postings do not ascend"),
        (set_entry("name_offsets", 2, 10**6), "the offsets of name do not ascend"),
        (set_entry("thumbnail_offsets", -1, 7), "the offsets of thumbnail do not go"),
        (set_entry("label", 0, 99), "an image has an unknown label"),
        (set_content("shift", 17), "shift is 17, not 0 to 16"),
        (set_content("shift", 0), "offsets do not fit"),
        (set_content("shift", "3"), "shift is not an integer"),
        (set_content("vocabulary", "0"), "it belongs to another vocabulary"),
        (set_content("version", 2), "version 2 is unknown; upgrade okforest"),
        (set_content("kind", "letter"), "it is not a segment of an index"),
        (lambda content, arrays: arrays.pop("low"), "low"),
        (lambda content, arrays: arrays.update(low=arrays["low"][1:]), "different lengths"),
        (lambda content, arrays: arrays.update(hash=arrays["hash"][1:]), "the hashes have"),
        (lambda content, arrays: arrays.update(id=arrays["id"].astype(float)), "column id"),
    ],
)
def test_malicious_segments(build, change, message):
    """Files with right checksums and wrong content are refused by their content."""
    index = build()
    rewrite(index.path / index.snapshot.segments[0].file, change)
    with pytest.raises(FileFormatError, match=message):
        SubwindowIndex(index.path)


@pytest.mark.parametrize("n_removed", [0, 1])
def test_postings_of_unknown_images(build, images, n_removed):
    """They are noticed when they are read."""
    index = build()
    for row in [*index.rows()][:n_removed]:
        index.remove([row.id])
    rewrite(index.path / index.snapshot.segments[0].file, set_entry("image", slice(None), 10**6))
    opened = SubwindowIndex(index.path)
    with pytest.raises(ValueError, match="a posting is of no image"):
        opened.search(images[0])
    opened.add(images[:1], names=["another"])
    with pytest.raises(FileFormatError, match=r"malformed: a posting is of no image\. Restore"):
        opened.compact()


def test_postings_of_unknown_leaves(build, images):
    """Merging names the file, and leaves the index as it was."""
    index = build()
    file = index.snapshot.segments[0].file
    rewrite(index.path / file, set_entry("low", slice(None), 2**16 - 1))
    opened = SubwindowIndex(index.path)
    opened.add(images[:1], names=["another"])
    with pytest.raises(FileFormatError, match=rf"{file} is malformed: a posting is of no leaf"):
        opened.compact()
    assert len(opened) == len(index) + 1


def test_malicious_vocabulary(vocabulary, tmp_path):
    """Nodes that would lead out of the trees are refused, as are unknown parameters."""
    path = tmp_path / "words.okf"
    vocabulary.save(path)
    _, content, (nodes, offsets) = read(path, mapped=False, verify=True)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        wrong = nodes.copy()
        wrong[rng.integers(len(nodes)), 1] = rng.integers(0, 2**32)
        with open(path, "wb") as file:
            write(file, content, [wrong, offsets])
        with pytest.raises(FileFormatError, match="the nodes are not trees on these subwindows"):
            Vocabulary.load(path)
    for wrong in (
        {"size": 10**6},
        {"size": -1},
        {"color": "auto"},
        {"n_segments": "many"},
        {"n_segments": 10**12},
        {"n_segments": 10**7},
        {"rotate": 1e308},
        {"rotate": "x"},
        {"mirror": None},
    ):
        with open(path, "wb") as file:
            settings = content["segmenter"] | wrong
            write(file, content | {"segmenter": settings}, [nodes, offsets])
        with pytest.raises(FileFormatError, match=r"words.okf cannot be read"):
            Vocabulary.load(path)


def test_files_outside_the_folder(build):
    """A manifest cannot name files elsewhere."""
    index = build()
    path = index.path / "manifest.okf"
    _, content, _ = read(path, mapped=False, verify=True)
    with open(path, "wb") as file:
        write(file, content | {"segments": ["../other/segment.okf"]}, [])
    with pytest.raises(FileFormatError, match="a file is outside the folder of the index"):
        SubwindowIndex(index.path)


def test_missing_segment(build):
    """A segment that is gone is named."""
    index = build()
    name = index.snapshot.segments[0].file
    (index.path / name).unlink()
    with pytest.raises(FileFormatError, match=rf"{name}, a file of the index, is missing"):
        SubwindowIndex(index.path)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("manifest.okf", {"removed": "../removed.okf"}, "a file is outside the folder"),
        ("manifest.okf", {"version": 2}, "version 2 is unknown; upgrade okforest"),
        ("manifest.okf", {"next_id": -1}, "a number is not an integer from 0"),
        ("manifest.okf", {"root": 3}, "a name is not text"),
        ("vocabulary.okf", {"version": 2}, "version 2 is unknown; upgrade okforest"),
        ("vocabulary.okf", {"seed": 2**63}, "its parameters are unknown"),
    ],
)
def test_malicious_headers(build, file, change, message):
    """Headers with right checksums and wrong content are refused."""
    index = build()
    _, content, arrays = read(index.path / file, mapped=False, verify=True)
    with open(index.path / file, "wb") as out:
        write(out, content | change, list(arrays))
    with pytest.raises(FileFormatError, match=message):
        SubwindowIndex(index.path)


@pytest.mark.parametrize("file", ["segment", "vocabulary"])
def test_files_that_are_cut_off_while_they_are_open(build, file):
    """Refresh notices it, before a search would read beyond the end."""
    index = build()
    path = next(index.path.glob(f"{file}*.okf"))
    assert not index.refresh()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(FileFormatError, match=rf"{path.name} was cut off while it was in use"):
        index.refresh()
    path.unlink()  # those who have mapped a deleted file keep it
    assert not index.refresh()
