"""What a detector makes of tables, labels, validation rows and seeds."""

import re
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from factories import small
from sklearn.metrics import roc_auc_score

from fewlier import AnomalyDetector, FewlierWarning, UserError
from fewlier.density.conditionals.categorical import Categorical
from fewlier.density.conditionals.gaussian_mixture import GaussianMixture
from fewlier.errors import LeftOutWarning

SELECTIONS = ["average", "best"]
N, N_ANOMALIES = 300, 6
LABELS = np.repeat([1, 0], [N_ANOMALIES, N - N_ANOMALIES])
ROW_0 = np.arange(N) == 0


def patients(n=N, seed=0, n_anomalies=N_ANOMALIES):
    """Return a table with a column of every kind; the first rows weigh too much."""
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 10, n)
    weight = height - 100 + rng.normal(0, 3, n) + 40 * (np.arange(n) < n_anomalies)
    return pd.DataFrame(
        {
            "height": height,
            "weight": weight,
            "visits": rng.poisson(6, n).astype(float),
            "stars": rng.integers(1, 6, n).astype(float),
            "spend": rng.lognormal(2, 1.5, n),
            "insured": rng.integers(0, 2, n).astype(float),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "smoker": rng.random(n) < 0.3,
        }
    )


def with_missing_cells(table, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    cells = table.astype({"smoker": object})
    return cells.mask(rng.random(table.shape) < share, None)


def typical(**changes):
    """Return one unremarkable patient, some cells changed."""
    cells = {
        "height": 170.0,
        "weight": 70.0,
        "visits": 6.0,
        "stars": 3.0,
        "spend": 8.0,
        "insured": 1.0,
        "city": "Oslo",
        "smoker": False,
    }
    return pd.DataFrame([cells | changes])


NOTHING = typical().astype(object).mask(np.ones((1, 8), dtype=bool), None)


def density_on(detector, grid):
    """Return p at points of the only column, by the anomaly score."""
    return np.exp(-detector.anomaly_score(np.asarray(grid)[:, None]))


@pytest.fixture(scope="module", params=SELECTIONS)
def detector(request):
    return small(selection=request.param, columns={"visits": "count"}).fit(patients(), LABELS)


@pytest.fixture(scope="module", params=SELECTIONS)
def detector_of_gaps(request):
    """Fitted to a table with missing cells in every column."""
    return small(selection=request.param).fit(with_missing_cells(patients()), LABELS)


# Tables of any library


@pytest.mark.slow
@pytest.mark.parametrize(
    "convert",
    [
        pl.from_pandas,
        lambda t: pl.from_pandas(t).lazy(),
        lambda t: pa.Table.from_pandas(t, preserve_index=False),
        lambda t: duckdb.from_df(t),
        pd.DataFrame.to_numpy,
    ],
    ids=["polars", "lazy polars", "pyarrow", "duckdb", "numpy"],
)
@pytest.mark.parametrize("share", [0.0, 0.2], ids=["whole", "with missing cells"])
def test_tables_of_every_library_give_the_scores_of_pandas(convert, share):
    table = with_missing_cells(patients(), share)
    expected = small(max_epochs=3).fit(table, LABELS).anomaly_score(table)
    converted = convert(table)
    scores = small(max_epochs=3).fit(converted, LABELS).anomaly_score(converted)
    np.testing.assert_array_equal(scores, expected)
    assert np.isfinite(scores).all()


def test_columns_in_another_order_are_matched_by_name(detector):
    table = patients(seed=1)
    shuffled = table[list(reversed(table.columns))]
    np.testing.assert_array_equal(detector.anomaly_score(shuffled), detector.anomaly_score(table))


def test_text_that_is_a_number_scores_as_the_number(detector):
    table = patients(seed=1)
    text = table.astype({"height": str, "visits": str})
    np.testing.assert_array_equal(detector.anomaly_score(text), detector.anomaly_score(table))


@pytest.mark.parametrize(
    "method", ["anomaly_score", "predict", "predict_proba", "score_samples", "p_value", "explain"]
)
def test_missing_and_extra_columns_are_errors_that_name_them(detector, method):
    table = patients(5)
    with pytest.raises(UserError, match=r"8 columns of training; got it without 'city'\."):
        getattr(detector, method)(table.drop(columns="city"))
    with pytest.raises(UserError, match=r"with the unexpected 'age'\. Add, drop or rename"):
        getattr(detector, method)(table.assign(age=1.0))
    with pytest.raises(UserError, match="without 'height' and with the unexpected 'size'"):
        getattr(detector, method)(table.rename(columns={"height": "size"}))


def test_text_in_a_numeric_column_is_missing_and_a_warning_names_it(detector):
    table = patients(3).astype({"height": object})
    table.loc[1, "height"] = "tall"
    with pytest.warns(FewlierWarning, match=r"1 in height \(first 'tall' in row 1\)"):
        scores = detector.anomaly_score(table)
    table.loc[1, "height"] = None
    assert scores.tolist() == detector.anomaly_score(table).tolist()


def test_a_table_without_rows_has_no_scores(detector):
    none = patients(5)[:0]
    assert detector.anomaly_score(none).shape == (0,)
    assert detector.score_samples(none).shape == (0,)
    assert detector.predict(none).shape == (0,)
    assert detector.predict_proba(none).shape == (0, 2)
    assert detector.explain(none).contributions.shape == (0, 8)


@pytest.mark.parametrize("time", [pd.Timestamp("2024-05-01"), pd.Timedelta("1h")])
def test_a_date_or_duration_that_never_varies_says_nothing_of_a_row(time):
    table = patients().assign(seen=time)
    fitted = small(max_epochs=2).fit(table, LABELS)
    explained = fitted.explain(table[:20])
    place = [name.startswith("seen") for name in explained.columns].index(True)
    np.testing.assert_allclose(explained.contributions[:, place], 0, atol=0.05)


# Values never seen


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("height", 1e300),
        ("height", -1e300),
        ("height", 300.0),
        ("weight", 1e300),
        ("visits", 1e300),  # a Poisson
        ("visits", 200.0),
        ("visits", -1.0),
        ("visits", 2.5),
        ("stars", 1e300),  # scored value by value
        ("stars", 6.0),
        ("stars", -1.0),
        ("stars", 2.5),
        ("spend", 1e300),
        ("spend", -1.0),
        ("insured", 2.0),
        ("insured", -1e300),
        ("insured", 0.5),
        ("city", "Paris"),
        ("city", 7.0),
        ("smoker", "perhaps"),
    ],
)
def test_a_value_never_seen_is_more_anomalous_than_a_usual_one(detector, column, value):
    usual, odd = typical(), typical(**{column: value})
    assert np.isfinite(detector.anomaly_score(odd)).all()
    assert np.isfinite(detector.score_samples(odd)).all()
    assert detector.anomaly_score(odd) > detector.anomaly_score(usual)
    assert detector.explain(odd).top(0)[0].column == column


