"""Damaged files raise an error that names the file, the cause and the remedy."""

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
    ids=["half", "page", "empty", "no rows", "short row", "no text"],  # gzip data contain the time
)
def test_tables(folder, content, cause):
    path = folder / "tecator/tecator.csv.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=cause) as caught:
        datasets.load_tecator()
    assert str(caught.value).startswith(f"cannot read Tecator from {path}: ")
    assert "replace it by the file of the original source (StatLib" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_arrays(folder, write):
    """Files that are not archives, are truncated, or lack an array."""
    write("orl_faces/orl_faces.npz", images=np.zeros((3, 112, 92)), subject=np.ones(3))
    path = folder / "orl_faces/orl_faces.npz"
    whole = path.read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], b"text", whole):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"cannot read ORL .* from {path}: "):
            datasets.load_orl_faces()


def test_a_part_without_rows(folder, write):
    """The error names the empty file among several."""
    write("hmc/derisi_FUN.train.arff.gz", HEADER + "1,01\n")
    write("hmc/derisi_FUN.valid.arff.gz", HEADER)
    with pytest.raises(
        ValueError, match=r"derisi_FUN.valid.arff.gz: .*no rows after its @data line"
    ):
        datasets.load_hierarchical("derisi")


@pytest.mark.parametrize("position", [6, 8, 10, 20, -20, -4])
def test_zip_headers(folder, write, position):
    """Whatever the zip reader raises for a damaged header, the error names the file."""
    write("orl_faces/orl_faces.npz", images=np.zeros((1, 112, 92)), subject=[1], shot=[1])
    path = folder / "orl_faces/orl_faces.npz"
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")  # the list of files, near the end
    content[position if position < 0 else directory + position] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"cannot read ORL .* from {path}: "):
        datasets.load_orl_faces()


def test_files_that_disagree(write):
    """If the error appears after several files were read, all of them are named."""
    write("hmc/derisi_FUN.train.arff.gz", HEADER + "1,01\n")
    write("hmc/derisi_FUN.valid.arff.gz", HEADER + "1,07\n")  # a class missing in the header
    write("hmc/derisi_FUN.test.arff.gz", HEADER + "1,01\n")
    before = r"derisi_FUN.train.arff.gz, derisi_FUN.valid.arff.gz"
    with pytest.raises(ValueError, match=rf"derisi_FUN.test.arff.gz: .*'07'.*\({before}\)"):
        datasets.load_hierarchical("derisi")


def test_other_files_without_rows(write):
    write("ucr/P_TRAIN.ts", "@data\n")
    with pytest.raises(ValueError, match=r"P_TRAIN.ts: .*no series"):
        datasets.load_ucr("P")
    write("usps/zip.train.gz", "")
    with (
        pytest.warns(UserWarning, match="differs from the published file"),
        pytest.raises(ValueError, match=r"zip.train.gz: .*empty"),
    ):
        datasets.fetch_usps()


def test_wrong_arguments_do_not_name_a_file(folder):
    with pytest.raises(ValueError, match=r"^name='seq' is unknown"):
        datasets.load_hierarchical("seq")


def test_files_are_listed(folder, write):
    write("tecator/tecator.csv.gz", "moisture,fat,protein,a\n1,2,3,4\n")
    assert datasets.load_tecator().files == [folder / "tecator/tecator.csv.gz"]
