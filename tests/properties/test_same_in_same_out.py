"""A row's score, bit for bit, whatever comes with it."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewlier import AnomalyDetector, Made, Training
from fewlier.density.networks import TILE
from fewlier.score import scorer as scoring
from fewlier.score.scorer import CHUNK

pytestmark = pytest.mark.slow

N = 3 * CHUNK["cpu"] + 17
ODD = [1e300, -1e300, -1.0, 0.5]  # far away, and outside of some domains

batches = st.lists(st.integers(0, N - 1), min_size=1, max_size=40)
each_selection = pytest.mark.parametrize("selection", ["average", "best"])


def table_of(n, seed):
    """Return columns of every kind, with missing cells, categories never seen and odd numbers."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "real": rng.normal(5, 2, n),
            "count": rng.poisson(30, n).astype(float),
            "positive": rng.lognormal(0, 2, n),
            "binary": rng.integers(0, 2, n).astype(float),
            "category": rng.choice(["a", "b", "c", f"only in {seed}"], n),
        }
    )
    return table.mask(rng.random(table.shape) < 0.1, None)


@cache
def rows_to_score():
    table = table_of(N, seed=1)
    table.loc[:3, "real"] = table.loc[4:7, "count"] = table.loc[8:11, "positive"] = np.array(ODD)
    return table


@cache
def fitted(selection):
    detector = AnomalyDetector(
        selection=selection,
        density=Made(hidden=(37, 16), n_orderings=3),  # widths are no multiple of a vector's
        training=Training(lambdas=(0, 10), max_epochs=3),
        false_alarm_rate=0.2,
        random_state=0,
    )
    return detector.fit(table_of(300, seed=0), np.arange(300) < 6)


@cache
def scores_of_all(selection):
    return fitted(selection).anomaly_score(rows_to_score())


@each_selection
@given(rows=batches)
@settings(max_examples=20)
def test_a_row_scores_the_same_in_any_batch_at_any_position(selection, rows):
    scores = fitted(selection).anomaly_score(rows_to_score().iloc[rows])
    np.testing.assert_array_equal(scores, scores_of_all(selection)[rows])


@each_selection
@given(row=st.integers(0, N - 1))
@settings(max_examples=20)
def test_a_row_scores_the_same_alone(selection, row):
    (score,) = fitted(selection).anomaly_score(rows_to_score().iloc[[row]])
    assert score == scores_of_all(selection)[row]


@each_selection
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_shuffled_rows_score_the_same_across_chunks(selection, seed):
    order = np.random.default_rng(seed).permutation(N)
    scores = fitted(selection).anomaly_score(rows_to_score().iloc[order])
    np.testing.assert_array_equal(scores, scores_of_all(selection)[order])


@each_selection
@given(start=st.integers(0, N - 1), length=st.integers(1, N))
@settings(max_examples=10)
def test_a_slice_scores_as_it_does_within_the_whole(selection, start, length):
    part = slice(start, start + length)
    scores = fitted(selection).anomaly_score(rows_to_score().iloc[part])
    np.testing.assert_array_equal(scores, scores_of_all(selection)[part])


@cache
def said_of_all(selection, what):
    return getattr(fitted(selection), what)(rows_to_score())


@each_selection
@given(rows=batches)
@settings(max_examples=10)
def test_all_else_that_is_said_of_a_row_is_the_same_in_any_batch(selection, rows):
    detector, table = fitted(selection), rows_to_score().iloc[rows]
    for what in ("score_samples", "p_value", "predict_proba"):
        expected = said_of_all(selection, what)[rows]
        np.testing.assert_array_equal(getattr(detector, what)(table), expected)
    contributions = said_of_all(selection, "explain").contributions[rows]
    np.testing.assert_array_equal(detector.explain(table).contributions, contributions)


@each_selection
def test_the_scores_of_strange_rows_are_numbers(selection):
    assert np.isfinite(scores_of_all(selection)).all()


@each_selection
@pytest.mark.parametrize("most", [1, 2**9, 2**13])
def test_wide_rows_in_smaller_chunks_score_the_same(selection, most, monkeypatch):
    monkeypatch.setattr(scoring, "MAX_INPUTS", most)
    scores = fitted(selection).anomaly_score(rows_to_score())
    np.testing.assert_array_equal(scores, scores_of_all(selection))


@each_selection
def test_what_was_expected_is_the_same_in_any_chunk(selection):
    rows = [0, CHUNK["cpu"] - 1, CHUNK["cpu"], N - 1]
    tops = said_of_all(selection, "explain").tops(rows)
    for row, top in zip(rows, tops, strict=True):
        assert fitted(selection).explain(rows_to_score().iloc[[row]]).tops() == [top]


@pytest.mark.parametrize("n", [1, TILE, TILE + 1, CHUNK["cpu"] + 1])
def test_few_rows_are_padded_to_whole_tiles_alone(n, monkeypatch):
    detector, sizes, plain = fitted("average"), [], scoring.Scorer.sum_of_parts

    def counting(scorer, rows, held_out=None):
        sizes.append(len(rows.observed))
        return plain(scorer, rows, held_out)

    monkeypatch.setattr(scoring.Scorer, "sum_of_parts", counting)
    known = table_of(300, seed=0)  # without odd cells, for which rows are scored again
    detector.anomaly_score(known.iloc[np.arange(n) % len(known)])
    assert sum(sizes) == -(-n // TILE) * TILE
