import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fewlier.decision.ranking import Ranking

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=40)  # many ties


@given(normals=scores, anomalies=scores)
def test_the_auc_is_that_of_scikit_learn_and_lies_in_its_interval(normals, anomalies):
    found = Ranking.of(np.sort(normals), np.sort(anomalies))
    truth = np.repeat([0, 1], [len(normals), len(anomalies)])
    assert found.auc == pytest.approx(roc_auc_score(truth, np.concatenate([normals, anomalies])))
    assert 0 <= found.low <= found.auc + 1e-12
    assert found.auc - 1e-12 <= found.high <= 1
    assert found.n_anomalies == len(anomalies)


def test_without_an_anomaly_there_is_no_ranking():
    assert Ranking.of(np.arange(9.0), np.empty(0)) is None


def test_anomalies_that_all_rank_first_leave_room_below_alone_and_less_the_more_they_are():
    found = [Ranking.of(np.arange(99.0), np.full(k, 200.0)) for k in (1, 3, 10, 100)]
    assert [one.high for one in found] == [1, 1, 1, 1]
    lows = [one.low for one in found]
    assert lows == sorted(lows)
    assert lows[0] < 0.2
    assert lows[-1] > 0.95


def test_an_interval_in_words_holds_its_auc():
    ranking = Ranking.of(np.arange(1000.0), np.r_[np.full(300, 2000.0), 900, 800])
    low, high = map(float, re.findall("[0-9.]+", ranking.meaning.split("95 %")[1])[:2])
    assert low < ranking.auc <= high


# How anomalies of a table may lie among normals: as shares of the normals that score lower.
PLACES = {
    "like one another": lambda rng, k: rng.beta(8, 2, k),
    "spread out": lambda rng, k: rng.beta(2, 1, k),
    "mostly beyond all": lambda rng, k: 1 - rng.beta(0.3, 4, k),
    "of two kinds": lambda rng, k: np.where(rng.random(k) < 0.7, 0.99, rng.uniform(0, 1, k)),
    "a coin": lambda rng, k: (rng.random(k) < 0.8).astype(float),
}


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("k", [3, 6, 12, 30])
def test_nineteen_of_twenty_intervals_hold_the_auc(places, k):
    rng = np.random.default_rng(k)
    truth = PLACES[places](rng, 10**6).mean()
    normals = (np.arange(2000) + 0.5) / 2000
    found = [Ranking.of(normals, np.sort(PLACES[places](rng, k))) for _ in range(1000)]
    share = np.mean([one.low <= truth <= one.high for one in found])
    # Of 1,000, three standard errors. Twelve throws of a coin that all fell alike say too much.
    assert share >= (0.92 if places == "a coin" else 0.95) - 0.025
