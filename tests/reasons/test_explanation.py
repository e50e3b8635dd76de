import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from factories import small

from fewlier import AnomalyDetector, Made, Training
from fewlier.errors import UserError
from fewlier.reasons.expectation import RARER
from fewlier.reasons.explanation import Reason

N_PASSES = 3
COLUMNS = ["length", "width", "count", "city"]


def leaves(n, seed, gaps=0.1):
    """Return a table in which width follows length, with some cells missing."""
    rng = np.random.default_rng(seed)
    length = rng.normal(50, 10, n)
    table = pd.DataFrame(
        {
            "length": length,
            "width": length / 2 + rng.normal(0, 0.5, n),
            "count": rng.poisson(30, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
        }
    )
    return table.mask(rng.random(table.shape) < gaps, None)


@pytest.fixture(scope="module", params=["average", "best"])
def detector(request):
    table = leaves(600, seed=0)
    table.loc[:5, "width"] = 60.0
    return AnomalyDetector(
        selection=request.param,
        density=Made(hidden=(16,), n_orderings=N_PASSES),
        training=Training(lambdas=(0, 10), max_epochs=20, learning_rate=0.01),
        false_alarm_rate=0.1,
        random_state=0,
    ).fit(table, np.arange(600) < 6)


def odd_rows():
    """Return normal rows, then one with a value never seen in each column, then an empty one."""
    odd = leaves(5, seed=2, gaps=0)
    odd.loc[0, "length"] = 1e300
    odd.loc[1, "width"] = -200.0
    odd.loc[2, "count"] = -1.0
    odd.loc[3, "city"] = "Paris"
    odd.loc[4] = None
    return pd.concat([leaves(300, seed=1), odd], ignore_index=True)


@pytest.mark.slow
def test_an_explanation_is_printed_in_a_line(detector):
    printed = repr(detector.explain(odd_rows()))
    n, d = len(odd_rows()), len(odd_rows().columns)
    assert printed == f"Explanation({n} rows, {d} columns; top(row) has the reasons of a row)"


@pytest.mark.slow
def test_columns_and_remainder_sum_to_the_score_minus_the_baseline(detector):
    table = odd_rows()
    explanation, score = detector.explain(table), detector.anomaly_score(table)
    total = explanation.contributions.sum(1) + explanation.remainder
    np.testing.assert_allclose(total, score - explanation.baseline, rtol=1e-12, atol=1e-6)
    np.testing.assert_allclose(explanation.score, score, rtol=1e-12, atol=1e-6)
    assert explanation.columns == tuple(COLUMNS)
    assert explanation.unit == detector.score_unit_
    assert np.isfinite(explanation.contributions).all()


def test_the_remainder_is_bounded_by_the_log_of_the_number_of_orderings(detector):
    remainder = detector.explain(odd_rows()).remainder
    # Before centring on normal rows it lies between 0 and log O.
    assert (np.abs(remainder) <= math.log(N_PASSES) + 1e-9).all()
    assert np.ptp(remainder) <= math.log(N_PASSES) + 1e-9
    if detector.selection == "average":
        assert (remainder == 0).all()


def test_the_baseline_is_what_normal_rows_score_on_average(detector):
    scores = detector.anomaly_score(leaves(1000, seed=3))
    baseline = detector.explain(leaves(1, seed=3)).baseline
    assert np.mean(scores) == pytest.approx(baseline, abs=0.5 * np.std(scores))


def test_contributions_of_fresh_normals_are_centred(detector):
    contributions = detector.explain(leaves(1000, seed=3)).contributions
    # They are centred on the 60 normals of a fold that choose its epochs.
    assert (np.abs(contributions.mean(0)) < 0.5 * contributions.std(0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("length", 1e300),
        ("length", 300.0),
        ("width", 60.0),  # as in the labelled anomalies
        ("width", -50.0),
        ("count", 300.0),
        ("count", -1.0),
        ("city", "Paris"),
    ],
)
def test_a_planted_corruption_is_the_first_reason(detector, column, value):
    table = leaves(20, seed=4, gaps=0).assign(**{column: value})
    explanation = detector.explain(table)
    n_first = 0
    for row in range(20):
        first, *others = explanation.top(row, 4)
        (planted,) = (reason for reason in (first, *others) if reason.column == column)
        assert planted.value == value
        assert planted.contribution > 1
        n_first += planted is first
    assert n_first >= 19  # one of the rows is as wide as none of the others


def test_the_top_reasons_come_in_order_with_the_values_of_their_cells(detector):
    table = pd.DataFrame({"length": [50.0], "width": [None], "count": [300.0], "city": ["Paris"]})
    explanation = detector.explain(table)
    reasons = explanation.top(0, n=4)
    assert len(explanation.top(0)) == 3
    contributions = [reason.contribution for reason in reasons]
    assert contributions == sorted(contributions, reverse=True)
    assert contributions == sorted(explanation.contributions[0], reverse=True)
    values = {reason.column: reason.value for reason in reasons}
    assert values == {"length": 50.0, "width": None, "count": 300.0, "city": "Paris"}


def test_explanations_follow_the_columns_of_training_whatever_their_order(detector):
    table = odd_rows()
    shuffled = detector.explain(table[["city", "count", "width", "length"]])
    np.testing.assert_array_equal(shuffled.contributions, detector.explain(table).contributions)
    assert shuffled.columns == tuple(COLUMNS)


@pytest.mark.parametrize(
    ("given", "read"),
    [(pa.Table.from_pandas, pa.Table.to_pandas), (pl.from_pandas, pl.DataFrame.to_pandas)],
)
def test_to_frame_has_a_line_per_row_and_column_and_reads_back(detector, given, read):
    table = odd_rows()
    explanation = detector.explain(given(table))
    lines = read(explanation.to_frame())
    assert lines.columns.tolist() == ["row", *Reason._fields]
    of_columns = lines[lines["column"] != explanation.remainder_name]
    assert of_columns["row"].tolist() == np.repeat(np.arange(len(table)), 4).tolist()
    assert of_columns["column"].tolist() == COLUMNS * len(table)
    assert (of_columns["value"].isna().to_numpy() == table.isna().to_numpy().ravel()).all()
    assert of_columns["value"].tolist()[-5] == "Paris"
    np.testing.assert_array_equal(of_columns["contribution"], explanation.contributions.ravel())
    is_city = of_columns["column"] == "city"
    for end in ("expected_low", "expected", "expected_high"):
        assert (of_columns[end].isna() == is_city).all()
    for categories in of_columns["expected_categories"][is_city]:
        assert sum(pair["probability"] for pair in categories) == pytest.approx(1)
        assert {pair["category"] for pair in categories} == {"Bern", "Oslo", "Rome"}
    assert of_columns["expected_categories"][~is_city].isna().all()
    total = lines.groupby("row")["contribution"].sum() + explanation.baseline
    np.testing.assert_allclose(total, explanation.score, rtol=1e-12, atol=1e-6)


@pytest.mark.slow
def test_a_value_that_follows_another_is_expected_from_it():
    table = leaves(500, seed=5, gaps=0)[["length", "width"]]
    quick = {"n_orderings": 6, "max_epochs": 60, "learning_rate": 0.01, "lambdas": (0,)}
    found = small(**quick).fit(table).explain(table).expected
    low, median, high = (
        part.reshape(-1, 2)[:, 1] for part in (found.low, found.median, found.high)
    )
    assert np.corrcoef(median, table["length"])[0, 1] > 0.95
    assert np.median(high - low) < 0.5 * np.ptp(np.quantile(table["width"], [0.05, 0.95]))


def test_a_binary_has_its_two_values_for_categories():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"paid": rng.choice([3.0, 7.5], 200), "amount": rng.normal(size=200)})
    explanation = small(max_epochs=2).fit(table).explain(table)
    (paid,) = (reason for reason in explanation.top(0, 2) if reason.column == "paid")
    assert set(paid.expected_categories) == {"3", "7.5"}


