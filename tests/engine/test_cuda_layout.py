"""Records of the kernels: their declarations are read from the sources."""

import re

import numpy as np
import pytest

from okforest.engine.cuda.layout import ARRAYS, FOLDER, STRUCTS, record_of


@pytest.mark.parametrize("struct", STRUCTS)
def test_records_have_no_padding(struct):
    """C++ aligns fields to their size, and a record to its largest field."""
    record = record_of(struct)
    for name in record.names:
        field, offset = record.fields[name][:2]
        assert offset % min(field.itemsize, 8) == 0
    assert record.itemsize % 8 == 0


def test_fields_of_a_plan():
    """Pointers, arrays of pointers, integers and floats, several in one declaration."""
    plan = record_of("Plan")
    names = list(plan.names)
    assert names[:9] == [
        *("X", "phi", "weighted", "squares", "weight", "count", "first", "rows_0", "rows_1")
    ]
    assert names[-6:] == [
        *("min_split", "min_both", "min_leaf", "min_gain", "weight_unit", "variance_unit")
    ]
    assert plan["missing_left"] == np.uint64
    assert plan["stop_when_pure"] == np.int64
    assert plan["weight_unit"] == np.float64


def test_structs_within_structs():
    assert record_of("Walk")["forest"] == record_of("ForestArrays")
    assert record_of("Item").names == ("begin", "end", "tree", "depth", "parent", "padding", "seed")
    assert record_of("Item")["begin"] == np.int32


def test_arrays_of_nodes_are_those_of_the_kernels():
    assert record_of("Arrays").names == tuple(ARRAYS)


def test_every_record_that_kernels_take_is_known():
    """A struct that is passed by value, as RECORD(name), is in the table with its file."""
    taken = {
        (name, path.name)
        for path in FOLDER.glob("*.cu*")
        for name in re.findall(r"RECORD\((\w+)\)", path.read_text(encoding="utf-8"))
        if name != "type"
    }
    assert {name for name, _ in taken} <= set(STRUCTS)
    for name, source in STRUCTS.items():
        assert f"struct {name} {{" in (FOLDER / source).read_text(encoding="utf-8")
