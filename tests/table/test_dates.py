"""Dates and times as people write them: which form a column has, and when its cells are then."""

import math
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from growth import growth
from hypothesis import given
from hypothesis import strategies as st

from fewlier.errors import FormatError, UserError
from fewlier.table import Table, infer_schema
from fewlier.table.dates import ISO, ISO_TIME, ISO_ZONED, DateForm, recognise

MOMENT = datetime(2026, 3, 24, 15, 7, 9, tzinfo=UTC)


def column(*cells):
    return np.array(cells, dtype=object)


def form_of(*cells):
    found = recognise(column(*cells))
    if found is None:
        return None
    assert found.other is None
    return found.form.pattern


WRITTEN = {
    "2026-03-24": ISO,
    "2026-03-24 15:07": ISO,
    "2026-03-24T15:07:09.123456789": ISO,
    "2026-03-24T15:07:09Z": ISO_ZONED,
    "2026-03-24 15:07:09+01:00": ISO_ZONED,
    "15:07": ISO_TIME,
    "15:07:09.25": ISO_TIME,
    "3:07 PM": "%I:%M %p",
    "3:07:09pm": "%I:%M:%S%p",
    "24/03/2026": "%d/%m/%Y",
    "3/24/2026": "%m/%d/%Y",
    "3/24/2026 3:07 PM": "%m/%d/%Y %I:%M %p",
    "24.03.2026 15:07": "%d.%m.%Y %H:%M",
    "24-03-2026": "%d-%m-%Y",
    "24.03.26": "%d.%m.%y",
    "2026/03/24 15:07:09.5": "%Y/%m/%d %H:%M:%S.%f",
    "24 March 2026": "%d %B %Y",
    "Mar 24, 2026": "%b %d, %Y",
    "24-Mar-26": "%d-%b-%y",
    "24/Mar/2026:15:07:09 +0100": "%d/%b/%Y:%H:%M:%S %z",
    "Tue, 24 Mar 2026 15:07:09 +0000": "%a, %d %b %Y %H:%M:%S %z",
    "Tue Mar 24 15:07:09 2026": "%a %b %d %H:%M:%S %Y",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_common_forms_are_recognised_and_read(text):
    pattern = form_of(text, None, f" {text} ")
    assert pattern == WRITTEN[text]
    moments, unread = DateForm(pattern).parse(column(text, None))
    assert not unread.any()
    assert math.isnan(moments.second[1])
    if DateForm(pattern).has_day:
        zone = timezone(timedelta(hours=1)) if "+01" in text else UTC
        found = datetime.fromtimestamp(moments.instant[0], UTC).astimezone(zone)
        assert found.date() == MOMENT.date()
        assert moments.weekday[0] == 1
    clock = divmod(int(moments.second[0]) // 60, 60)
    assert clock == ((15, 7) if ":" in text else (0, 0))


def test_times_with_points_are_times_where_they_can_be_no_dates():
    assert form_of("18.30.00", "09.00.15", "23.59.59") == "%H.%M.%S"
    assert form_of("22.11.04", "13.10.15") == "%d.%m.%y"
    assert DateForm("%H.%M.%S").clock == "%H.%M"
    moments, _ = DateForm("%H.%M.%S").parse(column("18.30.00"))
    assert moments.second[0] == 18.5 * 3600


@pytest.mark.parametrize("texts", [("2026-03", "2025-11"), ("2026/3", "1999/12")])
def test_months_are_dates_without_a_weekday(texts):
    moments, unread = DateForm(form_of(*texts)).parse(column(*texts))
    assert not unread.any()
    assert datetime.fromtimestamp(moments.instant[0], UTC).date() == date(2026, 3, 1)
    months = pd.DataFrame({"m": pd.period_range("2019-01", periods=60, freq="M").astype(str)})
    names = infer_schema(Table.of(months)).names
    assert names == ("m (date)",)


@pytest.mark.parametrize(
    "text",
    [
        *("1.2.10", "10.0.0.1", "12", "1.5", "1-2", "May", "2026", "2026-13-01", "2026-02-30"),
        *("25:00", "12:30:99", "on 2026-03-04", "20260304", "1/2", "1.234,5", "4 Foo 2026", ""),
    ],
)
def test_other_texts_are_no_dates(text):
    assert recognise(column(text, text)) is None


def test_a_day_above_twelve_settles_which_place_is_the_day():
    assert form_of("03/04/2026", "13/04/2026", "05/04/2026") == "%d/%m/%Y"
    assert form_of("03/04/2026", "04/13/2026", "05/04/2026") == "%m/%d/%Y"


def test_without_one_a_column_is_ambiguous_unless_it_makes_no_difference():
    found = recognise(column("05/05/2026", "03/04/2026", None))
    assert {found.form.pattern, found.other.pattern} == {"%d/%m/%Y", "%m/%d/%Y"}
    assert found.example == "03/04/2026"
    assert recognise(column("05/05/2026", "07/07/2026")).other is None
    assert recognise(column("May 4, 2026")).other is None


def test_a_tenth_of_the_cells_may_be_slips_and_no_more():
    dates = [f"2026-03-{day:02d}" for day in range(1, 19)]
    assert form_of(*dates, "soon", "later") == ISO
    assert form_of(*dates, "soon", "later", "never") is None
    moments, unread = DateForm(ISO).parse(column(*dates, "soon", None))
    assert unread.tolist() == [False] * 18 + [True, False]
    assert np.isnan(moments.instant[-2:]).all()


def test_slips_may_come_first():
    dates = [f"{day:02d}.{month:02d}.2026" for month in range(1, 13) for day in range(1, 29)]
    assert form_of(*(f"slip {number}" for number in range(20)), *dates) == "%d.%m.%Y"


def test_the_clock_is_that_of_the_cell_and_the_instant_that_of_the_zone():
    moments, _ = DateForm(ISO_ZONED).parse(column("2026-03-24T23:30:00-05:00", "2026-03-25T04:30Z"))
    assert moments.instant[0] == moments.instant[1]
    assert (moments.second / 3600).tolist() == [23.5, 4.5]
    assert moments.weekday.tolist() == [1, 2]


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    st.sampled_from(["%d/%m/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%b %d %Y %I:%M:%S %p"]),
)
def test_what_a_pattern_writes_it_reads(moment, pattern):
    moment = moment.replace(microsecond=0)
    moments, unread = DateForm(pattern).parse(column(moment.strftime(pattern)))
    assert not unread.any()
    assert moments.instant[0] == moment.replace(tzinfo=UTC).timestamp()
    assert moments.weekday[0] == moment.weekday()


@given(st.text(max_size=40))
def test_no_text_breaks_the_recognition(text):
    found = recognise(column(text))
    if found is not None:
        found.form.check()
        assert not found.form.parse(column(text))[1].any()


@pytest.mark.parametrize("pattern", sorted(set(WRITTEN.values())))
def test_a_form_that_is_recognised_passes_the_check_of_a_file(pattern):
    DateForm(pattern).check()


NONSENSE = ["", "%d", "%Y", "%d/%m", "%H", "%d %d %m %Y", "%q", "%d/%m/%Y %", "%Y-%m-%d" * 9, "ISO"]


@pytest.mark.parametrize("pattern", [*NONSENSE, "%a %H:%M"])
def test_nonsense_is_refused_in_a_file(pattern):
    with pytest.raises(FormatError, match="is not a form of dates"):
        DateForm(pattern).check()


@pytest.mark.parametrize("pattern", NONSENSE)
def test_nonsense_is_refused_from_a_user(pattern):
    with pytest.raises(UserError, match="%d/%m/%Y"):
        DateForm.of_pattern(pattern)


@pytest.mark.parametrize("pattern", [ISO, ISO_ZONED, ISO_TIME, "%d %b %Y %H:%M", "%I:%M %p %z"])
@pytest.mark.parametrize(
    "cell", ["{}", "2026-03-24{}x", "3{}Mar{}2026{}x", "3{}Mar{}2026{}12:30{}x", "1:30{}PM{}x"]
)
def test_a_cell_of_many_spaces_is_read_in_time_that_grows_with_its_length(pattern, cell):
    few, many = (
        column("-" + cell.replace("{}", " " * n), cell.replace("{}", " " * n) + "x")
        for n in (60, 600)
    )
    assert DateForm(pattern).parse(many)[1].all()
    assert growth(DateForm(pattern).parse, few, many) < 30