def test_categories_beyond_the_most_common_share_a_name():
    rng = np.random.default_rng(0)
    names = [f"c{i:03d}" for i in rng.integers(0, 200, 500)]
    explanation = (
        small(max_epochs=1).fit(pd.DataFrame({"c": names})).explain(pd.DataFrame({"c": ["c001"]}))
    )
    (reason,) = explanation.top(0)
    assert next(iter(reason.expected_categories)) == RARER


def test_no_rows_have_no_reasons(detector):
    explanation = detector.explain(leaves(1, seed=0)[:0])
    assert explanation.tops() == []
    assert len(explanation.to_frame()) == 0


def test_to_frame_names_the_remainder_where_there_is_one(detector):
    explanation = detector.explain(odd_rows())
    lines = explanation.to_frame()
    assert explanation.remainder_name == "(orderings)"
    remainders = lines[lines["column"] == "(orderings)"]
    expected = explanation.remainder[explanation.remainder != 0]
    np.testing.assert_array_equal(remainders["contribution"], expected)
    assert bool(len(remainders)) == (detector.selection == "best")


def test_an_explanation_of_missing_cells_alone_reads_back(detector):
    nothing = odd_rows()[-1:]
    lines = detector.explain(pl.from_pandas(nothing)).to_frame()
    assert lines["value"].null_count() == len(lines)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason("visits", 912.0, 14.23), "visits = 912: +14.2"),
        (Reason("amount", 1234567.891, -0.04), "amount = 1,234,568: -0.0"),
        (Reason("year", 2024.0, 1, 2000, 1990, 2010), "year = 2024, expected 1990–2010: +1.0"),
        (
            Reason("limit", 5e5, 1.0, 1e5, -61234.0, 321234.0),
            "limit = 500,000, expected -60,000 to 320,000: +1.0",
        ),
        (
            Reason("limit", 5e3, 1.0, 1e6, 2e5, 3e6),
            "limit = 5,000, expected 200,000–3,000,000: +1.0",
        ),
        (
            Reason("limit", 2e6, 1.0, expected_categories={"0": 0.8, "5000000": 0.04}),
            "limit = 2,000,000, expected 0 (80 %), 5,000,000 (4 %): +1.0",
        ),
        (
            Reason(
                "bound (date)", "19-12-1997", 1.0, 0.0, 0.0, 9e8, aspect="date", form="%d-%m-%Y"
            ),
            "bound (date) = 19-12-1997, expected 01-01-1970 to 09-07-1998: +1.0",
        ),
        (Reason("city", "Bern", 2.0), "city = Bern: +2.0"),
        (Reason("city", None, 0.5), "city is missing: +0.5"),
        (Reason("ms", 912.0, 14.2, 21.0, 12.3, 40.4), "ms = 912, expected 12–40: +14.2"),
        (Reason("ms", None, 4.0, 21.0, 12.3, 40.4), "ms is missing, expected 12–40: +4.0"),
        (Reason("ms", None, 4, 2, 1, 3, None, 0.9), "ms is missing, expected 1.0–3.0: +4.0"),
        (Reason("ms", 5.0, 4, 2, 1, 3, None, 0.97), "ms = 5, expected missing (97 %): +4.0"),
        (Reason("t", 40.0, 1.0, 1.0, -5.24, 3.06), "t = 40, expected -5.2 to 3.1: +1.0"),
        (Reason("t", 40.0, 1.0, 1.0, 1234.11, 1234.92), "t = 40, expected 1234.11–1234.92: +1.0"),
        (Reason("t", 40.0, 1.0, 1.0, 1234.0, 98765.0), "t = 40, expected 1,000–99,000: +1.0"),
        (Reason("t", 40.0, 1.0, 1.0, 2e-9, 3e-9), "t = 40, expected 2e-09–3e-09: +1.0"),
        (Reason("t", 40.0, 1.0, 3.0, 3.0, 3.0), "t = 40, expected 3: +1.0"),
        (
            Reason("country", "FR", 6.1, expected_categories={"DE": 0.71, "AT": 0.204}),
            "country = FR, expected DE (71 %), AT (20 %): +6.1",
        ),
    ],
)
def test_a_reason_reads_as_words(reason, words):
    assert str(reason) == words


