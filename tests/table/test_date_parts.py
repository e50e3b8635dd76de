"""What is read of dates: elapsed time, time of day and weekday, as far as the data have them."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from stored import read, record_of, reread

from fewlier.errors import FormatError, UserError
from fewlier.table import Column, Encoder, Kind, Table, infer_schema
from fewlier.table.date_parts import Aspect, DatePart, in_words
from fewlier.table.dates import ISO, ISO_TIME, ISO_ZONED, DateForm, Moments

DAYS = pd.date_range("2026-01-05", periods=60, freq="D")
EVERY_7_HOURS = pd.date_range("2026-01-05 08:00", periods=200, freq="7h")


def schema_of(dates, **options):
    return infer_schema(Table.of(pd.DataFrame({"when": dates})), **options)


def aspects_of(dates):
    schema = schema_of(dates)
    assert schema.sources == ("when",)
    return [column.name for column in schema.columns]


def test_a_date_is_read_as_far_as_the_data_have_it():
    assert aspects_of(EVERY_7_HOURS) == ["when (date)", "when (time of day)", "when (weekday)"]
    assert aspects_of(DAYS) == ["when (date)", "when (weekday)"]
    assert aspects_of(DAYS[:14]) == ["when (date)"]
    assert aspects_of(["08:00", "09:30"] * 10) == ["when (time of day)"]


def test_dates_stand_where_their_column_stood():
    frame = pd.DataFrame({"a": range(60), "when": DAYS.strftime("%d.%m.%Y"), "b": range(60)})
    schema = infer_schema(Table.of(frame))
    assert schema.names == ("a", "when (date)", "when (weekday)", "b")
    assert schema.sources == ("a", "when", "b")
    matched = schema.match(Table.of(frame[["b", "when", "a"]]))
    assert matched.names == schema.names
    assert matched.cells["when (weekday)"][:2].tolist() == ["Monday", "Tuesday"]
    assert matched.written["when (weekday)"][0] == "05.01.2026 (Monday)"
    assert matched.written["when (date)"][0] == "05.01.2026"
    assert reread(schema) == schema


def test_days_are_counted_within_the_middle_of_training():
    """The first and last tenth of the rows are one moment each, and so is all beyond."""
    schema = schema_of(pd.date_range("2026-01-01", periods=101, freq="D"))
    later = ["2025-01-15", "2026-01-01", "2026-01-11", "2026-02-20", "2026-04-01", "2027-03-31"]
    days = schema.match(Table.of(pd.DataFrame({"when": later}))).cells["when (date)"]
    assert days.tolist() == [0, 0, 0, 40, 80, 80]


def test_a_date_far_from_training_is_outside_and_one_within_twenty_years_is_not():
    """One slip among the training rows does not stretch what counts as near."""
    dates = [*pd.date_range("2026-01-01", periods=101, freq="D"), pd.Timestamp("1926-02-01")]
    schema = schema_of(dates)
    table = Table.of(
        pd.DataFrame({"when": ["1926-02-01", "2006-03-01", "2046-03-01", "2062-02-01"]})
    )
    matched = schema.match(table)
    column = schema.columns[0]
    is_outside = np.isnan(column.values(matched.cells["when (date)"]))
    assert is_outside.tolist() == [True, False, False, True]
    encoded = Encoder.fit(schema, schema.match(Table.of(pd.DataFrame({"when": dates})))).encode(
        matched
    )
    assert encoded.impossible[:, 0].tolist() == [True, False, False, True]


def test_a_long_training_reaches_as_far_again():
    schema = schema_of(pd.date_range("1980-01-01", "2020-01-01", freq="30D"))
    days = schema.match(
        Table.of(pd.DataFrame({"when": ["1945-01-01", "2055-01-01", "2065-01-01"]}))
    )
    impossible = schema.columns[0].date.is_impossible(days.cells["when (date)"])
    assert impossible.tolist() == [False, False, True]


def test_hours_are_counted_from_the_longest_pause_so_that_midnight_is_no_seam():
    nights = pd.date_range("2026-01-05 22:00", periods=9, freq="h").strftime("%H:%M")
    schema = schema_of(list(nights) * 5)
    hours = schema.match(Table.of(pd.DataFrame({"when": ["23:30", "00:30"]}))).cells
    first, second = hours["when (time of day)"]
    assert second - first == 1
    part = schema.columns[0].date
    assert part.text(first) == "23:30"
    assert [
        in_words(part.form, Aspect.TIME, hour) for hour in part.decode(np.array([-3.0, 30.0]))
    ] == [
        "14:00",  # the pause is from 06:00 to 22:00
        "14:00",
    ]


def test_a_time_that_never_varies_is_a_constant():
    column = schema_of(DAYS + pd.Timedelta("2h")).columns[1]
    assert (column.kind, column.coding, len(column.levels)) == (Kind.REAL, Kind.CATEGORY, 1)
    assert column.date.text(float(column.levels[0])) == "02:00"


TIMES = {
    "date": [pd.Timestamp(day).date() for day in ("2026-01-05", "2026-02-06")],
    "datetime": [pd.Timestamp(t) for t in ("2026-01-05 08:00", "2026-02-06 09:30:15.5")],
    "zoned": list(
        pd.to_datetime(["2026-01-05 08:00", "2026-02-06 09:30"]).tz_localize("Asia/Tokyo")
    ),
    "time": [pd.Timestamp(t).time() for t in ("08:00", "09:30:15.5")],
}
LIBRARIES = {
    "pandas objects": lambda cells: pd.DataFrame({"when": pd.Series(cells, dtype=object)}),
    "pandas": lambda cells: pd.DataFrame({"when": cells}),
    "polars": lambda cells: pl.DataFrame({"when": [_plain(cell) for cell in cells]}),
    "pyarrow": lambda cells: pa.table({"when": [_plain(cell) for cell in cells]}),
}


def _plain(cell):
    return cell.to_pydatetime() if isinstance(cell, pd.Timestamp) else cell


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", TIMES)
def test_native_types_are_read_as_their_iso_text(kind, library):
    cells = [*TIMES[kind], None] * 10
    table = Table.of(LIBRARIES[library](cells))
    texts = [None if cell is None else str(cell) for cell in cells]
    assert set(table.temporal) == {"when"}
    schema = infer_schema(table)
    as_text = Table.of(pd.DataFrame({"when": texts}))
    parts = [replace(column, date=replace(column.date, zone="")) for column in schema.columns]
    assert infer_schema(as_text) == replace(schema, columns=tuple(parts))
    for name, found in schema.match(table).cells.items():
        np.testing.assert_array_equal(found, schema.match(as_text).cells[name], err_msg=name)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.timestamp("ns"), "1970-01-01 00:00:01.234567"),
        (pa.timestamp("ns", "Asia/Tokyo"), "1970-01-01 09:00:01.234567+09:00"),
        (pa.time64("ns"), "00:00:01.234567"),
    ],
)
def test_nanoseconds_of_arrow_are_left_out(kind, text):
    cells = pa.array([1_234_567_891, None], pa.int64()).cast(kind)
    assert Table.of(pa.table({"x": cells})).cells["x"].tolist() == [text, None]


@pytest.mark.parametrize("day", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_the_ends_of_time_survive_json(day):
    schema = schema_of([day] * 5)
    assert reread(schema) == schema
    assert schema.columns[0].date.text(0.0) == day[:10]


def test_arrays_of_dates_are_read_too():
    array = np.array([["2026-01-05T08:00"], ["2026-02-06T09:30"], ["NaT"]], "datetime64[ns]")
    table = Table.of(array)
    assert table.cells["x0"].tolist() == ["2026-01-05 08:00:00", "2026-02-06 09:30:00", None]
    assert table.temporal == {"x0": ""}


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"x0": pd.to_timedelta(["90s", None, "-1h"])}),
        pl.DataFrame({"x0": pd.to_timedelta(["90s", None, "-1h"])}),
        pa.table({"x0": pa.array([90, None, -3600], pa.duration("s"))}),
        np.array([[90], ["NaT"], [-3600]], "timedelta64[s]"),
        [[pd.Timedelta("90s").to_pytimedelta()], [None], [np.timedelta64(-1, "h")]],
    ],
    ids=["pandas", "polars", "pyarrow", "array", "objects"],
)
def test_durations_are_seconds(data):
    np.testing.assert_array_equal(Table.of(data).cells["x0"], [90, np.nan, -3600])


def test_native_dates_need_not_be_in_the_form_of_a_text_column():
    schema = schema_of(EVERY_7_HOURS.strftime("%d/%m/%Y %H:%M"))
    as_text = schema.match(Table.of(pd.DataFrame({"when": ["24/03/2026 15:07"]})))
    typed = schema.match(Table.of(pd.DataFrame({"when": pd.to_datetime(["2026-03-24 15:07"])})))
    for name, cells in as_text.cells.items():
        np.testing.assert_array_equal(cells, typed.cells[name], err_msg=name)
    assert not typed.unread


def test_a_cell_in_another_form_is_missing_counted_and_named():
    schema = schema_of(EVERY_7_HOURS.strftime("%d/%m/%Y %H:%M"))
    cells = ["24/03/2026 15:07", "2026-03-24 15:07", None, "24.03.2026"]
    matched = schema.match(Table.of(pd.DataFrame({"when": cells})))
    assert matched.unread == {"when": (2, 1, "2026-03-24 15:07")}
    assert np.isnan(matched.cells["when (date)"]).tolist() == [False, True, True, True]
    shown = ["24/03/2026 15:07", "2026-03-24 15:07 (in another form)", None]
    assert matched.written["when (date)"].tolist() == [*shown, "24.03.2026 (in another form)"]


def test_a_column_that_is_all_in_another_form_is_an_error():
    schema = schema_of(EVERY_7_HOURS.strftime("%d/%m/%Y %H:%M"))
    other = Table.of(pd.DataFrame({"when": EVERY_7_HOURS.strftime("%m-%d-%Y")}))
    with pytest.raises(UserError, match=r"'when' .*%d/%m/%Y %H:%M.* 200"):
        schema.match(other)


AMBIGUOUS = ["03/04/2026", "05/06/2026", "07/08/2026"]


def test_an_ambiguous_column_is_refused_and_can_be_declared():
    advice = (
        r"Column 'when' does not show which day '03/04/2026'.*'when': '%d/%m/%Y'} or .*'%m/%d/%Y'}"
    )
    with pytest.raises(UserError, match=advice):
        schema_of(AMBIGUOUS)
    schema = schema_of(AMBIGUOUS, overrides={"when": "%m/%d/%Y"})
    assert schema.columns[0].date.form == DateForm("%m/%d/%Y")
    assert schema.match(Table.of(pd.DataFrame({"when": ["05/07/2026"]}))).written


def test_digits_can_be_declared_dates_and_dates_categories():
    numbers = [20260105 + day for day in range(20)]
    assert schema_of(numbers, overrides={"when": "%Y%m%d"}).names == (
        "when (date)",
        "when (weekday)",
    )
    column = schema_of(DAYS.strftime("%Y-%m-%d"), overrides={"when": "category"}).columns[0]
    assert (column.name, column.coding, column.date) == ("when", Kind.CATEGORY, None)


def test_a_declared_form_is_checked_against_the_data():
    with pytest.raises(UserError, match=r"%d/%m/%Y.* 60 "):
        schema_of(DAYS.strftime("%Y-%m-%d"), overrides={"when": "%d/%m/%Y"})
    with pytest.raises(UserError, match=r"'when' .*'%q'"):
        schema_of(DAYS, overrides={"when": "%q"})


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame({"when": DAYS, "when (date)": 1.0})
    with pytest.raises(UserError, match=r"'when \(date\)' 2"):
        infer_schema(Table.of(frame))


BERLIN = EVERY_7_HOURS.tz_localize("Europe/Berlin")
ELSEWHERE = {
    "pandas": lambda moved: pd.DataFrame({"when": moved}),
    "polars": lambda moved: pl.DataFrame({"when": moved}),
    "pyarrow": lambda moved: pa.table({"when": pa.array(moved)}),
    "nanoseconds": lambda moved: pd.DataFrame({"when": moved.astype("datetime64[ns, UTC]")}),
}


@pytest.mark.parametrize("library", ELSEWHERE)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_typed_dates_are_read_by_the_clock_of_the_training_dates(library, zone):
    rows = Table.of(pd.DataFrame({"when": BERLIN}))
    schema = reread(infer_schema(rows))
    moved = BERLIN.tz_convert(zone)
    if library == "nanoseconds":
        moved = moved.tz_convert("UTC")
    found, same = schema.match(Table.of(ELSEWHERE[library](moved))), schema.match(rows)
    for name in schema.names:
        assert found.cells[name].tolist() == same.cells[name].tolist()
        assert found.written[name].tolist() == same.written[name].tolist()
    assert found.written["when (weekday)"][0] == "2026-01-05 08:00:00+01:00 (Monday)"


def test_a_database_session_in_another_zone_reads_the_same_hours():
    rows = pd.DataFrame({"when": BERLIN})
    schema = infer_schema(Table.of(rows))
    with duckdb.connect() as session:
        session.execute("set timezone = 'Pacific/Auckland'")
        found = schema.match(Table.of(session.from_arrow(pa.Table.from_pandas(rows))))
    hours = "when (time of day)"
    assert found.cells[hours].tolist() == schema.match(Table.of(rows)).cells[hours].tolist()


def test_text_with_a_zone_keeps_its_own_clock():
    schema = schema_of(BERLIN)
    text = BERLIN.tz_convert("UTC").astype(str)
    matched = schema.match(Table.of(pd.DataFrame({"when": text})))
    assert matched.written["when (date)"][0] == "2026-01-05 07:00:00+00:00"


ZONED = record_of(DatePart("when", DateForm(ISO_ZONED), Aspect.TIME, zone="Asia/Tokyo"))


@pytest.mark.parametrize("zone", ["Nowhere/None", "../../etc/passwd", "\0", 3])
def test_an_unknown_zone_is_refused_in_a_file(zone):
    assert record_of(read(DatePart, ZONED)) == ZONED
    with pytest.raises(FormatError):
        read(DatePart, ZONED | {"zone": zone})


RECORD = record_of(DatePart("when", DateForm(ISO), Aspect.DATE, 0.0, 1.0))


@pytest.mark.parametrize(
    "change",
    [
        {"form": "%d"},
        {"aspect": "month"},
        {"start": 2.0},
        {"end": 1e12},
        {"start": 0},
        {"source": 3},
        {"more": 1},
        {"form": ISO_TIME},
        {"aspect": "time of day"},
        {"aspect": "weekday"},
    ],
)
def test_nonsense_is_refused_in_a_file(change):
    assert record_of(read(DatePart, RECORD)) == RECORD
    with pytest.raises(FormatError):
        read(DatePart, RECORD | change)


def test_a_file_cannot_read_a_weekday_as_a_number():
    column = Column("when (date)", Kind.REAL, Kind.REAL, date=read(DatePart, RECORD))
    weekday = RECORD | {"aspect": "weekday", "end": 0.0}
    assert reread(column) == column
    with pytest.raises(FormatError, match="cannot be read from dates"):
        read(Column, record_of(column) | {"date": weekday})


def test_a_moment_that_is_missing_gives_missing_cells():
    nothing = Moments(*(np.array([np.nan]) for _ in range(3)))
    for aspect in (Aspect.DATE, Aspect.TIME):
        assert np.isnan(DatePart("when", DateForm(ISO), aspect).cells(nothing)).all()
    assert DatePart("when", DateForm(ISO), Aspect.WEEKDAY).cells(nothing).tolist() == [None]
