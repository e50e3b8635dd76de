"""What a notebook shows of detectors and what they return: the figures of the attributes."""

import numpy as np
import pytest
from factories import FEATURES, payments, small
from sklearn import config_context
from test_markup import HOSTILE, cells, parsed

from fewlier import Session
from fewlier.reasons.explanation import N_SHOWN


def hostile_payments(n, seed):
    """Return payments whose names of columns, categories and index would be markup."""
    rows = payments(n, seed)[FEATURES].rename(columns={"city": HOSTILE[0]})
    rows[HOSTILE[0]] = rows[HOSTILE[0]].replace({"Bern": HOSTILE[1]})
    return rows.set_axis([f"{HOSTILE[2]}{row}" for row in range(n)])


@pytest.fixture(scope="module")
def detector():
    table = hostile_payments(120, 0)
    return small(max_epochs=1, lambdas=(0, 10)).fit(table, payments(120)["fraud"])


@pytest.fixture(scope="module")
def rows():
    return hostile_payments(40, 1)


def shown(thing):
    """Return what a notebook shows: the title, and the tables as texts."""
    root = parsed(thing._repr_html_())
    return root.find("p").text, [cells(table) for table in root.iter("table")]


def test_before_the_fit_it_is_scikit_learns_diagram():
    assert "sk-estimator" in small()._repr_html_()


def test_after_the_fit_it_is_what_the_fit_did(detector):
    title, (facts, columns, members) = shown(detector)
    summary = detector.summary_
    assert title == " ".join(repr(detector).split())
    assert "\n".join(f"{name:<12}{text}" for name, text in facts) == str(summary)
    assert dict(columns[1:]) == summary.kinds
    assert HOSTILE[0] in summary.kinds
    for line, member in zip(members[1:], detector.history_, strict=True):
        lam, fold, criterion, best_epoch, weight = map(float, line)
        assert (lam, fold, best_epoch) == (member.lam, member.fold, member.best_epoch)
        assert [criterion, weight] == pytest.approx([member.criterion, member.weight], abs=6e-3)
    assert shown(summary)[1] == [facts, columns, members]


def test_the_threshold_is_the_one_that_was_set_last(detector):
    before = detector.threshold_
    detector.set_threshold(contamination=0.3)
    try:
        facts = dict(shown(detector)[1][0])
        assert f"{detector.threshold_:.4g} " in facts["threshold"]
        assert "contamination 30 %" in facts["threshold"]
    finally:
        detector.set_threshold(false_alarm_rate=0.2)
    assert detector.threshold_ == before


def test_jupyter_shows_the_same_and_scikit_learns_setting_counts(detector):
    bundle = detector._repr_mimebundle_()
    assert bundle == {"text/plain": repr(detector), "text/html": detector._repr_html_()}
    with config_context(display="text"):
        assert detector._repr_mimebundle_() == {"text/plain": repr(detector)}


def test_an_explanation_shows_the_rows_that_score_highest_with_their_reasons(detector, rows):
    why = detector.explain(rows)
    title, ((header, *lines),) = shown(why)
    n_above = int(detector.predict(rows).sum())
    assert title.startswith(f"40 rows, {n_above} above the threshold of {detector.threshold_:.4g} ")
    assert header == ["adds", "value", "expected"]
    order = np.argsort(-why.score, kind="stable")[:N_SHOWN]
    p_values = detector.p_value(rows)
    expected = []
    for row, reasons in zip(order, why.take(order).reasons(), strict=True):
        figures = f"score {why.score[row]:.4g}, p-value {p_values[row]:.3g}"
        expected.append([f"row {rows.index[row]}: {figures}"])
        for reason in reasons:
            value, adds = f"{reason.column} {reason.state}", f"{reason.contribution:+.2f}"
            expected.append([adds, value, reason.expectation])
    assert lines == expected
    assert any(HOSTILE[0] in line[1] for line in lines if len(line) > 1)


def test_few_rows_or_none_are_shown_too(detector, rows):
    title, ((_, *lines),) = shown(detector.explain(rows[:1]))
    assert title.startswith("1 row, ")
    assert title.endswith(detector.score_unit_)
    assert lines[0][0].startswith(f"row {rows.index[0]}: ")
    assert shown(detector.explain(rows[:0]))[1][0][1:] == []


def test_drift_shows_what_has_changed(detector, rows):
    changed = rows.assign(amount=rows["amount"] * 30)
    drift = detector.drift(changed)
    title, ((_, *lines),) = shown(drift)
    assert title == str(drift)
    assert ["values", "amount"] in [line[:2] for line in lines]
    for line, change in zip(lines, drift.found, strict=True):
        assert line[2:] == [f"{change.distance:.2f}", f"{change.p_value:.3g}", "yes"]
    title, ((_, *lines),) = shown(detector.drift(rows))
    assert title == "40 rows look like the training normals."
    assert {line[-1] for line in lines} == {"no"}


def test_a_session_shows_how_far_it_is(rows):
    with Session(rows, fit_every=None) as session:
        session.answer(3, 1, kind=HOSTILE[0])
        session.answer(5, 0)
        session.answer(6, None)
        title, (facts,) = shown(session)
        left = session.progress.remaining
    assert title == "Labelling"
    assert facts == [
        ["rows asked", "3"],
        ["anomalies found", "1"],
        ["normal", "1"],
        ["skipped", "1"],
        ["kinds", f"'{HOSTILE[0]}' 1"],
        ["probably left", f"{left[0]:.0f} anomalies (90 % interval {left.low} to {left.high})"],
    ]
