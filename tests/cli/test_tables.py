"""Tabular files: damaged ones are reported by name, and written cells are not formulas."""

import bz2
import csv
import gzip
import io
import lzma
import zipfile

import pandas as pd
import pytest

from okforest.cli.tables import read_table, write_csv

TEXT = b"name,a,b\n" + b"".join(b"v%d,%d,%d\n" % (i, i * 7919 % 1000, i) for i in range(2000))


def zipped(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return buffer.getvalue()


WHOLE = {
    "table.csv.gz": gzip.compress(TEXT),
    "table.csv.bz2": bz2.compress(TEXT),
    "table.csv.xz": lzma.compress(TEXT),
    "table.csv.zip": zipped("table.csv"),
    "table.zip": zipped("table.csv"),
}


def flip(data):
    """Return bytes with one in the middle inverted."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.parametrize("name", WHOLE)
def test_compressed_files(tmp_path, name):
    (tmp_path / name).write_bytes(WHOLE[name])
    assert read_table(tmp_path / name).shape == (2000, 3)


@pytest.mark.parametrize("damage", [flip, lambda data: data[: len(data) // 2], lambda data: b"PK"])
@pytest.mark.parametrize("name", WHOLE)
def test_damaged_files(tmp_path, name, damage):
    (tmp_path / name).write_bytes(damage(WHOLE[name]))
    with pytest.raises(ValueError, match=rf"{name} is damaged or incomplete \(.*\); download"):
        read_table(tmp_path / name)


def test_damaged_parquet(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"name": ["a", "b"], "x": [1, 2]}).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"table\.parquet cannot be read as a table: .*Parquet"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty"),
        ("empty.csv.gz", gzip.compress(b""), "is empty"),
        ("utf16.csv", TEXT.decode().encode("utf-16"), "cannot be read as a table: 'utf-8'"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read as a table: .*line 3, saw 4"),
        ("two.csv.zip", zipped("a.csv", "b.csv"), "cannot be read as a table: Multiple files"),
        ("none.csv.zip", zipped(), "cannot be read as a table: Zero files"),
        ("archive.tar.gz", gzip.compress(TEXT), "is damaged or incomplete"),
    ],
    ids=["empty", "empty gz", "utf-16", "ragged", "two files", "no files", "not a tar"],
)
def test_other_contents(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} {message}"):
        read_table(tmp_path / name)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ValueError, match=r"the file .*no\.csv does not exist"):
        read_table(tmp_path / "no.csv")
    with pytest.raises(ValueError, match="is a folder; pass a file"):
        read_table(tmp_path)


def test_formulas_are_neutralized(tmp_path):
    """Text that a spreadsheet would execute gets an apostrophe; numbers do not."""
    names = ["=1+1", "+cmd", "-x", "@a", "\tb", "\rc", "-5", "+1.5e-3", "-", "a=b", "'", ""]
    scores = [-0.5 - i for i in range(len(names))]
    table = pd.DataFrame({"source": names, "score": scores})
    table["kind"] = pd.Categorical(["=a"] * len(names))
    write_csv(table, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["source", "score", "kind"]
    expected = ["'=1+1", "'+cmd", "'-x", "'@a", "'\tb", "'\rc", "-5", "+1.5e-3", "'-", *names[9:]]
    assert [row[0] for row in rows] == expected
    assert [float(row[1]) for row in rows] == scores
    assert {row[2] for row in rows} == {"'=a"}
    assert table["source"].tolist() == names  # the table itself is not modified
