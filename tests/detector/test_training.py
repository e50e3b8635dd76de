"""How training goes: divergence, progress, patience, seeds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from factories import small
from patients import LABELS, SELECTIONS, patients, with_missing_cells

from fewlier import UserError

# Training


@pytest.mark.slow
def test_a_diverging_member_is_dropped_and_reported():
    table = patients()
    # Beyond float32's largest number, lambda is infinite.
    fitted = small(lambdas=(0, 1e39), max_epochs=3).fit(table, LABELS)
    assert [line.status for line in fitted.history_] == ["kept", "diverged"] * 2
    assert [line.weight for line in fitted.history_] == [0.5, 0, 0.5, 0]
    note = next(note for note in fitted.summary_.notes if "diverged" in note)
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


@pytest.mark.slow
def test_progress_is_told_at_the_start_and_after_each_epoch():
    shares = []
    small(max_epochs=4).fit(patients(), LABELS, progress=shares.append)
    assert shares == [0, 0.25, 0.5, 0.75, 1]


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
    assert replace(first.summary_, seconds=0.0) == replace(again.summary_, seconds=0.0)
    assert not np.array_equal(first.anomaly_score(table), other.anomaly_score(table))


@pytest.mark.slow
def test_fitting_again_gives_the_same_scores():
    table = patients()
    fitted = small(max_epochs=3).fit(table, LABELS)
    scores = fitted.anomaly_score(table)
    np.testing.assert_array_equal(fitted.fit(table, LABELS).anomaly_score(table), scores)


@pytest.mark.slow
def test_fitting_and_scoring_leave_the_global_random_numbers_alone():
    def states():
        legacy = np.random.get_state()  # noqa: NPY002 - the state that must not change
        return legacy[1].tolist(), legacy[2], torch.get_rng_state().tolist()

    before = states()
    small(max_epochs=2).fit(patients(), LABELS).explain(patients())
    assert states() == before
