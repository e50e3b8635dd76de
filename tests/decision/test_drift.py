"""Whether scored rows still look like the training normals."""

import numpy as np
import pandas as pd
import pytest
from factories import small
from scipy import stats

from fewlier import AnomalyDetector
from fewlier.decision.drift import LEVEL, MIN_DISTANCE, Change, Drift, compare
from fewlier.decision.reference import Reference
from fewlier.errors import FormatError
from fewlier.modelfile.state import State
from fewlier.table import Encoder, Table, infer_schema

CITIES = ["Bern", "Oslo", "Rome"]


def shop(n, seed, gaps=0.1):
    """Return columns of every kind, and one that never has a value."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "weight": rng.normal(50, 10, n),
            "items": rng.poisson(3, n).astype(float),
            "delay": np.where(rng.random(n) < 0.2, 0, rng.lognormal(0, 2, n)),
            "gift": rng.integers(0, 2, n).astype(float),
            "city": rng.choice(CITIES, n, p=[0.6, 0.3, 0.1]),
        }
    )
    return table.mask(rng.random(table.shape) < gaps, None).assign(empty=np.nan)


@pytest.fixture(scope="module")
def detector():
    return small(max_epochs=3, lambdas=(0,)).fit(shop(1500, seed=0))


def counted(n_old, n_new, rng):
    """Compare two samples of one distribution, scores and all."""
    table = Table.of(shop(n_old, rng.integers(2**31)))
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, schema.match(table))
    reference = Reference.from_encoded(encoder, encoder.encode(schema.match(table)))
    fresh = schema.match(Table.of(shop(n_new, rng.integers(2**31))))
    old, new = (
        np.bincount(np.searchsorted(np.arange(20) / 20, rng.random(n)), minlength=21)
        for n in (200, n_new)
    )
    cells = reference.count(encoder.encode(fresh))
    return compare(schema.columns, (old, reference.counts), (new, cells), reference)


@pytest.mark.slow
@pytest.mark.parametrize(("n_old", "n_new"), [(150, 60), (600, 2000)])
def test_rows_like_the_training_normals_raise_no_more_alarms_than_the_level(n_old, n_new):
    rng, n = np.random.default_rng(0), 150
    drifts = [counted(n_old, n_new, rng) for _ in range(n)]
    certain = sum(min(c.p_value for c in drift.changes) <= LEVEL for drift in drifts)
    assert stats.binomtest(certain, n, LEVEL, "greater").pvalue > 1e-3
    assert sum(bool(drift.found) for drift in drifts) <= certain


def test_fresh_normals_look_like_the_training_normals(detector):
    drift = detector.drift(shop(2000, seed=1))
    assert drift.found == drift.columns == ()
    assert str(drift) == "2000 rows look like the training normals."
    assert len(drift.changes) == 1 + 2 * 6


@pytest.mark.parametrize(
    ("column", "what", "values"),
    [
        ("weight", "values", lambda t: t["weight"] + 8),
        ("weight", "values", lambda t: 50 + 3 * (t["weight"] - 50)),
        ("items", "values", lambda t: t["items"] + 2),
        ("items", "values", lambda t: np.where(np.arange(len(t)) % 4, t["items"], -1)),
        ("delay", "values", lambda t: t["delay"] * 10),
        ("gift", "values", lambda _: 1.0),
        ("city", "values", lambda t: t["city"].replace("Bern", "Rome")),
        ("city", "values", lambda t: np.where(np.arange(len(t)) % 3, t["city"], "Paris")),
        ("city", "missing", lambda t: t["city"].where(np.arange(len(t)) % 3 > 0)),
        ("empty", "missing", lambda _: 5000.0),
    ],
)
def test_a_column_that_has_changed_is_named(detector, column, what, values):
    table = shop(800, seed=2)
    drift = detector.drift(table.assign(**{column: values(table)}))
    assert drift.columns == (column,)
    assert what in {change.what for change in drift.found if change.column == column}
    assert "no longer look like the training normals: " in str(drift)
    assert f" of {column} (" in str(drift)


@pytest.mark.slow
def test_rows_that_are_odd_without_any_odd_column_show_in_the_scores():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(0, 0.05, 1000)})
    quick = {"max_epochs": 60, "learning_rate": 0.01, "lambdas": (0,)}
    detector = small(**quick).fit(table)
    drift = detector.drift(table.assign(y=rng.permutation(table["y"])))
    assert [change.what for change in drift.found] == ["scores"]
    assert "training normals: scores (" in str(drift)


@pytest.mark.slow
def test_a_certain_change_that_is_small_is_no_drift(detector):
    drift = detector.drift(shop(60_000, seed=3).assign(weight=lambda t: t["weight"] + 1))
    weight = drift.changes[1]
    assert weight[:2] == ("weight", "values")
    assert weight.p_value < LEVEL
    assert weight.distance < MIN_DISTANCE
    assert drift.columns == ()


def test_the_statistics_are_those_of_scipy():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=60), rng.normal(0.5, 1, 40)  # few enough for an edge at each
    drift = compared({"x": old}, {"x": new})
    expected = stats.ks_2samp(old, new, method="asymp")
    values = next(c for c in drift.changes if c[:2] == ("x", "values"))
    assert values.distance == pytest.approx(expected.statistic, abs=1 / 60)
    old, new = rng.choice(CITIES, 300), rng.choice(CITIES, 200, p=[0.5, 0.3, 0.2])
    drift = compared({"x": old}, {"x": new})
    table = [[(part == city).sum() for city in CITIES] for part in (old, new)]
    expected = stats.chi2_contingency(table, False, "log-likelihood")
    values = next(c for c in drift.changes if c[:2] == ("x", "values"))
    assert values.p_value == pytest.approx(min(3 * expected.pvalue, 1))  # the smallest of three


def compared(old, new):
    """Return how one table differs from another; both have the same scores."""
    table = Table.of(pd.DataFrame(old))
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, schema.match(table))
    reference = Reference.from_encoded(encoder, encoder.encode(schema.match(table)))
    cells = reference.count(encoder.encode(schema.match(Table.of(pd.DataFrame(new)))))
    scores = np.array([50, 50])
    return compare(schema.columns, (scores, reference.counts), (scores, cells), reference)


def test_few_rows_or_none_are_no_drift(detector):
    for n in (0, 1, 3):
        assert detector.drift(shop(n, seed=4) if n else shop(1, seed=4)[:0]).found == ()


def test_a_drift_of_many_columns_names_the_farthest():
    drift = Drift(5, tuple(Change(f"c{d}", "values", 0.2 + 0.01 * d, 0.001) for d in range(9)))
    assert "normals: values of c8 (0.28), values of c7 (0.27)" in str(drift)
    assert str(drift).endswith("values of c3 (0.23) and 3 more. Check the data, or fit again.")
    assert len(drift.columns) == 9


def test_a_drift_reads_as_json():
    drift = Drift(5, (Change(None, "scores", 0.5, 0.001), Change("x", "missing", 0.01, 0.001)))
    found = drift.to_json()
    assert found["drifted"] is True
    assert found["columns"] == []
    assert [change["is_drift"] for change in found["changes"]] == [True, False]
    assert found["changes"][0]["distance"] == 0.5


@pytest.mark.slow
def test_the_reference_travels_in_the_file_and_through_updates(detector, tmp_path):
    path = tmp_path / "m.fewlier"
    table = shop(300, seed=5).assign(weight=lambda t: t["weight"] + 8)
    expected = detector.drift(table)
    detector.save(path)
    loaded = AnomalyDetector.load(path)
    assert loaded.drift(table) == expected
    loaded.update(shop(20, seed=6), np.arange(20) < 3)
    assert loaded.drift(table).columns == expected.columns


def test_a_table_of_categories_alone_has_a_reference_without_edges(tmp_path):
    table = shop(200, seed=7)[["city", "gift"]]
    quick = {"max_epochs": 1, "lambdas": (0,), "false_alarm_rate": 0.5}
    small(**quick).fit(table).save(tmp_path / "m.fewlier")
    assert AnomalyDetector.load(tmp_path / "m.fewlier").drift(table).found == ()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("edges", lambda a: a[::-1], "the edges of its reference are not sorted"),
        ("counts", lambda a: -1 - a, "its reference has negative counts"),
        ("counts", lambda a: a[:-1], "'counts' is int64"),
    ],
)
def test_a_reference_that_cannot_be_is_refused(detector, name, change, message):
    encoder, (record, arrays) = detector.model_.encoder, detector.model_.reference.state().flat()
    with pytest.raises(FormatError, match=message):
        Reference.from_state(State(record, arrays | {name: change(arrays[name])}), encoder)
    with pytest.raises(FormatError, match="its reference fits other columns"):
        Reference.from_state(State({"n_edges": [3]}, arrays), encoder)
    record["share"] = 1.5
    with pytest.raises(FormatError, match="a row of its reference counts more than one"):
        Reference.from_state(State(record, arrays), encoder)


@pytest.mark.slow
@pytest.mark.parametrize("n_copies", [1, 6])
def test_copies_do_not_make_a_drift_certain(n_copies):
    """Each of six copies counted as a row: 46 of 60 fresh batches were called drift."""
    n_found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = np.repeat(rng.normal(size=(400 // n_copies, 4)), n_copies, 0)
        detector = small(max_epochs=1, lambdas=(0,), false_alarm_rate=0.2).fit(rows)
        n_found += sum(bool(detector.drift(rng.normal(size=(1000, 4))).found) for _ in range(5))
    assert stats.binomtest(n_found, 60, LEVEL, "greater").pvalue > 1e-3
    assert detector.drift(rng.normal(size=(1000, 4)) + 1.5).found
