"""What every part of the score must do, whatever it measures."""

import numpy as np
import pytest
import torch
from factories import small, visits

from fewlier.density.rows import Rows
from fewlier.errors import FormatError
from fewlier.modelfile.state import State
from fewlier.score.ensemble import Ensemble
from fewlier.score.model import PARTS
from fewlier.score.part import HeldOut

N, N_ODD = 120, 8
CPU = torch.device("cpu")

each_part = pytest.mark.parametrize("name", [Ensemble.name, *PARTS])


@pytest.fixture(scope="module")
def detector():
    return small(max_epochs=5).fit(visits(n=N), np.arange(N) < N_ODD)


@pytest.fixture(scope="module")
def scorer(detector):
    return detector.model_.scorer


@pytest.fixture(scope="module")
def encoded(detector):
    return detector.model_.encoder.encode(detector._table(visits(1, n=40)))


def evaluate(scorer, encoded, own=None):
    """Return what every part contributes, by name: each is given what was found before it."""
    found = {}
    for _, part in scorer.addends:
        found[part.name] = part.contributions(Rows.of(encoded), dict(found), own)
    return found


def contributions(scorer, name, encoded, own=None):
    return evaluate(scorer, encoded, own)[name].numpy()


def part_of(scorer, name):
    return next(part for _, part in scorer.addends if part.name == name)


def test_all_parts_are_in_an_average_score(scorer):
    assert [part.name for _, part in scorer.addends] == [Ensemble.name, *PARTS]


def test_the_score_is_the_weighted_sum_of_what_parts_contribute(scorer, encoded):
    shares = {part.name: share for share, part in scorer.addends}
    assert sum(shares.values()) == pytest.approx(1)
    parts = [share * contributions(scorer, name, encoded) for name, share in shares.items()]
    np.testing.assert_allclose(scorer.contributions(encoded), sum(parts), rtol=1e-6, atol=1e-6)
    scores = scorer.baseline + scorer.contributions(encoded).sum(1)
    np.testing.assert_allclose(scorer.score(encoded), scores, rtol=1e-12, atol=1e-12)


@each_part
def test_a_part_survives_being_stored(name, scorer, encoded):
    part = part_of(scorer, name)
    stored = State(*part.state().flat())
    again = type(part).from_state(stored, scorer.encoder, CPU)
    stored.check_all_read()
    before, rows = evaluate(scorer, encoded), Rows.of(encoded)
    np.testing.assert_array_equal(again.contributions(rows, before), before[name])
    assert (again.meaning, again.baseline) == (part.meaning, part.baseline)


@each_part
def test_a_part_that_lacks_an_array_is_refused(name, scorer):
    record, arrays = part_of(scorer, name).state().flat()
    for missing in list(arrays)[:5]:
        fewer = {key: array for key, array in arrays.items() if key != missing}
        with pytest.raises(FormatError, match=f"{missing}' is missing"):
            type(part_of(scorer, name)).from_state(State(record, fewer), scorer.encoder, CPU)


@each_part
def test_a_row_gets_the_same_in_any_company(name, scorer, encoded):
    whole = contributions(scorer, name, encoded)
    order = np.random.default_rng(0).permutation(len(encoded))
    some = contributions(scorer, name, encoded.take(order[:32]))
    np.testing.assert_allclose(some, whole[order[:32]], rtol=1e-5, atol=1e-6)


@each_part
def test_normal_rows_scored_by_what_has_not_seen_them_are_near_zero_and_one(name, detector):
    plan, scorer = detector._plan, detector.model_.scorer
    normals = np.arange(N_ODD, N)
    own = HeldOut(plan.ids[normals])
    z = contributions(scorer, name, plan.encoded.take(normals), own).sum(1)
    assert abs(np.median(z)) < 0.7
    assert 0.4 < z.std() < 2.5


@pytest.mark.parametrize("name", PARTS)  # the ensemble chooses members by fold, not by row
def test_labelled_anomalies_that_were_seen_look_odder_than_to_what_has_not(name, detector):
    plan, scorer = detector._plan, detector.model_.scorer
    odd = np.arange(N_ODD)
    rows = plan.encoded.take(odd)
    seen = contributions(scorer, name, rows).sum(1)
    unseen = contributions(scorer, name, rows, HeldOut(plan.ids[odd])).sum(1)
    assert seen.mean() > unseen.mean()


@each_part
def test_a_part_says_what_its_contributions_mean(name, scorer):
    meaning = part_of(scorer, name).meaning
    assert len(meaning.split()) > 8
    assert meaning in scorer.meaning
