import pytest

from fewlier import UserError
from fewlier.cli.inputs import read_columns, read_label, read_missing, read_names
from fewlier.table.label_column import LabelColumn


@pytest.mark.parametrize(
    ("declarations", "kinds"),
    [
        ([], None),
        (["visits=count"], {"visits": "count"}),
        (["a=b=real", "c d=category"], {"a=b": "real", "c d": "category"}),
    ],
)
def test_a_kind_comes_after_the_last_equals_sign(declarations, kinds):
    assert read_columns(declarations, []) == kinds


def test_a_declaration_without_a_kind_is_refused():
    with pytest.raises(UserError, match=r"NAME=KIND.*'visits'"):
        read_columns(["visits"], [])


def test_columns_to_ignore_are_declared_so():
    assert read_columns(["a=real"], ["b, c"]) == {"a": "real", "b": "ignore", "c": "ignore"}


@pytest.mark.parametrize(("columns", "ignored"), [(["a=real"], ["a"]), (["a=real", "a=count"], [])])
def test_a_column_is_declared_once(columns, ignored):
    with pytest.raises(UserError, match="'a'"):
        read_columns(columns, ignored)


@pytest.mark.parametrize(
    ("lists", "names"),
    [([], []), (["id,timestamp"], ["id", "timestamp"]), ([" id , a b ,", "c"], ["id", "a b", "c"])],
)
def test_names_are_listed_by_commas_or_one_by_one(lists, names):
    assert read_names(lists) == names


def test_a_label_column_needs_a_name():
    assert read_label(None, None, None) is None
    assert read_label("fraud", None, None) == LabelColumn("fraud")
    assert read_label("fraud", ["bad", "odd"], ["ok"]) == LabelColumn(
        "fraud", ("bad", "odd"), ("ok",)
    )
    with pytest.raises(UserError, match=r"--anomaly .*--label"):
        read_label(None, ["bad"], None)
    with pytest.raises(UserError, match=r"--normal .*--label"):
        read_label(None, None, ["ok"])


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ([], None),
        (["-200", "?"], ["-200", "?"]),
        (["age=0", "age=-1", "a=b=7"], {"age": ["0", "-1"], "a=b": ["7"]}),
        (["-200", "age=0"], {"age": ["-200", "0"], "co": ["-200"]}),
    ],
)
def test_what_is_missing_is_said_of_all_columns_or_of_one(said, missing):
    assert read_missing(said, ["age", "co"]) == missing
