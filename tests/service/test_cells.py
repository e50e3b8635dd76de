"""JSON that says each thing once, and what is wrong with other JSON."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from growth import growth
from hypothesis import given
from hypothesis import strategies as st

from fewlier.errors import UserError
from fewlier.service.cells import MAX_DEPTH, read_json, read_rows
from fewlier.service.limits import Limits, Refusal
from fewlier.table import Table

LIMITS = Limits(rows=4, columns=3, cell=5)
CELLS = st.none() | st.booleans() | st.text(max_size=5) | st.floats(-1e9, 1e9) | st.integers(-9, 9)


def read(text, limits=LIMITS):
    return read_rows(read_json(text.encode()), limits)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
def test_rows_and_columns_are_read_as_the_library_reads_the_same_cells(rows):
    document = {"rows": [{"a": a, "b": b} for a, b in rows]}
    turned = {"columns": {"a": [a for a, _ in rows], "b": [b for _, b in rows]}}
    expected = Table.of(pd.DataFrame(rows, columns=["a", "b"], dtype=object))
    for one in (document, turned):
        found = read(json.dumps(one))
        assert found.names == ("a", "b")
        for name in found.names:
            np.testing.assert_array_equal(found.cells[name], expected.cells[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "must be a JSON object; got a list"),
        ("{", "must be JSON in UTF-8"),
        ('{"rows": [{"a": NaN}]}', "JSON has no NaN"),
        ('{"rows": [{"a": -Infinity}]}', "JSON has no -Infinity"),
        ('{"rows": [{"a": 1, "a": 2}]}', "got 'a' twice"),
        ('{"rows": [], "columns": {}}', "either 'rows'.* or 'columns'"),
        ('{"row": []}', "either 'rows'.* or 'columns'"),
        ('{"rows": 3}', "'rows' must be a list of objects; got a number"),
        ('{"rows": []}', "must have a column; got none"),
        ('{"columns": {"a": []}}', "must have a row; got none"),
        ('{"columns": [1]}', "'columns' must be an object of lists; got a list"),
        ('{"columns": {"a": 1}}', "Column 'a' must be a list of cells; got a number"),
        ('{"columns": {"a": [1], "b": [1, 2]}}', "got 1 cells in 'a' and 2 in 'b'"),
        ('{"rows": [{"a": 1}, 5]}', "Row 1 must be an object; got a number"),
        ('{"rows": [{"a": 1}, {}]}', "Row 1 lacks column 'a'"),
        ('{"rows": [{"a": 1}, {"a": 1, "b": 1}]}', "Row 1 adds column 'b'"),
        ('{"rows": [{"a": 1}, {"a": [1]}]}', "got a list in row 1, column 'a'"),
        ('{"rows": [{"a": 1}, {"a": {"b": 1}}]}', "got an object in row 1, column 'a'"),
        ('{"rows": [{"a": 1e999}]}', "'a' must hold finite numbers.*row 0"),
        ('{"rows": [{"a": 1' + "0" * 400 + "}]}", "'a' has an integer beyond float64"),
        ('{"rows": [{"a": 1' + "0" * 5000 + "}]}", "must be JSON"),
        ('{"rows": ' + "[" * 100_000, "at most 32 lists and objects inside each other"),
    ],
)
def test_a_malformed_document_is_refused_with_the_place(text, message):
    with pytest.raises(UserError, match=message):
        read(text)


DEEP = st.recursive(
    st.sampled_from(["", "[", "}", "]]{{", '"', "\\", '\\"', 'a\\\\"[']) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("[]{}", max_size=2), inner),
)


def depth(value):
    inner = [*value.values()] if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(inner, list) else 0


@given(DEEP, st.integers(0, MAX_DEPTH + 5))
def test_a_document_is_read_just_if_it_is_not_too_deep(value, n_more):
    for _ in range(n_more):
        value = [value]
    document = {"a": value}
    text = json.dumps(document).encode()
    if depth(document) <= MAX_DEPTH:
        assert read_json(text) == document
        return
    with pytest.raises(Refusal, match=f"at most {MAX_DEPTH} lists and objects") as refused:
        read_json(text)
    assert refused.value.status == 413


def test_a_name_that_is_given_twice_among_many_is_found_in_one_pass():
    def refuse(n):
        pairs = [f'"{number}": 1' for number in [*range(n), n - 1]]
        with pytest.raises(UserError, match="twice"):
            read_json(f"{{{', '.join(pairs)}}}".encode())

    assert growth(refuse, 1_000, 20_000) < 100  # twenty times as many; in pairs, 400 times


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(UserError, match="JSON in UTF-8"):
        read_json(b'{"rows": [{"a": "\xff"}]}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"rows": [{"a": 1}] * 5}), "at most 4 rows; got 5"),
        (json.dumps({"columns": {"a": [1] * 5}}), "at most 4 rows; got 5"),
        (json.dumps({"rows": [dict.fromkeys("abcd", 1)]}), "at most 3 columns; got 4"),
        (json.dumps({"rows": [{"a": 1}, {"a": "x" * 6}]}), "5 characters; got 6 in row 1.*'a'"),
    ],
)
def test_more_than_a_limit_allows_is_refused_with_the_limit(text, message):
    with pytest.raises(Refusal, match=message) as refused:
        read(text)
    assert refused.value.status == 413


def test_null_is_a_missing_cell_among_numbers_and_texts():
    cells = read('{"rows": [{"a": 1, "b": "x"}, {"a": null, "b": null}]}').cells
    assert cells["a"][0] == 1
    assert math.isnan(cells["a"][1])
    assert cells["b"].tolist() == ["x", None]
