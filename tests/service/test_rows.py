"""JSON that says each thing once, and what is wrong with other JSON."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from growth import growth
from hypothesis import given
from hypothesis import strategies as st

from fewlier.errors import UserError
from fewlier.service.limits import Limits, Refusal
from fewlier.service.rows import parse, read_json
from fewlier.table import Table

LIMITS = Limits(rows=4)
CELLS = st.none() | st.booleans() | st.text(max_size=5) | st.floats(-1e9, 1e9) | st.integers(-9, 9)


def schema(*names):
    """Return what stands for the columns of a model; any others are fine, too."""
    return SimpleNamespace(sources=names, given=names, check_names=lambda _: None)


def read(text, limits=LIMITS, names=("a", "b"), asked=()):
    return read_json(text.encode(), limits, schema(*names), asked)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4))
def test_rows_and_columns_are_read_as_the_library_reads_the_same_cells(rows):
    document = {"rows": [{"a": a, "b": b} for a, b in rows]}
    turned = {"columns": {"a": [a for a, _ in rows], "b": [b for _, b in rows]}}
    expected = Table.of(pd.DataFrame(rows, columns=["a", "b"], dtype=object))
    for one in (document, turned):
        found, _ = read(json.dumps(one))
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
        ("{}", "either 'rows'.* or 'columns'"),
        ('{"rows": 3}', "'rows' must be a list of objects; got a number"),
        ('{"columns": [1]}', "'columns' must be an object of lists; got a list"),
        ('{"columns": null}', "'columns' must be an object of lists; got null"),
        ('{"columns": {"a": 1}}', "Column 'a' must be a list of cells; got a number"),
        ('{"columns": {"a": [1], "b": [1, 2]}}', "got 1 cells .* and 2 in 'b'"),
        ('{"columns": {"a": [], "b": [1]}}', "got 0 cells .* and 1 in 'b'"),
        ('{"rows": [{"a": 1}, 5]}', "Row 1 must be an object; got a number"),
        ('{"rows": [{"a": 1}, {}]}', "Row 1 lacks column 'a'"),
        ('{"rows": [{"a": 1}, {"a": 1, "b": 1}]}', "Row 1 adds column 'b'"),
        ('{"rows": [{"a": 1}, {"a": [1]}]}', "got a list in row 1, column 'a'"),
        ('{"rows": [{"a": 1}, {"a": {"b": 1}}]}', "got an object in row 1, column 'a'"),
        ('{"rows": [{"a": 1e999}]}', "'a' must hold finite numbers.*row 0"),
        ('{"rows": [{"a": 1' + "0" * 400 + "}]}", "'a' has an integer beyond float64"),
        ('{"rows": [{"a": 1' + "0" * 5000 + "}]}", "must be JSON"),
        ('{"rows": ' + "[" * 100_000, "must be JSON"),
    ],
)
def test_a_malformed_document_is_refused_with_the_place(text, message):
    with pytest.raises(UserError, match=message):
        read(text)


@pytest.mark.parametrize("text", ['{"rows": []}', '{"columns": {"a": [], "b": []}}'])
def test_no_rows_are_a_table_without_rows(text):
    table, _ = read(text)
    assert (table.names, table.n_rows) == (("a", "b"), 0)


@given(st.text() | st.lists(st.text('",\\ab')))
def test_commas_within_texts_are_not_counted_as_values(value):
    text = json.dumps({"rows": value}).encode()
    n = len(value) if isinstance(value, list) else 1
    assert parse(text, n) == {"rows": value}


@pytest.mark.parametrize(
    "text", ["[" + "{}," * 50, "[" + "0," * 50, '{"a":' + '["\\",",' * 50, '{"\\\\":0,' * 50]
)
def test_a_document_of_far_too_many_values_is_refused_before_it_is_parsed(text):
    with pytest.raises(Refusal, match="at most 8 cells") as refused:
        parse(text.encode(), 8)
    assert refused.value.status == 413


def test_a_name_that_is_given_twice_among_many_is_found_in_one_pass():
    def refuse(n):
        pairs = [f'"{number}": 1' for number in [*range(n), n - 1]]
        with pytest.raises(UserError, match="twice"):
            parse(f"{{{', '.join(pairs)}}}".encode(), n)

    assert growth(refuse, 1_000, 20_000) < 100  # twenty times as many; in pairs, 400 times


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(UserError, match="JSON in UTF-8"):
        parse(b'{"rows": [{"a": "\xff"}]}', 9)


@pytest.mark.parametrize("document", [{"rows": [{"a": 1}] * 5}, {"columns": {"a": [1] * 5}}])
def test_more_rows_than_the_limit_allows_are_refused_with_the_limit(document):
    with pytest.raises(Refusal, match="at most 4 rows; got 5") as refused:
        read(json.dumps(document))
    assert refused.value.status == 413


def test_null_is_a_missing_cell_among_numbers_and_texts():
    table, _ = read('{"rows": [{"a": 1, "b": "x"}, {"a": null, "b": null}]}')
    assert table.cells["a"][0] == 1
    assert math.isnan(table.cells["a"][1])
    assert table.cells["b"].tolist() == ["x", None]


def test_an_id_and_what_is_asked_for_come_back_as_they_were_sent():
    text = '{"rows": [{"a": 1, "id": "007", "b": null}, {"a": 2.5, "id": 7, "b": true}]}'
    table, passed = read(text, names=("a",))
    assert passed == {"id": ["007", 7]}
    table, passed = read(text, names=("a", "b"), asked=("b",))
    assert passed == {"b": [None, True], "id": ["007", 7]}
    assert table.names == ("a", "b")
    with pytest.raises(UserError, match=r"got 'idd'\. Did you mean 'id'"):
        read(text, asked=("idd",))
    with pytest.raises(UserError, match="must not be called 'p_value'"):
        read('{"rows": [{"p_value": 1}]}', asked=("p_value",))
    with pytest.raises(UserError, match="got a list in row 0, column 'id'"):
        read('{"rows": [{"id": [1], "a": 1, "b": 1}]}')
