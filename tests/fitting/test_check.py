"""What `check` finds out about a table."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from fewlier.fitting.check import check_table
from fewlier.table.label_column import LabelColumn

N = 60
RNG = np.random.default_rng(0)


def checked(columns=None, label=None, cells=(), **data):
    found = check_table(pd.DataFrame(data), columns, label, cells)
    assert json.loads(json.dumps(found.to_json()))["n_rows"] == found.n_rows
    return found


def one(values, declared=None):
    found = checked({"x": declared} if declared else None, x=values, other=RNG.normal(size=N))
    return found.columns[0]


KINDS = {
    "prices": ([f"${x:,.2f}" for x in RNG.lognormal(5, 2, N)], "positive", r"\$1,200.50"),
    "constant": ([5] * N, "constant", "always 5"),
    "nearly constant": ([5.5] * (N - 3) + [6, 6, 7], "nearly constant", "nearly always 5.5"),
    "empty": ([None] * N, "empty", "no cell has a value"),
    "ids": ([f"id{i}" for i in range(N)], "left out", "an identifier: 60 different texts"),
    "cities": (["Bern", "Oslo", "Rome"] * 20, "category", "text with 3 values"),
    "grades": ([1, 2, 3] * 20, "count as category", "integers >= 0 with 3 values"),
    "dates": (pd.date_range("2026-01-01", periods=N, freq="7h"), "date", "read as date, time"),
    "lists": ([[1]] * N, "refused", "must hold numbers or text; got list"),
    "flags": ([0, 1] * 30, "binary", "two different numbers"),
}


@pytest.mark.parametrize(("values", "kind", "why"), KINDS.values(), ids=KINDS)
def test_the_kind_of_a_column_and_why(values, kind, why):
    column = one(values)
    assert column.kind == kind
    assert re.search(why, column.why), column.why


ODD = {
    "a stand-in": (
        [-999.0] * 3 + list(RNG.normal(size=N - 3)),
        "-999 in 3 rows, 5.0%; may stand for missing cells",
    ),
    "a counter": (list(range(N)), "counts the rows"),
    "different integers": (list(RNG.permutation(2 * N)[:N]), "every number differs"),
    "a question mark": (["?", "a", "b"] * 20, "? in 20 rows, 33.3%; may stand for missing cells"),
    "two spellings": (["Oslo", "oslo ", "Rome"] * 20, "'Oslo' and 'oslo ' may be the same"),
    "a slip": (
        ["1.5", "2.25", "7"] * 19 + ["1", "2", "x"],
        "cells in another form count as missing: 1, as 'x'",
    ),
}


@pytest.mark.parametrize(("values", "remark"), ODD.values(), ids=ODD)
def test_what_is_odd_about_a_column(values, remark):
    remarks = one(values).remarks
    assert any(re.search(remark.replace("?", r"\?"), found) for found in remarks)


def test_ordinary_columns_have_no_remarks():
    for values in (RNG.normal(size=N), ["Bern", "Oslo", "Rome"] * 20, [1, 2, 3] * 20):
        assert one(values).remarks == ()


def test_gaps_and_repeated_rows_are_counted():
    found = checked(id=[f"id{i}" for i in range(N)], a=[1, 2, None] * 20, b=["x", "y", "NA"] * 20)
    assert [column.n_missing for column in found.columns] == [0, 20, 20]
    assert found.n_repeated == N - 3  # ids, which are left out, do not make rows different


def test_the_declarations_settle_what_can_be_settled():
    data = {
        "id": [f"id{i}" for i in range(N)],
        "a, b": [f"the {i} of them" for i in range(N)],
        "tags": [[1]] * N,
        "amount": ["1.200", "3.400"] * 30,
        "qty": range(N),
    }
    found = checked({"qty": "real"}, **data)
    assert len(found.problems) == 2
    settled = {"id": "ignore", "tags": "ignore", "amount": "1200.50", "a, b": "ignore"}
    assert found.declarations == {"qty": "real"} | settled
    assert checked(found.declarations, **data).problems == ()


def test_labels_are_counted_by_value_and_by_meaning():
    cells = ["ok"] * 50 + ["attack", "attak"] + [""] * 8
    found = checked(None, LabelColumn("class", anomaly=("attack",)), cells, x=RNG.normal(size=N))
    assert found.label.values == {"ok": 50, "attack": 1, "attak": 1}
    assert found.label.meanings == {"anomaly": 1, "normal": 51, "unlabelled": 8}
    assert any("'attak'" in remark and "slip" in remark for remark in found.label.remarks)
    unclear = checked(None, LabelColumn("class"), cells, x=RNG.normal(size=N))
    assert "anomaly=" in unclear.problems[0]


def test_a_column_named_like_a_label_is_pointed_out():
    assert "may be the label" in checked(fraud=[0, 1] * 30).columns[0].remarks
