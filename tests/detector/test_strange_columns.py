"""Columns that say nothing, tables that are tiny or wide."""

import numpy as np
import pandas as pd
import pytest
from factories import small
from patients import LABELS, N_ANOMALIES, SELECTIONS, N, patients

from fewlier import AnomalyDetector, UserError
from fewlier.errors import LeftOutWarning


@pytest.mark.slow
@pytest.mark.parametrize("time", [pd.Timestamp("2024-05-01"), pd.Timedelta("1h")])
def test_a_date_or_duration_that_never_varies_says_nothing_of_a_row(time):
    table = patients().assign(seen=time)
    fitted = small(max_epochs=2).fit(table, LABELS)
    explained = fitted.explain(table[:20])
    place = [name.startswith("seen") for name in explained.columns].index(True)
    np.testing.assert_allclose(explained.contributions[:, place], 0, atol=0.05)


# Columns of every shape


@pytest.mark.parametrize(
    "cells",
    [
        np.full(N, np.nan),
        np.full(N, None),
        np.full(N, 7.0),
        np.full(N, 0.0),
        np.full(N, "same"),
        np.full(N, True),
        np.where(np.arange(N) == 9, 1.0, 0.0),
        np.where(np.arange(N) == 9, 1.0, np.nan),
        np.arange(N) * 1e-300,
        np.linspace(-1e300, 1e300, N),
    ],
    ids=[
        "missing numbers",
        "missing text",
        "constant",
        "zero",
        "constant text",
        "constant bool",
        "almost always zero",
        "almost always missing",
        "tiny",
        "huge",
    ],
)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_strange_column_fits_and_leaves_scores_finite(cells, selection):
    table = patients()[["height", "weight"]].assign(strange=cells)
    scores = small(selection=selection, max_epochs=3).fit(table, LABELS).anomaly_score(table)
    assert np.isfinite(scores).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "value"),
    [(np.full(N, np.nan), 1.0), (np.full(N, 7.0), 9.0), (np.full(N, "same"), "other")],
    ids=["missing everywhere", "constant", "constant text"],
)
def test_a_first_value_in_a_column_that_never_varied_is_surprising(cells, value):
    table = patients()[["height", "weight"]].assign(steady=cells)
    fitted = small().fit(table, LABELS)
    row = table[-1:]
    assert fitted.anomaly_score(row.assign(steady=value)) > fitted.anomaly_score(row)


def test_duplicated_columns_fit_and_disagreement_between_them_is_surprising():
    table = patients(n_anomalies=0)[["height"]].assign(again=lambda t: t["height"])
    fitted = small(max_epochs=30, learning_rate=0.02).fit(table)
    agree, disagree = (
        pd.DataFrame({"height": [165.0], "again": [again]}) for again in (165.0, 180.0)
    )
    assert fitted.anomaly_score(disagree) > fitted.anomaly_score(agree) + 1


def test_two_columns_of_one_name_are_an_error():
    table = patients()[["height", "height"]]
    with pytest.raises(UserError, match="'height'"):
        small().fit(table, LABELS)


@pytest.mark.slow
def test_an_id_is_left_out_with_a_warning_and_accepted_later(tmp_path):
    table = patients()
    table.insert(1, "id", [f"patient {i}" for i in range(N)])
    expected = small(max_epochs=1).fit(patients(), LABELS).anomaly_score(patients())
    with pytest.warns(LeftOutWarning, match=r"'id' \(an identifier: 300 different texts in 300"):
        detector = small(max_epochs=1).fit(table, LABELS)
    assert detector.n_features_in_ == 9
    assert detector.feature_names_in_.tolist() == list(table)
    detector.save(tmp_path / "m.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "m.fewlier")
    assert loaded.feature_names_in_.tolist() == list(table)
    for known in (detector, loaded):
        assert known.anomaly_score(patients()).tolist() == expected.tolist()
        assert known.anomaly_score(table).tolist() == expected.tolist()
        with pytest.raises(UserError, match="unexpected 'name'"):
            known.anomaly_score(patients().assign(name="x"))


@pytest.mark.slow
def test_columns_left_out_of_an_array_may_come_again_or_not():
    rows = patients().to_numpy(dtype=object)
    ids = np.array([[f"patient {i}"] for i in range(N)], dtype=object)
    with pytest.warns(LeftOutWarning):
        detector = small(max_epochs=1).fit(np.hstack([ids, rows]), LABELS)
    scores = detector.anomaly_score(rows)
    assert detector.anomaly_score(np.hstack([ids, rows])).tolist() == scores.tolist()
    with pytest.raises(UserError, match="X has 7 features, but AnomalyDetector is expecting 9"):
        detector.anomaly_score(rows[:, 1:])


@pytest.mark.slow
def test_a_column_to_ignore_is_not_looked_at():
    table = patients().assign(tags=[[i] for i in range(N)])
    detector = small(max_epochs=1, columns={"tags": "ignore"}).fit(table, LABELS)
    assert "1 left out (tags)" in str(detector.summary_)
    assert len(detector.anomaly_score(table.head(3))) == 3


@pytest.mark.slow
def test_two_thousand_columns_fit():
    table = np.random.default_rng(0).normal(size=(60, 2000))
    fitted = small(hidden=(4,), max_epochs=3).fit(table, np.repeat([0, 1], [56, 4]))
    assert np.isfinite(fitted.anomaly_score(table)).all()
    assert fitted.n_features_in_ == 2000


@pytest.mark.slow
def test_one_column_fits():
    table = patients()[["weight"]]
    fitted = small().fit(table, LABELS)
    assert fitted.anomaly_score(table)[:N_ANOMALIES].mean() > fitted.anomaly_score(table).mean()


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_handful_of_rows_fits_and_scores_within_reason(n, selection):
    table = patients(n)
    fitted = small(selection=selection, max_epochs=3, false_alarm_rate=0.5)
    scores = fitted.fit(table, np.arange(n) < 1).anomaly_score(table)
    assert (np.abs(scores) < 1000).all()


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [(), (8, 8), [12]])
def test_any_number_of_hidden_layers_fits(hidden):
    table = patients()
    fitted = small(hidden=hidden, max_epochs=3).fit(table, LABELS)
    assert np.isfinite(fitted.anomaly_score(table)).all()
