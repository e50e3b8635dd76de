"""Columns that have one value, nearly one, or none: what another value costs, and what is said."""

import numpy as np
import pandas as pd
import pytest

from fewlier import AnomalyDetector, Made, Training
from fewlier.density.rows import Rows
from fewlier.table import Table
from fewlier.table.inference import infer_schema

N, N_ANOMALIES = 600, 6
WORD, NUMBER = "same", 0.0
"""What a column of text and one of numbers always hold."""


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(0, 1, n)
    frame = pd.DataFrame({"size": size, "weight": 2 * size + rng.normal(0, 1, n)})
    frame["word"], frame["roots"], frame["notes"] = WORD, NUMBER, np.nan
    frame["errors"] = np.where(np.arange(n) % 250 == 7, 0.5 + np.arange(n) / n, 0.0)
    frame.loc[n - N_ANOMALIES :, "weight"] += 6
    return frame


def small(**parameters):
    settings = {
        "density": Made(hidden=(32,)),
        "training": Training(lambdas=(0, 10), max_epochs=8),
        "false_alarm_rate": 0.05,
    }
    return AnomalyDetector(**settings, random_state=0, **parameters)


LABELS = np.r_[np.full(N - N_ANOMALIES, np.nan), np.ones(N_ANOMALIES)]


@pytest.fixture(scope="module", params=["average", "best"])
def detector(request):
    return small(selection=request.param).fit(rows(), LABELS)


@pytest.fixture
def usual():
    return rows()[10:11]


def scores_with(detector, usual, column, values):
    altered = pd.concat([usual.assign(**{column: value}) for value in values])
    return detector.anomaly_score(altered)


@pytest.mark.slow
def test_another_number_costs_what_another_text_does(detector, usual):
    (text,) = scores_with(detector, usual, "word", ["other"])
    numbers = scores_with(detector, usual, "roots", [1e-9, 1.0, 145.0, -1e300, 1e300])
    (normal,) = detector.anomaly_score(usual)
    assert normal + 1 < numbers.min()
    assert np.ptp(numbers) < 1e-6
    np.testing.assert_allclose(numbers, text, rtol=0.15)


def by_part(detector, table):
    """Return what each part of the score makes of the columns of rows, by its name."""
    rows, found = Rows.of(detector.model_.encode(Table.of(table))), {}
    for _, part in detector.model_.scorer.addends:
        found[part.name] = part.contributions(rows, dict(found))
    return {name: own.numpy() for name, own in found.items()}


@pytest.mark.slow
def test_it_is_bounded_in_every_part(detector, usual):
    """By the number of rows; and in what is learned from labels, by what the labelled score.

    In nats the density has log(n + 2) and what normals scatter; in standard units it is less.
    """
    before, labelled = by_part(detector, usual), by_part(detector, rows()[-N_ANOMALIES:])
    most = {name: columns.sum(1).max() for name, columns in labelled.items()}
    most |= dict.fromkeys(("density", "neighbours"), 3 * np.log(N + 2))
    for column, value in {"roots": 145.0, "errors": -1e12, "notes": 1e9}.items():
        place = usual.columns.get_loc(column)
        now = by_part(detector, usual.assign(**{column: value}))
        gained = {name: (now[name] - before[name])[0, place] for name in now}
        assert gained["density"] > 1
        assert all(gained[name] <= most[name] for name in gained), gained


def test_a_column_that_nearly_always_has_one_value_is_scored_by_its_values(detector, usual):
    seen, unseen, far = scores_with(detector, usual, "errors", [rows()["errors"][7], 7.7, 1e9])
    (normal,) = detector.anomaly_score(usual)
    assert normal < seen < unseen == far


def test_the_expectation_names_the_one_value(detector, usual):
    explained = detector.explain(usual.assign(roots=145.0, word="other"))
    texts = {reason.column: str(reason) for reason in explained.top(0, n=2)}
    assert texts["roots"].startswith("roots = 145, expected always 0: +")
    assert texts["word"].startswith("word = other, expected always same: +")


def test_levels_that_would_be_shown_with_0_percent_are_not_shown(detector, usual):
    reasons = detector.explain(usual.assign(errors=9.0)).top(0, n=6)
    errors = next(reason for reason in reasons if reason.column == "errors")
    assert "(0 %)" not in errors.expectation
    assert len(errors.expected_categories) == 3


def test_the_summary_names_constant_and_empty_columns(detector):
    text = str(detector.summary_)
    assert "2 constant (word, roots)" in text
    assert "1 nearly constant (errors)" in text
    assert "1 empty (notes)" in text
    assert "Column 'notes' has no value in normal rows; one will count as odd." in text


def test_any_type_of_value_may_come_first_in_an_empty_column(detector, usual):
    assert detector.anomaly_score(usual.assign(notes="text")) > detector.anomaly_score(usual) + 1


def test_a_saved_model_scores_other_values_alike(detector, usual, tmp_path):
    detector.save(tmp_path / "model.fewlier")
    again = AnomalyDetector.load(tmp_path / "model.fewlier")
    strange = pd.concat([usual.assign(roots=145.0), usual.assign(errors=3.0, notes=1.0)])
    np.testing.assert_array_equal(again.anomaly_score(strange), detector.anomaly_score(strange))


@pytest.mark.slow
def test_values_of_labelled_anomalies_alone_stay_bounded():
    """Twelve values, each of one labelled anomaly, are no reason to measure a constant column."""
    table = rows().assign(roots=np.r_[np.zeros(N - 12), np.linspace(0.3, 99, 12)])
    labels = np.r_[np.full(N - 12, np.nan), np.ones(12)]
    fitted = small().fit(table, labels)
    scores = scores_with(fitted, table[10:11], "roots", [0.0, 145.0, 1e12])
    labelled = fitted.anomaly_score(table[-12:])
    assert scores[0] + 1 < scores[1] == scores[2] <= labelled.max()


def test_the_value_of_a_known_anomaly_is_as_odd_as_any_other():
    """One value in all rows but the labelled anomaly: two in all, and yet no binary."""
    table = rows().assign(roots=np.r_[np.zeros(N - 1), 145.0])
    fitted = small().fit(table, np.r_[np.zeros(N - 1), 1])
    usual, known, other = scores_with(fitted, table[10:11], "roots", [0.0, 145.0, 99.0])
    assert usual + 1 < other <= known
    (reason,) = fitted.explain(table[10:11].assign(roots=145.0)).top(0, n=1)
    assert str(reason).startswith("roots = 145, expected always 0: +")


def test_a_value_met_twice_is_odd_and_one_never_met_is_odder():
    table = rows().assign(roots=np.r_[np.zeros(N - 2), 5.0, 5.0])
    fitted = small().fit(table)
    usual, rare, other = scores_with(fitted, table[10:11], "roots", [0.0, 5.0, 7.0])
    assert usual + 1 < rare < other
    assert "2 nearly constant (roots, errors)" in str(fitted.summary_)


@pytest.mark.parametrize(
    ("n_zeros", "n_ones", "kind"),
    [(4997, 3, "real"), (82, 9, "real"), (81, 9, "real"), (80, 9, "binary"), (90, 10, "binary")],
)
def test_two_values_are_a_binary_unless_one_is_rare(n_zeros, n_ones, kind):
    table = Table.of(pd.DataFrame({"flag": np.repeat([0, 1], [n_zeros, n_ones])}))
    (column,) = infer_schema(table).columns
    assert column.kind == kind