@pytest.mark.parametrize("seen", ["Bern", "Oslo", "Rome"])
def test_an_unseen_category_is_more_anomalous_than_any_seen_one(detector, seen):
    scores = detector.anomaly_score(pd.concat([typical(city="Paris"), typical(city=seen)]))
    assert scores[0] > scores[1]


def test_the_farther_a_value_the_more_anomalous(detector):
    heights = [200.0, 250.0, 1e3, 1e6, 1e30, 1e300]
    scores = detector.anomaly_score(pd.concat([typical(height=height) for height in heights]))
    assert (np.diff(scores) > 0).all()


def test_infinite_cells_are_an_error(detector):
    with pytest.raises(UserError, match="Column 'height' must hold finite numbers"):
        detector.anomaly_score(typical(height=np.inf))


# Missing cells


@pytest.mark.parametrize("column", patients(3).columns)
def test_a_cell_missing_where_training_missed_none_is_surprising(detector, column):
    scores = detector.anomaly_score(pd.concat([typical(**{column: None}), typical()]))
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]


def test_a_row_without_any_cell_is_no_more_normal_than_the_median_row(detector):
    assert detector.anomaly_score(NOTHING) >= np.median(detector.anomaly_score(patients()))


@pytest.mark.slow
def test_nor_is_it_where_cells_were_missing_in_training(detector_of_gaps):
    scores = detector_of_gaps.anomaly_score(with_missing_cells(patients()))
    assert detector_of_gaps.anomaly_score(NOTHING) >= np.median(scores)


