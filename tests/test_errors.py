import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from factories import small

from fewlier.errors import CellError, UserError

ERROR = CellError("Column 'x' must hold numbers; got 'y'", 3, "Correct it.")


def test_a_cell_error_says_what_where_and_what_to_do():
    assert str(ERROR) == "Column 'x' must hold numbers; got 'y' (first at row 3). Correct it."
    assert isinstance(ERROR, UserError)


def test_a_cell_error_counts_rows_from_elsewhere():
    later = ERROR.after(100)
    assert str(later) == str(ERROR).replace("row 3", "row 103")
    assert later.after(-100).row == ERROR.row == 3


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_cell_error_survives_a_copy_with_all_of_its_parts(duplicate):
    other = duplicate(ERROR.after(1))  # by __reduce__, as between processes
    assert (str(other), other.row, other.remedy) == (str(ERROR.after(1)), 4, "Correct it.")


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
