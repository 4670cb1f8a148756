"""The ARFF reader: attribute types, quotes, missing values, sparse rows."""

import io

import numpy as np
import pytest
from scipy.io import arff as scipy_arff

from okforest.datasets.arff import read_arff

DENSE = """% a comment
@RELATION 'a b'
@attribute plain numeric
@ATTRIBUTE 'with space' real
@attribute "double" INTEGER
@attribute colour {red, 'dark blue',green}
@attribute flag{0,1}
@data
1, 2.5, 3, red, 0

% another
-1e3,?,4,'dark blue',1
0,0,0,?,?
"""


def test_dense():
    """Nominal values become their positions, unless all of them are numbers."""
    read = read_arff(io.StringIO(DENSE))
    assert read.names == ["plain", "with space", "double", "colour", "flag"]
    assert read.types[3] == "{red, 'dark blue',green}"
    expected = [[1, 2.5, 3, 0, 0], [-1e3, np.nan, 4, 1, 1], [0, 0, 0, np.nan, np.nan]]
    np.testing.assert_array_equal(read.values, expected)
    assert read.texts == {}


def test_as_scipy_reads():
    """The result equals SciPy's on files that SciPy can read."""
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(map(str, row)) for row in rng.normal(size=(20, 3)))
    text = (
        f"@relation r\n@attribute a numeric\n@attribute b real\n@attribute c numeric\n@data\n{rows}"
    )
    theirs = scipy_arff.loadarff(io.StringIO(text))[0]
    np.testing.assert_array_equal(read_arff(io.StringIO(text)).values, theirs.tolist())


def test_sparse():
    """Sparse rows list positions and values; an empty row is all zeros."""
    text = "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute c {x,y}\n@data\n"
    read = read_arff(io.StringIO(text + "{0 2.5, 2 y}\n{}\n{1 1,2 x}\n{0 ?}\n"))
    expected = [[2.5, 0, 1], [0, 0, 0], [0, 1, 0], [np.nan, 0, 0]]
    np.testing.assert_array_equal(read.values.toarray(), expected)


def test_hierarchical():
    """Hierarchical classes are text."""
    text = "@RELATION r\n@ATTRIBUTE a   numeric\n@ATTRIBUTE class  hierarchical 1,1/1,2\n@DATA\n"
    read = read_arff(io.StringIO(text + "?,1/1@2\n3,1\n"))
    assert read.types[1] == "hierarchical 1,1/1,2"
    assert read.texts == {"class": ["1/1@2", "1"]}
    np.testing.assert_array_equal(read.values[:, 0], [np.nan, 3])


def test_errors():
    """Rows of the wrong length and files without data raise an error."""
    with pytest.raises(ValueError, match="row 2 of the ARFF file has 1 values for 2 attributes"):
        read_arff(["@attribute a numeric", "@attribute b numeric", "@data", "1,2", "3"])
    with pytest.raises(ValueError, match="no @data line"):
        read_arff(["@attribute a numeric"])
