"""Damaged files are refused, by name, with the cause and what to do."""

import gzip

import numpy as np
import pytest

from okforest import datasets

GOOD = gzip.compress(b"moisture,fat,protein,a\n1,2,3,4\n" * 50)
HEADER = "@attribute a numeric\n@attribute class hierarchical 01,01/02\n@data\n"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (GOOD[:-20], "EOFError"),
        (b"<html>not here</html>", "BadGzipFile"),
        (gzip.compress(b""), "empty"),
        (gzip.compress(b"moisture,fat,protein,a\n"), "no rows"),
        (gzip.compress(b"moisture,fat,protein,a\n1,2,3,4\n1,2\n"), "inhomogeneous"),
        (gzip.compress(b"moisture,fat,protein,a\n1,2,3,\xff\n"), "UnicodeDecodeError"),
    ],
    ids=["half", "page", "empty", "no rows", "short row", "no text"],  # contents hold the time
)
def test_tables(folder, content, cause):
    path = folder / "tecator/tecator.csv.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=cause) as caught:
        datasets.fetch_tecator()
    assert str(caught.value).startswith(f"Tecator cannot be read; the last file was {path}: ")
    assert "get it again from its source (StatLib" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_arrays(folder, write):
    """Not an archive, a truncated one, and one that lacks an array."""
    write("orl_faces/orl_faces.npz", images=np.zeros((3, 112, 92)), subject=np.ones(3))
    path = folder / "orl_faces/orl_faces.npz"
    whole = path.read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"text", whole):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"ORL .* the last file was {path}: "):
            datasets.fetch_orl_faces()


def test_a_part_without_rows(folder, write):
    """Of several files, the one that is empty is named."""
    write("hmc/derisi_FUN.train.arff.gz", HEADER + "1,01\n")
    write("hmc/derisi_FUN.valid.arff.gz", HEADER)
    with pytest.raises(ValueError, match=r"derisi_FUN.valid.arff.gz: .*no rows after the line"):
        datasets.fetch_hierarchical("derisi")


def test_other_files_without_rows(write):
    write("ucr/P_TRAIN.ts", "@data\n")
    with pytest.raises(ValueError, match=r"P_TRAIN.ts: .*no series"):
        datasets.fetch_ucr("P")
    write("usps/zip.train.gz", "")
    with (
        pytest.warns(UserWarning, match="not the published file"),
        pytest.raises(ValueError, match=r"zip.train.gz: .*empty"),
    ):
        datasets.fetch_usps()


def test_wrong_arguments_are_no_damage(folder):
    with pytest.raises(ValueError, match=r"^name='seq' is not known"):
        datasets.fetch_hierarchical("seq")


def test_files_are_told(folder, write):
    write("tecator/tecator.csv.gz", "moisture,fat,protein,a\n1,2,3,4\n")
    assert datasets.fetch_tecator().files == [folder / "tecator/tecator.csv.gz"]
