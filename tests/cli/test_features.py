"""Files of features: names, headers, several files, and mistakes."""

import numpy as np
import pandas as pd
import pytest

from okforest.cli.tables import (
    drop_empty_columns,
    group_columns,
    match_columns,
    read_features,
)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write_file(text, name="f.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_file


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name,x,y\n007,1,2\nNA,,4\n", "f.csv"),
        (",x,y\n007,1,2\nNA,,4\n", "f.csv"),
        ("x,y\n007,1,2\nNA,,4\n", "f.csv"),
        ('"x","y"\n"007",1,2\n"NA",NA,4\n', "f.csv"),
        ("x\ty\n007\t1\t2\nNA\tNA\t4\n", "f.txt"),
        ("\n\nx,y\n007,1,2\nNA,,4\n", "f.csv"),
        ("\ufeffname,x,y\n007,1,2\nNA,,4\n", "f.csv"),
    ],
    ids=["header", "empty cell", "R", "R, quotes", "R, tabs", "blank lines", "byte order mark"],
)
def test_headers(write, text, name):
    """The header may lack a cell above the names, as R writes it; names are text."""
    features = read_features([write(text, name)])
    assert features.index.tolist() == ["007", "NA"]
    assert features.columns.tolist() == ["x", "y"]
    np.testing.assert_array_equal(features, [[1, 2], [np.nan, 4]])


def test_row_names_beside_awkward_columns(write):
    """Columns called name or index are features like any other."""
    features = read_features([write("name,index\nv1,1,2\nv2,3,4\n")])
    assert features.columns.tolist() == ["name", "index"]
    assert features.loc["v2"].tolist() == [3, 4]
    assert read_features([write("x\nv1,1\nv2,3\n")]).loc["v2"].tolist() == [3]


def test_parquet(tmp_path):
    """Names are the index, or else the first column."""
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"])
    frame.to_parquet(tmp_path / "index.parquet")
    frame.reset_index().to_parquet(tmp_path / "column.parquet")
    frame.set_axis([7, 8]).to_parquet(tmp_path / "numbers.parquet")
    for name, expected in (("index", "ab"), ("column", "ab"), ("numbers", "78")):
        features = read_features([tmp_path / f"{name}.parquet"])
        assert features.index.tolist() == list(expected)
        assert features["x"].tolist() == [1.0, 2.0]


def test_several_files(write):
    """Rows are matched by name, in the order of the first file."""
    first = write("name,x\na,1\nb,2\nc,3\n", "1.csv")
    second = write("y\tz\nc\t6\tred\na\t4\tblue\nb\t\tred\n", "2.tsv")
    third = write("name,w\nb,8\nc,9\na,7\n", "3.csv")
    features = read_features([first, second, third])
    assert features.index.tolist() == ["a", "b", "c"]
    assert features.columns.tolist() == ["x", "y", "z", "w"]
    assert features["z"].tolist() == ["blue", "red", "red"]
    np.testing.assert_array_equal(features["y"], [4, np.nan, 6])
    assert features["w"].tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("name,y\na,1\n", r"names of .*1\.csv are missing in .*2\.csv \(1\): 'b'\. Give every"),
        ("name,y\na,1\nb,2\nc,3\n", r"names of .*2\.csv are missing in .*1\.csv \(1\): 'c'\. Give"),
        (
            "name,x\na,1\nb,2\n",
            r"columns of .*2\.csv are also in .*1\.csv \(1\): 'x'\. Rename or r",
        ),
        ("name,y\na,1\nb,2\nb,3\n", r"2\.csv has duplicate names \(1\): 'b'\. Keep one row"),
        ("name,y,y\na,1,2\nb,2,3\n", r"2\.csv has duplicate columns \(1\): 'y'\. Rename or remove"),
    ],
)
def test_files_that_cannot_be_joined(write, second, message):
    first = write("name,x\na,1\nb,2\n", "1.csv")
    with pytest.raises(ValueError, match=message):
        read_features([first, write(second, "2.csv")])


def test_columns_of_all_earlier_files_are_compared(write):
    paths = [write(f"name,{column}\na,1\n", f"{column}.csv") for column in "xy"]
    again = write("name,y\na,1\n", "again.csv")
    with pytest.raises(
        ValueError, match=r"of .*again\.csv are also in .*x\.csv or .*y\.csv .*: 'y'"
    ):
        read_features([*paths, again])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\na\nb\n", "has a single column; it must have names in the first column"),
        ("name;x\na;1\n", "has a single column; .* separated by commas"),
        ("name,x\na,1\n,2\n", r"has no name in row 2; every row needs a name"),
        ("x\n,1\nb,2\n", r"has no name in row 1; every row needs a name"),
        ("x\na,1,2\nb,3,4\n", r"the rows of .*f\.csv have 2 more cells than its header"),
        ("name,x\na,1,\nb,2,\n", "end with a separator, and its header does not; remove"),
        ("x,x\na,1,2\n", r"has duplicate columns \(1\): 'x'"),
    ],
)
def test_mistakes(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_features([write(text)])


def test_text_among_numbers(write):
    """Text in a column of numbers is a mistake; a column of text has categories."""
    lines = [f"v{i},{i},{'7' if i % 2 else 'red'}\n" for i in range(20)]
    assert read_features([write("name,x,c\n" + "".join(lines))])["c"].tolist()[:2] == ["red", "7"]
    lines[4] = "v4,n.d.,red\n"
    with pytest.raises(ValueError, match=r"'n\.d\.' in column 'x', row 5 \('v4'\), where 19 of 19"):
        read_features([write("name,x,c\n" + "".join(lines))])


def test_empty_columns(capsys):
    """Columns without values are left out, and named."""
    frame = pd.DataFrame({"x": [1.0, 2.0], "[b]": [np.nan, np.nan]})
    assert drop_empty_columns(frame).columns.tolist() == ["x"]
    assert capsys.readouterr().err == "left out columns without values (1): '[b]'\n"
    with pytest.raises(ValueError, match="the features have no values; fill in at least one"):
        drop_empty_columns(frame[["[b]"]])


def test_columns_of_new_vertices():
    known = pd.DataFrame({"x": [1.0], "y": [2.0]}, index=["a"])
    new = pd.DataFrame({"y": [3.0], "z": [5.0], "x": [np.nan]}, index=["b"])
    assert match_columns(new, known).columns.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"lack columns of the known ones \(1\): 'x'\. Add them"):
        match_columns(new.drop(columns="x"), known)
    with pytest.raises(ValueError, match=r"vertices are both new and known \(1\): 'a'\. Remove"):
        match_columns(new.set_axis(["a"]), known)


def test_groups_of_columns():
    assert group_columns(["a: x", "b", "a:y"], ":") == {"a": ["a: x", "a:y"], "other": ["b"]}
    with pytest.raises(ValueError, match="columns such as 'all: x' form a group named 'all'"):
        group_columns(["a: x", "all: x"], ":")