def test_cells_left_out_at_random_still_let_anomalies_stand_out(detector_of_gaps):
    fresh = with_missing_cells(patients(seed=1, n_anomalies=60), share=0.1, seed=1)
    scores = detector_of_gaps.anomaly_score(fresh)
    assert np.isfinite(scores).all()
    assert roc_auc_score(np.arange(N) < 60, scores) > 0.8


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


def test_columns_left_out_of_an_array_may_come_again_or_not():
    rows = patients().to_numpy(dtype=object)
    ids = np.array([[f"patient {i}"] for i in range(N)], dtype=object)
    with pytest.warns(LeftOutWarning):
        detector = small(max_epochs=1).fit(np.hstack([ids, rows]), LABELS)
    scores = detector.anomaly_score(rows)
    assert detector.anomaly_score(np.hstack([ids, rows])).tolist() == scores.tolist()
    with pytest.raises(UserError, match="X has 7 features, but AnomalyDetector is expecting 9"):
        detector.anomaly_score(rows[:, 1:])


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


@pytest.mark.parametrize("hidden", [(), (8, 8), [12]])
def test_any_number_of_hidden_layers_fits(hidden):
    table = patients()
    fitted = small(hidden=hidden, max_epochs=3).fit(table, LABELS)
    assert np.isfinite(fitted.anomaly_score(table)).all()


# Kinds and conditionals


INFERRED = {
    "height": "real",
    "weight": "real",
    "visits": "count as category",
    "stars": "count as category",
    "spend": "positive",
    "insured": "binary",
    "city": "category",
    "smoker": "category",
}


def test_kinds_are_inferred_and_shown(detector_of_gaps):
    assert detector_of_gaps.summary_.kinds == INFERRED


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"stars": "count"}, "count"),
        ({"stars": "real"}, "count as real"),
        ({"stars": "category"}, "count as category"),
        ({"stars": "positive"}, "count as positive"),
    ],
)
def test_a_declared_kind_takes_the_place_of_the_inferred_one(columns, kind):
    table = patients()
    fitted = small(columns=columns, max_epochs=3).fit(table, LABELS)
    assert fitted.summary_.kinds["stars"] == kind
    assert np.isfinite(fitted.anomaly_score(table)).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"hight": "real"}, "must name a column of the table; got 'hight'.*'height'"),
        ({"height": "gauss"}, "Column 'height' must be declared one of 'real'.*got 'gauss'"),
        ({"height": "count"}, r"Column 'height' is declared 'count' but has \d+ fractional"),
        ({"stars": "binary"}, r"Column 'stars' is declared 'binary' but has 5 different values"),
        ({"city": "real"}, r"Column 'city' must hold numbers; got the text"),
        ("gauss", "Every column must be declared one of 'real'.*got 'gauss'"),
    ],
)
def test_a_declaration_that_cannot_hold_is_an_error(columns, message):
    with pytest.raises(UserError, match=message):
        small(columns=columns).fit(patients(), LABELS)


def test_columns_real_scores_every_numeric_column_by_a_mixture_of_gaussians():
    fitted = small(columns="real", selection="best", max_epochs=3).fit(patients(), LABELS)
    assert fitted.summary_.kinds == INFERRED | {
        "visits": "count as real",
        "stars": "count as real",
        "spend": "positive as real",
        "insured": "binary as real",
    }
    groups = fitted.model_.ensemble.density.joint.groups
    n_columns = {type(group.conditional): len(group.columns) for group in groups}
    assert n_columns == {GaussianMixture: 6, Categorical: 2}


