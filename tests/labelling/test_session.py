"""A session asks, learns, keeps the answers, and goes on from them."""

import json

import numpy as np
import pandas as pd
import pytest
from labelling.tables import mixed, planted

from fewlier import Session, UserError
from fewlier.errors import LeftOutWarning


def asked(session, truth, n):
    """Answer n questions truthfully; return their rows."""
    rows = []
    for _ in range(n):
        rows.append(session.next().row)
        session.answer(rows[-1], int(truth[rows[-1]]))
    return rows


@pytest.fixture
def session():
    X, _ = planted()
    with Session(X, fit_every=None) as session:
        yield session


def test_finds_the_anomalies_first(session):
    rows = asked(session, planted()[1], 14)
    assert sorted(rows)[:8] == list(range(8))
    assert session.progress.found == 8
    assert session.progress.curve[-1] == 8


def test_answers_move_the_ranking_of_rows_that_are_alike(session):
    before = {row.row: row.score for row in session.ranking(200)}
    session.answer(0, 0)
    after = {row.row: row.score for row in session.ranking(200)}
    assert after[0] < before[0]
    assert after[1] < before[1]  # of the same kind
    ordinary = min(before, key=before.get)
    assert after[ordinary] == pytest.approx(before[ordinary], abs=0.3)
    session.answer(0, 1)
    assert {row.row: row.score for row in session.ranking(200)}[1] > before[1]


def test_undo_is_the_inverse_of_an_answer(session):
    asked(session, planted()[1], 3)
    before = session.history, session.ranking(200)
    session.answer(5, 1, kind="high", note="seen before")
    session.answer(session.history[0].row, None)
    assert [answer.row for answer in (session.undo(), session.undo())] == [before[0][0].row, 5]
    assert (session.history, session.ranking(200)) == before


def test_undo_of_nothing_is_nothing(session):
    assert session.undo() is None


def test_the_question_stays_until_it_is_answered(session):
    assert session.next() == session.next()


def test_a_question_shows_all_columns_and_why(session):
    question = session.next()
    X, _ = planted()
    assert list(question.cells.values()) == X[question.row].tolist()
    assert question.reasons[0].column in ("x0", "x1")
    assert question.place > 0.99
    assert question.nearest_anomaly is None
    session.answer(question.row, 1)
    again = session.next()
    assert again.nearest_anomaly == question.row
    assert again.nearest_normal >= 8
    assert json.loads(json.dumps(again.to_json()))["row"] == again.row


def test_reasons_add_up_to_the_score_and_a_constant(session):
    asked(session, planted()[1], 6)
    questions = [session.question(row) for row in (0, 3, 50, 120)]
    rest = [q.score - sum(reason.contribution for reason in q.reasons) for q in questions]
    assert rest == pytest.approx([rest[0]] * 4)


def test_labels_are_the_answers(session):
    session.answer(0, 1, kind="low")
    session.answer(9, 0)
    session.answer(10, None)
    assert session.y[[0, 9]].tolist() == [1, 0]
    assert np.isnan(session.y[10:]).all()
    assert session.labels.kind_counts == {"low": 1}
    assert session.progress.kinds == {"low": 1}
    assert session.progress.skipped == 1


def test_known_labels_are_used_and_not_asked():
    X, truth = planted()
    y = np.where(np.arange(len(X)) < 2, 1.0, np.nan)
    with Session(X, y, fit_every=None) as session:
        assert set(asked(session, truth, 10)) > set(range(2, 8))
        assert session.progress.known == 2
        assert np.nansum(session.y) == 8


def test_ends_when_every_row_was_answered():
    X, truth = planted(n=12, n_anomalies=2)
    with Session(X, fit_every=None) as session:
        rows = asked(session, truth, 12)
        assert sorted(rows) == list(range(12))
        assert session.next() is None


def test_copies_of_an_answered_row_are_not_asked():
    X, _ = planted(n=100)
    X = np.concatenate([X, X[:8], X[:8] + 1e-4])
    with Session(X, fit_every=None) as session:
        rows = asked(session, np.arange(len(X)) % 100 < 8, 8)
    assert len({row % 100 if row < 108 else row - 108 for row in rows}) == 8


def test_mixed_columns_are_shown_and_left_out_of_the_score():
    frame = pd.DataFrame(mixed())
    with pytest.warns(LeftOutWarning, match="'id'"):
        session = Session(frame, fit_every=None)
    with session:
        question = session.next()
        assert list(question.cells) == list(frame.columns)
        assert question.cells["note"] == frame["note"][question.row]
        named = {reason.column for reason in question.reasons}
        assert "amount" in named
        assert not named & {"id", "note"}
        assert session.question(3).cells["amount"] is None


@pytest.mark.parametrize("label", [2, "anomaly", True, float("nan")])
def test_refuses_what_is_not_an_answer(session, label):
    with pytest.raises(UserError, match=r"anomaly.*normal.*None"):
        session.answer(0, label)
    assert session.history == ()


@pytest.mark.parametrize("row", [-1, 200, "a", 1.0])
def test_refuses_rows_that_are_not_there(session, row):
    with pytest.raises(UserError, match="from 0 to 199"):
        session.answer(row, 1)


def test_refuses_a_kind_of_a_normal_row(session):
    with pytest.raises(UserError, match="kind"):
        session.answer(0, 0, kind="fraud")


def test_refuses_other_parameters():
    X, _ = planted(n=20)
    with pytest.raises(UserError) as caught:
        Session(X, random_state=-1)
    assert (caught.value.parameter, caught.value.got) == ("random_state", -1)


@pytest.mark.slow
def test_a_full_fit_runs_beside_the_questions():
    X, truth = planted(n=120)
    with Session(X, fit_every=4) as session:
        asked(session, truth, 8)
        detector = session.detector
        question = session.next()
        assert 0 < question.p_value <= 1
        assert question.reasons[0].expected_missing is not None
        assert detector.summary_.n_anomaly == session.progress.found
        assert session.detector is detector
        session.answer(question.row, int(truth[question.row]))
        assert session.detector is not detector


@pytest.mark.slow
def test_goes_on_from_a_model():
    X, truth = planted(n=120)
    with Session(X, fit_every=None) as session:
        asked(session, truth, 6)
        detector = session.detector
    more, more_truth = planted(n=80, seed=1)
    with Session(more, detector=detector, fit_every=None) as session:
        assert session.detector is detector
        scores = detector.anomaly_score(more)
        first = session.next()
        assert first.row == scores.argmax()
        assert first.score == pytest.approx(scores.max())
        assert first.p_value == pytest.approx(detector.p_value(more).min())
        asked(session, more_truth, 3)
        updated = session.detector
    assert updated.summary_.n_anomaly > detector.summary_.n_anomaly
