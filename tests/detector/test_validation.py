"""Validation rows that are given."""

import numpy as np
import pytest
from factories import small
from patients import LABELS, N_ANOMALIES, N, patients
from sklearn.metrics import roc_auc_score

from fewlier import UserError

# Validation rows of the user's own


@pytest.mark.slow
def test_given_validation_rows_nothing_is_split_off_the_training_rows():
    training, held = patients(), patients(100, seed=1)
    y = np.repeat([1, 0], [6, 94])
    fitted = small(max_epochs=3).fit(training, LABELS, validation=(held, y))
    assert {line.fold for line in fitted.history_} == {0}
    assert {line.n_anomalies for line in fitted.history_} == {N_ANOMALIES}
    assert fitted.model_.encoder.n_rows == N - N_ANOMALIES
    held_out = np.sort(fitted.anomaly_score(held[6:]))
    np.testing.assert_allclose(fitted.model_.calibration.normal_scores, held_out, atol=1e-6)
    assert fitted.model_.calibration.guarantee.startswith("none")
    assert fitted.decision_scores_.shape == (N,)


@pytest.mark.slow
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
