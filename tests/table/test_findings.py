"""What a table holds that a fit cannot judge."""

import numpy as np
import pandas as pd
import pytest

from fewlier import AnomalyDetector, Training
from fewlier.errors import DataWarning
from fewlier.table import Table, infer_schema
from fewlier.table.findings import Topic, find, notes_on

N, N_ODD = 600, 40
IS_ODD = np.arange(N) % 15 == 0
RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=N)


def found(data, labels=None, topic=None):
    """Return what was found, by column."""
    table = Table.of(pd.DataFrame(data))
    codes = np.where(IS_ODD, 1, 0).astype(np.int8) if labels is None else np.array(labels, np.int8)
    schema = infer_schema(table, None, codes != 1)
    findings = find(schema.match(table.select(schema.sources)), schema, codes)
    return {f.column: f.found for f in findings if topic is None or f.topic is topic}


LEAKS = {
    "filled afterwards": (np.where(IS_ODD, NORMAL, np.nan), "filled in 40 of 40 anomalies"),
    "filled for some": (np.where(np.arange(N) % 60 == 0, 7.0, np.nan), "filled in 10 of 40"),
    "a flag": (
        np.where(np.arange(N) % 30 == 0, 1, 0),
        "always 0 in normal rows, but not in 20 of 40",
    ),
    "a word": (
        np.where(IS_ODD, "CONFIRMED", "open"),
        "always open in normal rows, but not in 40 of 40",
    ),
    "codes": (np.where(IS_ODD, 9, np.arange(N) % 4), "alone separates the 40 anomalies"),
    "words": (np.where(IS_ODD, "fraud", np.array(["a", "b"])[np.arange(N) % 2]), "alone separates"),
    "amounts": (np.where(IS_ODD, 50 + NORMAL, NORMAL), "alone separates the 40 anomalies"),
    "a gap": (np.where(IS_ODD, np.nan, NORMAL), "missing in all 40 anomalies"),
    "nearly alone": (
        np.where(IS_ODD | (np.arange(N) == 1), 7.0, np.nan),
        "in 1 of 560 normal",
    ),
}


@pytest.mark.parametrize(("values", "text"), LEAKS.values(), ids=LEAKS)
def test_a_column_written_after_the_label_is_found(values, text):
    leaks = found({"x": values, "y": NORMAL}, topic=Topic.LEAK)
    assert list(leaks) == ["x"]
    assert text in leaks["x"]


@pytest.mark.parametrize("name", ["filled for some", "a flag"])
def test_a_leak_shows_although_anomalies_are_hidden_among_unlabelled_rows(name):
    labels = np.where(IS_ODD, 1, np.where(np.arange(N) % 2, 0, -1))
    labels[np.flatnonzero(IS_ODD)[::8]] = -1  # anomalies that nobody has found
    data = {"x": LEAKS[name][0], "y": NORMAL}
    assert list(found(data, labels, Topic.LEAK)) == ["x"]
    labels[np.flatnonzero(labels == 0)[100:]] = -1  # among few normal rows it may be chance
    assert found(data, labels, Topic.LEAK) == {}


@pytest.mark.parametrize(
    "values",
    [
        NORMAL,
        np.where(IS_ODD, NORMAL + 3, NORMAL),
        np.where(np.arange(N) % 30 == 0, 1, (np.arange(N) % 50 == 1) * 1),  # one normal row has it
        np.where(IS_ODD, np.nan, np.where(np.arange(N) % 7 == 1, np.nan, NORMAL)),
        np.array(["a", "b"])[np.arange(N) % 2],
    ],
)
def test_a_column_that_differs_between_labels_is_no_leak(values):
    assert found({"x": values, "y": NORMAL}, topic=Topic.LEAK) == {}


@pytest.mark.parametrize("leak", LEAKS)
def test_rows_with_both_labels_hide_no_leak(leak):
    rows = pd.DataFrame({"x": LEAKS[leak][0], "y": NORMAL})
    twins = rows[np.arange(N) % 15 == 3].iloc[:5]
    rows, labels = pd.concat([rows, twins]), np.r_[IS_ODD, np.ones(5, bool)]
    assert list(found(rows, labels, Topic.LEAK)) == ["x"]
    assert "5 of the 45 anomalies equal" in found(rows, labels, Topic.ROWS)[""]


def test_a_full_column_is_no_leak_where_nearly_all_rows_are_anomalies():
    labels = np.where(np.arange(N) % 24 == 0, 0, 1)
    assert found({"x": NORMAL, "y": NORMAL.round()}, labels, Topic.LEAK) == {}


def test_a_few_anomalies_far_out_are_no_leak():
    far = np.where(np.arange(N) < 8, 50 + NORMAL, NORMAL)
    assert found({"x": far, "y": NORMAL}, np.arange(N) < 8) == {}


def often(value, others, share=0.05):
    return np.where(np.arange(N) % round(1 / share) == 1, value, others)


AGES, COUNTS = RNG.integers(16, 80, N), RNG.poisson(3, N)
STAND_INS = {
    "a dead sensor": (often(-200, np.round(RNG.gamma(2, 1, N), 1), 0.2), "-200"),
    "a sensor mostly dead": (np.where(np.arange(N) % 10, -200, RNG.integers(7, 1189, N)), "-200"),
    "both signs": (often(-200, np.round(RNG.normal(18, 9, N), 1)), "-200"),
    "an age": (often(0, AGES, 0.02), "0"),
    "an unknown age": (often(-1, AGES), "-1"),
    "an unknown count": (often(-1, RNG.integers(0, 200, N)), "-1"),
    "a pressure": (often(0, np.round(RNG.normal(120, 15, N)), 0.1), "0"),
    "days since": (often(999, RNG.integers(0, 28, N), 0.5), "999"),
    "seldom but usual": (np.where(np.arange(N) < 2, -999, NORMAL), "-999"),
    "a word": (often("?", np.array(["a", "b"])[np.arange(N) % 2]), "?"),
    "a number among words": (np.where(np.arange(N) == 3, "0", [*("Jan", "Feb", "Mar")] * 200), "0"),
}