@pytest.mark.parametrize(
    ("columns", "changed"),
    [
        ({"spend": "gaussian_mixture"}, {"spend": "positive as real"}),
        ({"stars": "poisson"}, {"stars": "count"}),
        ({"stars": "gamma"}, {"stars": "count as positive"}),
        ({"insured": "categorical"}, {"insured": "binary as category"}),
        ({"city": "categorical"}, {}),
        ("poisson", {"stars": "count", "insured": "binary as count"}),
    ],
)
def test_a_distribution_declares_a_column_to_be_what_it_scores(columns, changed):
    table = patients()
    fitted = small(columns=columns, max_epochs=1).fit(table, LABELS)
    assert fitted.summary_.kinds == INFERRED | changed
    assert np.isfinite(fitted.anomaly_score(table)).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"hight": "poisson"}, "must name a column of the table; got 'hight'"),
        ({"stars": "beta"}, "Column 'stars' must be declared one of 'real'.*got 'beta'"),
        ({"city": "gaussian_mixture"}, "Column 'city' must hold numbers"),
        ({"height": "poisson"}, "Column 'height' is declared 'count' but has"),
    ],
)
def test_a_distribution_that_cannot_score_a_column_is_an_error(columns, message):
    with pytest.raises(UserError, match=message):
        small(columns=columns).fit(patients(), LABELS)


# The score as a density


def test_with_best_the_score_is_minus_the_log_density():
    table = with_missing_cells(patients())
    fitted = small(selection="best").fit(table, LABELS)
    odd = pd.concat([table, typical(height=1e300), typical(city="Paris"), typical(visits=-1.0)])
    np.testing.assert_allclose(fitted.anomaly_score(odd), -fitted.score_samples(odd), rtol=1e-12)
    assert fitted.score_unit_ == "nats"


def test_with_best_a_real_column_integrates_to_one_in_the_units_of_the_user():
    height = patients()[["height"]].to_numpy()
    fitted = small(selection="best").fit(height, LABELS)
    low, span = height.min(), np.ptp(height)
    grid = np.linspace(low - span, low + 2 * span, 20_001)
    assert np.trapezoid(density_on(fitted, grid), grid) == pytest.approx(1, abs=1e-3)


def test_with_best_a_real_column_beside_a_category_integrates_to_one():
    table = patients()[["height", "city"]]
    fitted = small(selection="best").fit(table, LABELS)
    low, span = table["height"].min(), np.ptp(table["height"])
    grid = np.linspace(low - span, low + 2 * span, 4001)
    total = sum(
        np.trapezoid(
            np.exp(fitted.score_samples(pd.DataFrame({"height": grid, "city": city}))), grid
        )
        for city in ("Bern", "Oslo", "Rome")
    )
    assert total == pytest.approx(1, abs=1e-3)


def test_with_best_counts_sum_to_one_and_as_real_numbers_integrate_to_one():
    visits = patients()[["visits"]].to_numpy()
    # Of so few distinct values one or two are held back.
    rate = {"selection": "best", "false_alarm_rate": 0.5}
    counted = small(**rate, columns={"x0": "count"}).fit(visits, LABELS)
    assert density_on(counted, np.arange(100)).sum() == pytest.approx(1, abs=1e-5)
    measured = small(**rate, columns="real").fit(visits, LABELS)
    grid = np.linspace(-visits.max(), 2 * visits.max(), 20_001)
    assert np.trapezoid(density_on(measured, grid), grid) == pytest.approx(1, abs=1e-3)


