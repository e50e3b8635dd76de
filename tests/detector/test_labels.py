"""What labels do, and what rows without a label do."""

import re

import numpy as np
import pytest
from factories import small
from patients import (
    LABELS,
    ROW_0,
    SELECTIONS,
    N,
    patients,
)
from sklearn.metrics import roc_auc_score

from fewlier import UserError

# Labels


EASY = "Validation above"  # the labels of this table are easy to learn


def notes_of(y, **changes):
    notes = small(max_epochs=2, **changes).fit(patients(), y).summary_.notes
    return tuple(note for note in notes if not note.startswith(EASY))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_labels_on_every_row_need_no_note(selection):
    assert notes_of(LABELS, selection=selection) == ()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_without_a_labelled_anomaly_the_notes_say_that_it_is_a_density_of_normals(selection):
    unlabelled, density = notes_of(None, selection=selection)
    assert unlabelled.startswith("300 unlabelled rows train as normal rows, with less weight where")
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
    assert unlabelled.startswith(f"{N} unlabelled rows train as normal rows, with less weight")
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
    (n_left_out,) = re.findall(r"of 300 examined, (\d+) count less than half", note)
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
    y[-250:-90] = 0  # 204 labelled normals: enough to stand behind it alone
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
        notes = [note for note in fitted.summary_.notes if not note.startswith(EASY)]
        assert notes == ([] if unlabelled == 0 else [note])
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