@pytest.mark.parametrize(("values", "text"), STAND_INS.values(), ids=STAND_INS)
def test_what_stands_for_missing_cells_is_found(values, text):
    stand_ins = found({"x": values, "y": NORMAL}, topic=Topic.STAND_IN)
    assert list(stand_ins) == ["x"]
    assert stand_ins["x"].startswith(f"{text} in ")


@pytest.mark.parametrize(
    "values",
    [
        often(0, np.round(RNG.gamma(4, 2.5, N) + 2, 2), 0.04),  # a measurement of nothing
        COUNTS,
        COUNTS - 1,
        np.maximum(np.round(RNG.normal(12, 6, N)), -1),  # a winter with little frost
        RNG.geometric(0.4, N),
        often(0, RNG.exponential(100, N), 0.5),
        often(0, RNG.integers(1, 500, N)),
        np.where(np.arange(N) < 12, 1e6, NORMAL),
        often(100, RNG.integers(0, 80, N)),
        [*("v1", "v2", "none left")] * 200,
    ],
    ids=str,
)
def test_ordinary_values_are_no_stand_ins(values):
    assert found({"x": values, "y": NORMAL}, topic=Topic.STAND_IN) == {}


@pytest.mark.parametrize(
    ("name", "values", "topic"),
    [
        ("x", np.arange(N), Topic.NUMBERING),
        ("x", np.sort(np.r_[np.arange(N - 2), 5, 9]), Topic.NUMBERING),
        ("policy_id", RNG.permutation(10**6)[:N], Topic.NUMBERING),
        ("PolicyNumber", RNG.permutation(10**6)[:N], Topic.NUMBERING),
        ("x", RNG.permutation(3 * N)[:N], Topic.NAMING),
        ("x", RNG.permutation(10**6)[:N], None),
        ("valid", RNG.integers(0, N, N), None),
        ("x", np.arange(N) / 7, None),
        ("day", 20230101 + RNG.integers(0, 28, N), Topic.DIGITS),
        ("x", RNG.integers(1_600_000_000, 1_700_000_000, N), Topic.EPOCH),
        ("x", 1000 * RNG.integers(1_600_000_000, 1_700_000_000, N), Topic.EPOCH),
        ("x", RNG.integers(10_000_000, 99_999_999, N), None),
    ],
)
def test_numbers_that_are_none_are_found(name, values, topic):
    table = Table.of(pd.DataFrame({name: values, "y": NORMAL}))
    schema = infer_schema(table)
    findings = find(table, schema, np.full(N, -1, np.int8))
    assert [f.topic for f in findings] == ([] if topic is None else [topic])


def test_copies_and_empty_rows_hide_no_row_number():
    rows = pd.DataFrame({"x": np.arange(N), "y": NORMAL})
    rows = rows.loc[np.sort(np.r_[np.arange(N), np.arange(0, N, 20)])]
    rows = pd.concat([rows, pd.DataFrame({"x": [np.nan] * 30, "y": np.nan})])
    assert found(rows, np.full(len(rows), -1), Topic.NUMBERING) == {"x": "counts the rows"}


def test_rows_and_labels_to_look_at_are_found():
    rows = pd.DataFrame({"a": NORMAL, "b": NORMAL**2})
    assert "500 of the 600 rows are labelled anomalies" in found(rows, np.arange(N) < 500)[""]
    rows.loc[7:9] = np.nan
    assert found(rows, np.full(N, -1))[""].startswith("3 rows have no cell with a value")
    rows.loc[7:9] = rows.loc[[45, 45, 46]].to_numpy()  # row 45 is an anomaly
    assert "1 of the 40 anomalies equals a row labelled normal" in found(rows)[""]
    assert "rows 45 and 7" in found(rows)[""]
    assert found(rows, np.where(IS_ODD, 1, -1)) == {}  # nobody says that row 7 is normal


def test_a_fit_warns_once_for_each_topic_and_its_summary_says_it_again():
    rows = pd.DataFrame({"co": STAND_INS["a dead sensor"][0], "no": STAND_INS["both signs"][0]})
    rows["paid_back"] = LEAKS["filled afterwards"][0]
    with pytest.warns(DataWarning) as caught:
        summary = AnomalyDetector(training=Training(max_epochs=1)).fit(rows, IS_ODD).summary_
    leak, stand_in = [str(one.message) for one in caught]
    assert "'paid_back' (filled in 40 of 40 anomalies" in leak
    assert "columns={'paid_back': 'ignore'}" in leak
    assert "'co' (-200 in " in stand_in
    assert stand_in.endswith("missing='-200' and so on.")
    assert {leak, stand_in} <= {*summary.notes}


def test_columns_of_one_topic_share_a_note():
    values = np.full((N, 30), 0.0)
    values[IS_ODD] = 1.0
    table = Table.of(values)
    codes = np.where(IS_ODD, 1, 0).astype(np.int8)
    notes = notes_on(find(table, infer_schema(table, None, codes != 1), codes))
    assert len([note for note in notes if "label away" in note]) == 1
