"""A detector on tables with dates: what is odd about a date, what is not, and what is said."""

import io
import json
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewlier import AnomalyDetector, FewlierWarning, Made, Training
from fewlier.reasons.reason import Reason
from fewlier.table import Table

N, WRITTEN = 900, "%d/%m/%Y %H:%M"


def orders(n=N, start="2026-01-05", seed=0, days=90):
    """Orders of weekdays from 8 to 18, and of a few hours on weekends."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp(start) + pd.to_timedelta(rng.integers(0, days, n), unit="D")
    is_weekday = day.day_of_week < 5
    hour = np.where(is_weekday, rng.normal(13, 2, n).clip(8, 18), rng.normal(10, 0.5, n))
    when = day + pd.to_timedelta((60 * hour).round(), unit="min")
    return pd.DataFrame({"when": when, "amount": rng.normal(50, 10, n).round(2)})


def as_text(frame, pattern=WRITTEN):
    return frame.assign(when=frame["when"].dt.strftime(pattern))


@pytest.fixture(scope="module")
def detector():
    settings = {
        "training": Training(max_epochs=25),
        "density": Made(hidden=(64,)),
        "false_alarm_rate": 0.05,
        "random_state": 0,
    }
    return AnomalyDetector(**settings).fit(as_text(orders()))


def order_at(when):
    return pd.DataFrame({"when": [when], "amount": [50.0]})


@pytest.mark.slow
def test_an_unusual_time_is_odd_and_the_reason_says_why(detector):
    usual, night = order_at("04/03/2026 13:12"), order_at("04/03/2026 03:12")
    assert detector.anomaly_score(night) > detector.threshold_ > detector.anomaly_score(usual)
    reason = detector.explain(night).top(0, n=1)[0]
    assert reason.column == "when (time of day)"
    assert reason.value == "04/03/2026 03:12"
    assert 7 < reason.expected_low < 11 < reason.expected_high < 19
    assert str(reason).startswith("when (time of day) = 04/03/2026 03:12, expected ")
    low, high = reason.expectation.split("–")
    assert "07:00" < low < "11:00" < high < "19:00"


@pytest.mark.slow
def test_the_same_hour_is_odd_on_a_weekend_only(detector):
    friday, saturday = order_at("06/03/2026 16:30"), order_at("07/03/2026 16:30")
    assert detector.anomaly_score(saturday) > detector.anomaly_score(friday) + 1
    reasons = {reason.column: reason for reason in detector.explain(saturday).top(0, n=4)}
    assert reasons["when (weekday)"].value == "07/03/2026 16:30 (Saturday)"
    assert set(reasons["when (weekday)"].expected_categories) <= {
        *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("start", ["2026-04-06", "2031-03-31"])
def test_rows_to_come_are_no_anomalies_and_time_that_passes_is_no_drift(detector, start):
    now, later = (as_text(orders(2000, s, seed=7)) for s in ("2026-01-05", start))
    alarms = [(detector.anomaly_score(rows) > detector.threshold_).mean() for rows in (now, later)]
    assert alarms[1] < 1.5 * alarms[0] + 0.02
    for rows in (now, later):
        assert "when (date)" not in detector.drift(rows).columns
    passed = [change for change in detector.drift(later).changes if change.what == "time"]
    assert [change.column for change in passed] == ["when (date)"]
    assert passed[0].distance > 0.5


def test_the_columns_of_the_detector_are_those_of_the_user(detector):
    assert detector.feature_names_in_.tolist() == ["when", "amount"]
    assert detector.n_features_in_ == 2
    explanation = detector.explain(as_text(orders(3)))
    assert explanation.columns[:3] == ("when (date)", "when (time of day)", "when (weekday)")
    lines = explanation.to_frame().astype(object).replace({np.nan: None}).to_dict("records")
    assert lines[0]["value"] == as_text(orders(3))["when"][0]
    assert {line["aspect"] for line in lines} == {"date", "time of day", "weekday", None}


def test_expected_dates_are_written_as_the_dates_of_the_column(detector):
    reasons = detector.explain(order_at("06/03/2026 03:12")).top(0, n=4)
    (date,) = (reason for reason in reasons if reason.aspect == "date")
    ends = date.expectation.split(" to ")
    assert len(ends) == 2
    for end in ends:
        assert datetime.strptime(end, "%d/%m/%Y").year in (2025, 2026)
    american = Reason("t (time of day)", "3:12 AM", 1.0, 12.0, 8.5, 17.25, aspect="time of day")
    american = american._replace(form="%m/%d/%Y %I:%M %p")
    assert american.expectation == "08:30 AM–05:15 PM"


def test_text_native_types_and_arrays_score_alike(detector):
    rows = orders(50, seed=3)
    scores = detector.anomaly_score(as_text(rows))
    np.testing.assert_array_equal(detector.anomaly_score(rows), scores)
    np.testing.assert_array_equal(detector.anomaly_score(pa.Table.from_pandas(rows)), scores)
    with pytest.warns(FewlierWarning, match="does not have valid feature names"):
        by_position = detector.anomaly_score(rows.to_numpy())
    np.testing.assert_array_equal(by_position, scores)


def test_a_saved_detector_reads_dates_as_before(detector, tmp_path):
    detector.save(tmp_path / "model.fewlier")
    again = AnomalyDetector.load(tmp_path / "model.fewlier")
    rows = as_text(orders(50, seed=3))
    np.testing.assert_array_equal(again.anomaly_score(rows), detector.anomaly_score(rows))
    assert again.feature_names_in_.tolist() == ["when", "amount"]


def test_a_cell_in_another_form_is_missing_and_a_warning_names_it(detector):
    with pytest.warns(FewlierWarning, match=r"1 in when \(first '2026-03-04 13:12' in row 0\)"):
        score = detector.anomaly_score(order_at("2026-03-04 13:12"))
    assert score == detector.anomaly_score(order_at(None))


@pytest.mark.slow
def test_labels_can_be_added_later():
    settings = {
        "density": Made(hidden=(16,)),
        "training": Training(lambdas=(0, 10), max_epochs=2),
        "false_alarm_rate": 0.05,
    }
    fitted = AnomalyDetector(**settings, random_state=0).fit(as_text(orders(400)))
    night = pd.concat([order_at(f"{day:02d}/03/2026 03:12") for day in range(1, 7)])
    updated = fitted.update(night, np.ones(6))
    assert updated.summary_.n_anomaly == 6
    assert updated.feature_names_in_.tolist() == ["when", "amount"]


# On the command line


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orders")
    rows = as_text(orders(400))
    rows.assign(odd=0).to_csv(folder / "train.csv", index=False)
    odd = pd.concat([rows[:30], order_at("04/03/2026 03:12"), order_at("2026-03-04")])
    odd.to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(files):
    settings = {
        "training": Training(max_epochs=20),
        "density": Made(hidden=(32,)),
        "false_alarm_rate": 0.05,
        "random_state": 0,
    }
    fitted = AnomalyDetector(**settings).fit(pd.read_csv(files / "train.csv").drop(columns="odd"))
    fitted.save(files / "model.fewlier")
    return files / "model.fewlier"


@pytest.mark.slow
def test_score_keeps_dates_as_written_and_names_those_in_another_form(fewlier, files, model):
    done = fewlier("score", files / "new.csv", "-m", model)
    assert done.code == 0
    assert "1 in when (first '2026-03-04' in row 31)" in done.err
    scored = pd.read_csv(io.BytesIO(done.out))
    assert scored["when"].tolist() == pd.read_csv(files / "new.csv")["when"].tolist()
    assert scored["reason"][30].startswith("when (time of day) = 04/03/2026 03:12, expected ")


@pytest.mark.slow
def test_parquet_gets_timestamps_that_score_alike(fewlier, files, model, tmp_path):
    target = tmp_path / "scored.parquet"
    assert fewlier("score", files / "new.csv", "-m", model, "-o", target).code == 0
    scored = pq.read_table(target)
    assert scored.schema.field("when").type == pa.timestamp("us")
    assert scored["when"][30].as_py() == pd.Timestamp("2026-03-04 03:12")
    assert scored["when"][31].as_py() is None
    again = AnomalyDetector.load(model).anomaly_score(scored.select(["when", "amount"]))
    np.testing.assert_array_equal(again, scored["anomaly_score"].to_numpy())


@pytest.mark.slow
def test_explain_inspect_and_report_show_dates(fewlier, files, model, tmp_path):
    done = fewlier("explain", files / "new.csv", "-m", model, "--top", "2", "--json")
    assert "1 in when (first '2026-03-04' in row 31)" in done.err
    reasons = [r for row in json.loads(done.out)["rows"] for r in row["reasons"]]
    assert "04/03/2026 03:12" in {reason["value"] for reason in reasons}
    shown = fewlier("inspect", model).out.decode()
    assert "when (time of day)" in shown
    assert f"dates in when, written as {WRITTEN}" in shown
    page = tmp_path / "page.html"
    assert fewlier("report", files / "new.csv", "-m", model, "-o", page).code == 0
    assert "04/03/2026 03:12" in page.read_text()


def test_an_ambiguous_column_is_refused_until_it_is_declared(fewlier, tmp_path):
    dates = [f"{1 + day % 12:02d}/{1 + day % 11:02d}/2026" for day in range(60)]
    pd.DataFrame({"when": dates, "x": range(60)}).to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.fewlier", "--max-epochs", "1")
    done = fewlier(*fit)
    assert done.code == 2
    assert "Column 'when' does not show which day '12/01/2026' is" in done.err
    assert "--column when=%d/%m/%Y or --column when=%m/%d/%Y" in done.err
    assert fewlier(*fit, "--column", "when=%m/%d/%Y").code == 0
    schema = AnomalyDetector.load(tmp_path / "m.fewlier").model_.encoder.schema
    assert schema.sources == ("when", "x")
    assert schema.match(Table.of(pd.DataFrame({"when": dates, "x": 1.0}))).n_rows == 60