def test_with_average_the_density_is_that_of_the_mixture_of_members():
    height = patients()[["height"]].to_numpy()
    fitted = small(selection="average").fit(height, LABELS)
    low, span = height.min(), np.ptp(height)
    grid = np.linspace(low - span, low + 2 * span, 20_001)
    density = np.exp(fitted.score_samples(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
    assert fitted.score_unit_ == "standard units"


# Labels


def notes_of(y, **changes):
    return small(max_epochs=2, **changes).fit(patients(), y).summary_.notes


@pytest.mark.parametrize("selection", SELECTIONS)
def test_labels_on_every_row_need_no_note(selection):
    assert notes_of(LABELS, selection=selection) == ()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_without_a_labelled_anomaly_the_notes_say_that_it_is_a_density_of_normals(selection):
    unlabelled, density = notes_of(None, selection=selection)
    assert unlabelled.startswith("300 unlabelled rows train as normal rows, those far less likely")
    plain = "300 unlabelled rows train as normal rows."
    assert notes_of(None, selection=selection, unlabelled="normal") == (plain, density)
    assert density.startswith("No labelled anomaly: a density of the normal rows alone")
    assert notes_of(np.zeros(N), selection=selection) == (density,)


@pytest.mark.parametrize(
    ("selection", "what"),
    [("average", "to validate on: all of them train"), ("best", "to train on: lambda is 0")],
)
def test_the_notes_say_what_a_single_labelled_anomaly_does(selection, what):
    (note,) = notes_of(ROW_0, selection=selection)
    assert note.startswith(f"No labelled anomaly is left {what}")


def test_the_notes_say_when_labels_are_among_the_validation_rows_only():
    held, y = patients(100, seed=1), np.repeat([1, 0], [6, 94])
    fitted = small(max_epochs=3).fit(patients(), None, validation=(held, y))
    unlabelled, note = fitted.summary_.notes
    assert unlabelled.startswith(f"{N} unlabelled rows train as normal rows, those far less")
    assert note.startswith("No labelled anomaly is left to train on")


@pytest.mark.slow
def test_labels_make_their_like_stand_out():
    table, fresh = patients(), patients(seed=1, n_anomalies=50)
    blind, one, six = (small(max_epochs=20).fit(table, y) for y in (None, ROW_0, LABELS))
    assert one.decision_function(table[:1]) > blind.decision_function(table[:1])
    blind_auc, six_auc = (
        roc_auc_score(np.arange(N) < 50, fitted.anomaly_score(fresh)) for fitted in (blind, six)
    )
    assert six_auc > blind_auc + 0.02
    assert six_auc > 0.9


def with_a_hidden_cluster(seed=0, n=270):
    """Return 300 rows, the last 30 of them anomalies that lie together, and which those are."""
    rng = np.random.default_rng(seed)
    cluster = rng.normal([4, -4, 4, 0], 0.3, size=(300 - n, 4))
    return np.concatenate([rng.normal(size=(n, 4)), cluster]), np.arange(300) >= n


def hidden_cluster_scores(y=None, **changes):
    X, _ = with_a_hidden_cluster()
    sizes = {"hidden": (32,), "n_orderings": 3}
    detector = small(**sizes, max_epochs=40, learning_rate=0.02, **changes)
    return detector.fit(X, y), detector.anomaly_score(with_a_hidden_cluster(seed=1)[0])


@pytest.mark.slow
def test_a_cluster_of_hidden_anomalies_is_found_and_learned_where_taken_for_normal():
    is_hidden = with_a_hidden_cluster()[1]
    robust, scores = hidden_cluster_scores()
    _, trusting_scores = hidden_cluster_scores(unlabelled="normal")
    assert roc_auc_score(is_hidden, scores) > 0.99
    assert roc_auc_score(is_hidden, trusting_scores) < 0.9
    assert scores[is_hidden].min() > 2 * np.median(trusting_scores[is_hidden])
    note = robust.summary_.notes[0]
    (n_left_out,) = re.findall(r"(\d+) of 300 looked at count less than half", note)
    assert 15 < int(n_left_out) < 45


@pytest.mark.slow
def test_without_y_rows_are_protected_as_unlabelled_ones_are():
    y = np.full(300, np.nan)
    np.testing.assert_array_equal(hidden_cluster_scores()[1], hidden_cluster_scores(y)[1])


@pytest.mark.slow
def test_labelled_normals_train_the_same_whatever_unlabelled_rows_would():
    scores = [
        small(max_epochs=3, unlabelled=unlabelled).fit(patients(), LABELS).anomaly_score(patients())
        for unlabelled in ("robust", "normal")
    ]
    np.testing.assert_array_equal(*scores)


@pytest.mark.slow
def test_the_guarantee_says_when_hidden_anomalies_may_be_behind_it():
    table, y = patients(), LABELS.astype(float)
    told = [small(max_epochs=1).fit(table, y)]
    y[-250:] = np.nan
    told += [small(max_epochs=1, unlabelled=u).fit(table, y) for u in ("robust", "normal")]
    y[-250:-200] = 0  # a third of the rows: enough to calibrate alone
    told.append(small(max_epochs=1).fit(table, y))
    texts = [fitted.model_.calibration.guarantee for fitted in told]
    assert ["alarms rarer" in text for text in texts] == [False, True, False, False]


@pytest.mark.slow
def test_unlabelled_rows_train_as_normal_rows_whichever_way_they_are_written():
    table = patients()
    scores = []
    for unlabelled in (0, -1, np.nan, None):
        y = LABELS.astype(object)
        y[-100:] = unlabelled
        fitted = small(max_epochs=3, unlabelled="normal").fit(table, y)
        scores.append(fitted.anomaly_score(table))
        counts = [fitted.summary_.n_normal, fitted.summary_.n_anomaly, fitted.summary_.n_unlabelled]
        assert counts == ([294, 6, 0] if unlabelled == 0 else [194, 6, 100])
        note = "100 unlabelled rows train as normal rows."
        assert fitted.summary_.notes == (() if unlabelled == 0 else (note,))
    np.testing.assert_array_equal(scores, np.broadcast_to(scores[0], (4, N)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(N), "one that is not labelled an anomaly; got 300 rows, 300 of the class 1"),
        (np.where(LABELS, 1, -1), "opposite meaning"),
        (LABELS + 1, "Only binary classification"),
        (LABELS[1:], "got 299 labels for 300 rows"),
    ],
)
def test_labels_that_cannot_be_are_errors(y, message):
    with pytest.raises(UserError, match=message):
        small().fit(patients(), y)


# Validation rows of the user's own


def test_given_validation_rows_nothing_is_split_off_the_training_rows():
    training, held = patients(), patients(100, seed=1)
    y = np.repeat([1, 0], [6, 94])
    fitted = small(max_epochs=3).fit(training, LABELS, validation=(held, y))
    assert {line.fold for line in fitted.history_} == {0}
    assert {line.n_anomalies for line in fitted.history_} == {N_ANOMALIES}
    assert fitted.model_.encoder.n_rows == N - N_ANOMALIES
    held_back = np.sort(fitted.anomaly_score(held[6:]))
    np.testing.assert_allclose(fitted.model_.calibration.normal_scores, held_back)
    assert fitted.model_.calibration.guarantee.startswith("none")
    assert fitted.decision_scores_.shape == (N,)


def test_given_validation_rows_choose_the_member():
    held, y = patients(100, seed=1), np.repeat([1, 0], [6, 94])
    fitted = small(selection="best").fit(patients(), LABELS, validation=(held, y))
    kept, left_out = sorted(fitted.history_, key=lambda line: -line.weight)
    assert kept.criterion == pytest.approx(roc_auc_score(y, fitted.anomaly_score(held)), abs=1e-6)
    assert kept.criterion_name == "auc"
    assert kept.criterion >= left_out.criterion
    other = small(selection="best").fit(patients(), LABELS, validation=(held, y[::-1]))
    assert [line.values for line in other.history_] != [line.values for line in fitted.history_]


def test_validation_rows_must_have_the_columns_of_training():
    with pytest.raises(UserError, match="without 'city'"):
        small().fit(patients(), LABELS, validation=(patients().drop(columns="city"), LABELS))


def test_validation_rows_must_include_a_normal_one():
    with pytest.raises(UserError, match=r"Validation needs 2 rows.*3 of the class 1"):
        small().fit(patients(), LABELS, validation=(patients(3), [1, 1, 1]))


# Training


@pytest.mark.slow
def test_a_diverging_member_is_dropped_and_reported():
    table = patients()
    # Beyond float32's largest number, lambda is infinite.
    fitted = small(lambdas=(0, 1e39), max_epochs=3).fit(table, LABELS)
    assert [line.status for line in fitted.history_] == ["kept", "diverged"] * 2
    assert [line.weight for line in fitted.history_] == [0.5, 0, 0.5, 0]
    (note,) = fitted.summary_.notes
    assert note.startswith("2 of 4 members diverged")
    assert "1e+39" in note
    alone = small(lambdas=(0,), max_epochs=3).fit(table, LABELS)
    np.testing.assert_allclose(fitted.anomaly_score(table), alone.anomaly_score(table), atol=1e-4)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("changes", [{"lambdas": (1e39,)}, {"learning_rate": 1e30}])
def test_if_every_member_diverges_the_fit_is_an_error(selection, changes):
    with pytest.raises(
        UserError, match=r"Every member diverged in training. Lower 'learning_rate'"
    ):
        small(selection=selection, max_epochs=3, **changes).fit(patients(), LABELS)


def test_progress_is_told_at_the_start_and_after_each_epoch():
    news = []
    small(max_epochs=4).fit(patients(), LABELS, on_epoch=lambda *n: news.append(n))
    assert news == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.slow
def test_patience_ends_training_early():
    table = patients()
    patient = small(max_epochs=20, patience=None, learning_rate=0.1).fit(table, LABELS)
    hasty = small(max_epochs=20, patience=1, learning_rate=0.1).fit(table, LABELS)
    assert {len(line.values) for line in patient.history_} == {20}
    for line in hasty.history_:
        assert len(line.values) == min(line.best_epoch + 1, 20)


# Randomness


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_same_seed_gives_the_same_scores_and_another_seed_others(selection):
    table = with_missing_cells(patients())
    first, again, other = (
        small(selection=selection, max_epochs=3, random_state=seed).fit(table, LABELS)
        for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first.anomaly_score(table), again.anomaly_score(table))
    np.testing.assert_array_equal(first.score_samples(table), again.score_samples(table))
    assert first.threshold_ == again.threshold_
    assert replace(first.summary_, seconds=0) == replace(again.summary_, seconds=0)
    assert not np.array_equal(first.anomaly_score(table), other.anomaly_score(table))


@pytest.mark.slow
def test_fitting_again_gives_the_same_scores():
    table = patients()
    fitted = small(max_epochs=3).fit(table, LABELS)
    scores = fitted.anomaly_score(table)
    np.testing.assert_array_equal(fitted.fit(table, LABELS).anomaly_score(table), scores)


def test_fitting_and_scoring_leave_the_global_random_numbers_alone():
    def states():
        legacy = np.random.get_state()  # noqa: NPY002 - the state that must not change
        return legacy[1].tolist(), legacy[2], torch.get_rng_state().tolist()

    before = states()
    small(max_epochs=2).fit(patients(), LABELS).explain(patients())
    assert states() == before


def test_a_date_a_century_away_is_odd_by_a_bounded_amount_and_one_in_months_is_not():
    rng = np.random.default_rng(0)
    days = pd.date_range("2026-01-01", periods=300, freq="7h").strftime("%Y-%m-%d")
    detector = small().fit(pd.DataFrame({"x": rng.normal(size=300), "when": days}))
    dates = ["2026-02-11", "2026-09-16", "1926-02-10", "2126-02-13", "9999-12-29"]
    score = detector.anomaly_score(pd.DataFrame({"x": 0.0, "when": dates}))
    assert max(score[:2]) + 1 < score[2] < score[0] + 20
    np.testing.assert_allclose(score[3:], score[2], rtol=1e-6)
