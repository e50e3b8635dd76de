import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from factories import small

from fewlier.errors import ColumnErrors, UserError, locate

FIELDS = {"column": "x", "row": 3, "expected": "numbers", "got": "y", "remedy": "Correct it."}


def test_an_error_says_what_where_and_what_to_do():
    error = UserError(**FIELDS)
    assert str(error) == "Column 'x' must hold numbers; got 'y' (first at row 3). Correct it."
    assert {name: getattr(error, name) for name in FIELDS} == FIELDS
    assert (error.parameter, error.file) == (None, None)


def test_an_error_names_its_file_and_the_row_there():
    error = UserError(**FIELDS)
    locate(error, "a.csv", 100)
    locate(error, "the folder of a.csv", 5)  # known already
    assert (error.file, error.row) == ("a.csv", 103)
    assert str(error).startswith("a.csv: Column 'x'")
    assert "row 103" in str(error)


def test_errors_of_several_columns_keep_theirs():
    problems = [UserError(**FIELDS), UserError("Column 'z' is odd.", column="z")]
    error = ColumnErrors(problems)
    locate(error, "a.csv", 10)
    assert [problem.column for problem in error.problems] == ["x", "z"]
    assert "a.csv: 2 columns" in str(error)
    assert "row 13" in str(error)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_an_error_crosses_processes_with_all_of_its_fields(duplicate):
    error = UserError(**FIELDS, readings=("1.5", "1,5"))
    locate(error, "a.csv", 1)
    # By __reduce_ex__, as between processes.
    for made in (error, ColumnErrors([error, error]), UserError(parameter="n", got=[1])):
        other = duplicate(made)
        assert type(other) is type(made)
        assert str(other) == str(made)
        assert (other.row, other.readings, other.got) == (made.row, made.readings, made.got)


def test_a_long_value_is_cut():
    text = UserError(parameter="columns", expected="a kind", got="x" * 1000)
    assert len(str(text)) < 200
    assert str(UserError(parameter="n", expected="short", got=[0] * 1000)).endswith("...].")
    assert "ndarray" in str(UserError(parameter="n", expected="short", got=np.zeros(1000)))


@pytest.fixture(scope="module")
def days():
    rng = np.random.default_rng(0)
    dates = pd.date_range("2026-01-01", periods=80, freq="D").strftime("%Y-%m-%d")
    return pd.DataFrame({"x": rng.normal(size=80), "when": dates, "id": dates + "-" + dates})


@pytest.fixture(scope="module")
def unread(days):
    return days.assign(when=days["when"].where(days.index != 3, "soon"))


@pytest.fixture(scope="module")
def fitted(days):
    return small(columns={"id": "ignore"}).fit(days)


CALLS = {
    "A false-alarm rate": lambda _, days, __: small(false_alarm_rate=1e-3).fit(days),
    "Left out": lambda _, days, __: small().fit(days),
    "A column-vector": lambda _, days, __: small().fit(days, np.zeros((80, 1))),
    "soon": lambda _, __, unread: small().fit(unread),
    "'soon'": lambda fitted, _, unread: fitted.predict(unread),
    "soon.*": lambda fitted, _, unread: fitted.explain(unread),
    "feature names": lambda fitted, days, _: fitted.anomaly_score(days.to_numpy()),
    "A false-discovery rate": lambda fitted, days, _: fitted.predict(days, fdr=1e-3),
}


@pytest.mark.parametrize("message", CALLS)
def test_a_warning_points_at_the_line_that_called(message, fitted, days, unread):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        CALLS[message](fitted, days, unread)
    assert any(re.search(message, str(warning.message)) for warning in warned)
    assert {warning.filename for warning in warned} == {__file__}