# Rows by label


def test_a_row_is_found_by_its_label_in_the_index(detector):
    rows = leaves(20, seed=3)
    explanation = detector.explain(rows.set_axis([f"r{i}" for i in range(50, 70)]))
    assert explanation.top("r57") == explanation.top(7) == detector.explain(rows).top(7)
    assert explanation.tops(["r57", 3]) == explanation.tops([7, 3])


def test_an_integer_is_a_position_whatever_the_index(detector):
    rows = leaves(4, seed=3)
    shuffled = detector.explain(rows.iloc[[2, 3, 0, 1]])
    assert shuffled.top(0) == shuffled.top(np.int64(0)) == detector.explain(rows).top(2)
    assert shuffled.top(-1) == shuffled.top(3)


def test_labels_of_several_levels_and_dates_are_found(detector):
    rows = leaves(4, seed=3)
    levels = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    explanation = detector.explain(rows.set_axis(levels))
    assert explanation.top(("b", 1)) == explanation.top(2)
    days = detector.explain(rows.set_axis(pd.date_range("2026-11-16", periods=4)))
    assert days.top("2026-11-18") == days.top(pd.Timestamp("2026-11-18")) == days.top(2)


@pytest.mark.parametrize(
    ("labels", "row", "message"),
    [
        (list("abcd"), "e", "must be a label of X's index; got 'e'"),
        (list("abcd"), 4, "position from 0 to 3; got 4. For an integer label"),
        (list("abca"), "a", r"must stand for one row; 'a' has \[0, 3\]"),
        (None, "a", "without an index must be given by position; got 'a'"),
    ],
)
def test_a_row_that_cannot_be_found_is_named(detector, labels, row, message):
    rows = leaves(4, seed=3)
    given = rows.set_axis(labels) if labels else pl.from_pandas(rows)
    with pytest.raises(UserError, match=message):
        detector.explain(given).top(row)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (8.5, 17.25, "08:30–17:15"),
        (20.1, 5.2, "20:06–05:12"),  # past midnight
        (17.269444444, 17.269444443, "any time"),
        (9.0, 9.0, "09:00"),
    ],
)
def test_a_range_of_times_goes_round_the_clock(low, high, words):
    reason = Reason("when (time of day)", "03:12", 1.0, 12.0, low, high, aspect="time of day")
    assert reason.expectation == words


def test_names_and_cells_that_utf_8_cannot_write_are_escaped_in_tables():
    rng = np.random.default_rng(0)
    cells = np.array(["a\ud800", "b"], dtype=object)[rng.integers(0, 2, 200)]
    rows = pd.DataFrame({0: rng.normal(size=200), 1: pd.Series(cells, dtype=object)})
    rows.columns = pd.Index(["x\udfff", "c"], dtype=object)
    lines = small(max_epochs=1).fit(rows).explain(rows.head(20)).to_frame()
    assert {"x\\udfff", "c"} <= set(lines["column"])
    assert {"a\\ud800", "b"} <= set(lines["value"])
