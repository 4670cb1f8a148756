"""Readers of files in known layouts, with names of their own."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from okforest import OKTree
from okforest.datasets import (
    load_hierarchical,
    load_label_ranking,
    load_multilabel,
    load_ucr,
    read_hierarchical_arff,
    read_label_ranking,
    read_multilabel_arff,
    read_ucr,
)
from okforest.kernels import Hierarchy

ATTRIBUTES = "@attribute a numeric\n@attribute b numeric\n@attribute x {0,1}\n@attribute y {0,1}\n"
ROWS = "@data\n0.5,1,1,0\n?,2,0,1\n"


def write(folder, name, text):
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("labels", [-2, ["x", "y"], "xml", None])
def test_multilabel(tmp_path, labels):
    """Labels by number, by name, by MULAN's file, and by MEKA's option."""
    option = ": -C -2" if labels is None else ""
    path = write(tmp_path, "own.arff.gz", f"@relation 'own{option}'\n{ATTRIBUTES}{ROWS}")
    if labels == "xml":
        names = '<labels><label name="x"></label><label name="y"/></labels>'
        labels = write(tmp_path, "own.xml", names)
    data = read_multilabel_arff(path, labels)
    assert data.target.tolist() == [[1, 0], [0, 1]]
    assert data.target_names == ["x", "y"]
    assert data.feature_names == ["a", "b"]
    np.testing.assert_array_equal(data.data, [[0.5, 1], [np.nan, 2]])


def test_sparse_rows_and_labels_first(tmp_path):
    """Sparse rows give a sparse matrix; a positive number counts from the first attribute."""
    text = "@relation r\n@attribute x {0,1}\n@attribute a numeric\n@data\n{0 1}\n{1 2.5}\n"
    data = read_multilabel_arff(write(tmp_path, "s.arff", text), 1)
    assert sp.issparse(data.data)
    assert data.target.tolist() == [[1], [0]]
    assert data.data.toarray().tolist() == [[0.0], [2.5]]


def test_labels_as_words(tmp_path):
    """True and yes are 1, in any order; other words are refused."""
    header = "@relation r\n@attribute a {true,false}\n@attribute b {YES,NO}\n@attribute c {n,y}\n"
    text = header + "@attribute d {1,0}\n@attribute f numeric\n@data\n"
    dense = read_multilabel_arff(
        write(tmp_path, "d.arff", text + "true,NO,y,1,1\nfalse,YES,n,0,2\n"), 4
    )
    assert dense.target.tolist() == [[1, 0, 1, 1], [0, 1, 0, 0]]
    sparse = header + "@attribute f numeric\n@data\n{}\n{0 false,1 NO,2 y,3 1}\n"
    sparse = read_multilabel_arff(write(tmp_path, "s.arff", sparse), 3)
    assert sparse.target.tolist() == [[1, 1, 0], [0, 0, 1]]  # the first value is left out
    with pytest.raises(ValueError, match=r"'d' is of type \{1,0\}, and sparse rows leave"):
        read_multilabel_arff(write(tmp_path, "s.arff", text + "{4 1}\n"), 4)
    words = "@relation r\n@attribute a {low,high}\n@attribute f numeric\n@data\nlow,1\n"
    with pytest.raises(ValueError, match="the label 'a' has the values low, high"):
        read_multilabel_arff(write(tmp_path, "w.arff", words), 1)


def test_quotes_entities_and_encodings(tmp_path):
    """Names as MULAN and Weka write them, and files in Latin-1."""
    path = tmp_path / "music.arff"
    path.write_bytes(
        "@relation r\n@attribute 'rock\\'n roll' {0,1}\n@attribute \"R&B\" {0,1}\n"
        "@attribute fête {'a, b',\"c, d\"}\n@data\n0,1,\"c, d\"\n1,0,'a, b'\n".encode("latin-1")
    )
    names = '<labels><label name="rock\'n roll"/><label name="R&amp;B"/></labels>'
    data = read_multilabel_arff(path, write(tmp_path, "music.xml", names))
    assert data.target_names == ["rock'n roll", "R&B"]
    assert data.feature_names == ["fête"]
    assert data.target.tolist() == [[0, 1], [1, 0]]
    assert data.data.tolist() == [[1.0], [0.0]]


def test_hierarchical_graph(tmp_path):
    """Arcs of a directed acyclic graph, as in files of the Gene Ontology."""
    text = (
        "@relation r\n@attribute a numeric\n@attribute class hierarchical "
        "root/GO1,root/GO2,GO1/GO3,GO2/GO3,GO3/GO4\n@data\n0.5,GO3 % 7\n1,GO1@GO4\n2,GO2\n"
    )
    data = read_hierarchical_arff(write(tmp_path, "go.arff", text))
    assert data.target_names == ["GO1", "GO2", "GO3", "GO4"]
    assert data.parents == {"GO1": [], "GO2": [], "GO3": ["GO1", "GO2"], "GO4": ["GO3"]}
    assert data.target.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]]
    model = OKTree(kernel=Hierarchy(data.parents)).fit(data.data, data.target)
    assert model.predict(data.data).tolist() == data.target.tolist()
    named = OKTree(kernel=Hierarchy(data.parents)).fit(data.data, data.labels.tolist())
    assert named.predict(data.data).tolist() == ["GO3", "GO4", "GO2"]


def test_hierarchical(tmp_path):
    """Several files share their classes; rows remember their file."""
    header = "@relation r\n@attribute a numeric\n@attribute class hierarchical 1,1/2,3\n@data\n"
    paths = [
        write(tmp_path, name, header + rows)
        for name, rows in {"train.arff": "1,1/2\n", "test.arff.gz": "?,3@1\n"}.items()
    ]
    data = read_hierarchical_arff(*paths)
    assert data.target.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert data.parents.tolist() == [-1, 0, -1]
    assert data.file.tolist() == [0, 1]
    assert data.labels.tolist() == ["1/2", "3@1"]


def test_rankings(tmp_path):
    """Complete rankings are integers; partial and tied ones have NaN and mean ranks."""
    data = read_label_ranking(
        write(tmp_path, "r.csv", "a,b,ranking\n1,2,L2>L10>L1\n3,4,L1>L2>L10\n")
    )
    assert data.target_names == ["L1", "L2", "L10"]
    assert data.target.tolist() == [[3, 1, 2], [1, 2, 3]]
    assert data.feature_names == ["a", "b"]
    data = read_label_ranking(write(tmp_path, "p.csv", "1,a>b=c\n2,c>a\n"))
    np.testing.assert_array_equal(data.target, [[1, 2.5, 2.5], [2, np.nan, 1]])
    data = read_label_ranking(write(tmp_path, "one.csv", "0.1,a\n?,b>a\n"))  # not a header
    np.testing.assert_array_equal(data.target, [[1, np.nan], [2, 1]])
    np.testing.assert_array_equal(data.data, [[0.1], [np.nan]])


def test_series(tmp_path):
    """Both layouts of the archive."""
    values = read_ucr(write(tmp_path, "s.txt", "1 0.5 0.25\n2 1 ?\n".replace("?", "3")))
    assert values.target.tolist() == ["1", "2"]
    assert values.data.tolist() == [[0.5, 0.25], [1.0, 3.0]]


ERRORS = {
    "missing": (lambda f: read_ucr(f / "no.ts"), FileNotFoundError, "there is no file"),
    "no labels": (
        lambda f: read_multilabel_arff(write(f, "n.arff", f"@relation r\n{ATTRIBUTES}{ROWS}")),
        ValueError,
        "does not say which attributes are labels",
    ),
    "too many labels": (
        lambda f: read_multilabel_arff(write(f, "n.arff", f"@relation r\n{ATTRIBUTES}{ROWS}"), 9),
        ValueError,
        "has 4 attributes",
    ),
    "unknown label": (
        lambda f: read_multilabel_arff(
            write(f, "n.arff", f"@relation r\n{ATTRIBUTES}{ROWS}"), ["z"]
        ),
        ValueError,
        "no attribute 'z'",
    ),
    "values": (
        lambda f: read_multilabel_arff(write(f, "n.arff", f"@relation r\n{ATTRIBUTES}{ROWS}"), 2),
        ValueError,
        "other than 0 and 1",
    ),
    "not hierarchical": (
        lambda f: read_hierarchical_arff(write(f, "n.arff", f"@relation r\n{ATTRIBUTES}{ROWS}")),
        ValueError,
        "must be hierarchical",
    ),
    "no files": (lambda f: read_hierarchical_arff(), ValueError, "at least one file"),
    "empty": (lambda f: read_label_ranking(write(f, "e.csv", "")), ValueError, "empty"),
    "unknown class": (
        lambda f: read_hierarchical_arff(
            write(f, "g.arff", "@relation r\n@attribute c hierarchical 1,1/2\n@data\n3\n")
        ),
        ValueError,
        "class '3', which is not in the hierarchy",
    ),
    "unknown value": (
        lambda f: read_multilabel_arff(
            write(f, "n.arff", f"@relation r\n{ATTRIBUTES}@data\n1,2,0,maybe\n"), -2
        ),
        ValueError,
        "row 1 of the ARFF file has the value 'maybe' of 'y', which is of type {0,1}",
    ),
    "a category": (
        lambda f: read_label_ranking(write(f, "e.csv", "1,a>b\nred,b>a\n")),
        ValueError,
        "row 2 has the attribute 'red'",
    ),
    "repeated": (
        lambda f: read_label_ranking(write(f, "e.csv", "1,a>a\n")),
        ValueError,
        "more than once",
    ),
}


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(tmp_path, call, kind, message):
    """Errors name what is wrong with the file."""
    with pytest.raises(kind, match=message):
        call(tmp_path)


def test_published_files(data_folder):
    """Readers and loaders read the same from published files."""
    folder = data_folder / "multilabel"
    for read, fetched in (
        (read_multilabel_arff(folder / "yeast.arff.gz"), load_multilabel("yeast")),
        (read_multilabel_arff(folder / "emotions.arff.gz", -6), load_multilabel("emotions")),
        (
            read_label_ranking(data_folder / "label_ranking" / "iris.csv.gz"),
            load_label_ranking("iris"),
        ),
    ):
        np.testing.assert_array_equal(read.data, fetched.data)
        np.testing.assert_array_equal(read.target, fetched.target)
        assert read.target_names == fetched.target_names
    files = [data_folder / "hmc" / f"derisi_FUN.{s}.arff.gz" for s in ("train", "valid", "test")]
    read, fetched = read_hierarchical_arff(*files), load_hierarchical("derisi")
    np.testing.assert_array_equal(read.target, fetched.target)
    series = read_ucr(data_folder / "ucr" / "GunPoint_TRAIN.ts.gz")
    np.testing.assert_array_equal(series.data, load_ucr("GunPoint").data[:50])
