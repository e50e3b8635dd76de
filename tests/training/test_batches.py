import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fewlier.training.batches import Batches, Noise, Sample, n_steps, stacked_noise

MAX_STEPS = 100


def rows(*numbers):
    return np.array(numbers, dtype=np.int64)


def steps(batches):
    """The normals and anomalies of each step of the next epoch."""
    normals, anomalies = batches.epoch()
    return [(step, anomalies) for step in normals]


def epoch(n_normals, n_anomalies, size, seed=0):
    """One epoch's steps over normals counted from 0 and anomalies counted from 1000."""
    batches = Batches(np.arange(n_normals), 1000 + np.arange(n_anomalies), size, seed, MAX_STEPS)
    return list(steps(batches))


def sample():
    return Sample.of([rows(4, 5, 6), rows(7)], [rows(), rows(8, 9)])


def test_a_sample_pads_members_with_rows_of_weight_zero():
    assert sample().index.tolist() == [[4, 5, 6, 0, 0], [7, 0, 0, 8, 9]]
    assert sample().weight.tolist() == [[1, 1, 1, 0, 0], [1, 0, 0, 1, 1]]
    assert sample().n_normals == 3


def test_a_sample_without_anomalies_has_no_place_for_them():
    found = Sample.of([rows(1, 2), rows(3, 4)], [rows(), rows()])
    normal, anomaly = found.weights
    assert normal.shape == (2, 2)
    assert anomaly.shape == (2, 0)


def test_a_sample_parts_normals_from_anomalies():
    normal, anomaly = sample().split(sample().index.float())
    assert normal.tolist() == [[4, 5, 6], [7, 0, 0]]
    assert anomaly.tolist() == [[0, 0], [8, 9]]


@given(n_normals=st.integers(1, 200), n_anomalies=st.integers(0, 30), size=st.integers(1, 50))
def test_an_epoch_visits_different_normals_with_all_or_a_batch_of_anomalies(
    n_normals, n_anomalies, size
):
    found = epoch(n_normals, n_anomalies, size)
    normals = np.concatenate([normal for normal, _ in found])
    assert len(found) == n_steps(n_normals, size, MAX_STEPS)
    assert len(set(normals.tolist())) == len(normals)
    assert set(normals.tolist()) <= set(range(n_normals))
    for normal, anomaly in found:
        assert len(normal) == min(size, n_normals)
        assert len(set(anomaly.tolist())) == len(anomaly) == min(size, n_anomalies)
        assert set(anomaly.tolist()) <= set(range(1000, 1000 + n_anomalies))


def test_an_epoch_leaves_out_less_than_one_batch():
    assert sum(len(normal) for normal, _ in epoch(97, 0, 10)) == 90


def test_every_normal_is_visited_in_the_long_run():
    batches = Batches(np.arange(19), rows(), 10, seed=0)
    visited = itertools.chain.from_iterable(steps(batches) for _ in range(20))
    assert set(np.concatenate([normal for normal, _ in visited]).tolist()) == set(range(19))


def test_every_one_of_many_anomalies_is_visited_in_the_long_run():
    batches = Batches(np.arange(5), np.arange(30), 5, seed=0)
    visited = itertools.chain.from_iterable(steps(batches) for _ in range(60))
    assert set(np.concatenate([anomaly for _, anomaly in visited]).tolist()) == set(range(30))


def test_the_same_seed_gives_the_same_batches_and_another_seed_others():
    def flat(seed):
        return np.concatenate([normal for normal, _ in epoch(40, 3, 10, seed)]).tolist()

    assert flat(1) == flat(1) != flat(2)


def test_epochs_differ():
    batches = Batches(np.arange(40), rows(), 10, seed=0)
    first, second = (batches.epoch()[0].ravel() for _ in range(2))
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("n_anomalies", [1, 3, 25])
def test_the_normals_of_a_step_do_not_depend_on_the_anomalies(n_anomalies):
    plain = Batches(np.arange(40), rows(), 10, seed=0)
    labelled = Batches(np.arange(40), np.arange(n_anomalies), 10, seed=0)
    for _ in range(3):
        for (normal, _), (same, _) in zip(steps(plain), steps(labelled), strict=True):
            assert normal.tolist() == same.tolist()


@pytest.mark.parametrize(
    ("n_normals", "size", "expected"),
    [(1, 100, 1), (99, 100, 1), (100, 100, 1), (199, 100, 1), (200, 100, 2), (1050, 100, 10)],
)
def test_an_epoch_takes_as_many_steps_as_there_are_whole_batches(n_normals, size, expected):
    assert n_steps(n_normals, size, MAX_STEPS) == expected


@given(n_normals=st.integers(1, 10**9), size=st.integers(1, 10**4))
def test_an_epoch_takes_at_least_one_step_and_at_most_the_limit(n_normals, size):
    assert 1 <= n_steps(n_normals, size, MAX_STEPS) <= MAX_STEPS


def test_the_epochs_of_a_large_table_take_other_rows_until_few_are_left():
    batches = Batches(np.arange(7 * MAX_STEPS), rows(), 2, seed=0, max_steps=MAX_STEPS)
    epochs = [batches.epoch()[0].ravel().tolist() for _ in range(4)]
    assert {len(epoch) for epoch in epochs} == {2 * MAX_STEPS}
    assert len(set(itertools.chain(*epochs[:3]))) == 6 * MAX_STEPS
    assert set(epochs[3]) & set(epochs[0])


def test_the_samples_of_an_epoch_are_those_of_its_steps():
    normals = [np.array([[1, 2], [3, 4]]), np.array([[5], [6]])]
    anomalies = [rows(7), rows(8, 9)]
    found = list(Sample.of_each_step(normals, anomalies, torch.device("cpu")))
    for step, sample in enumerate(found):
        expected = Sample.of([own[step] for own in normals], anomalies)
        assert sample.index.tolist() == expected.index.tolist()
        assert sample.weight.tolist() == expected.weight.tolist()
        assert sample.n_normals == expected.n_normals
    assert len(found) == 2


def test_noise_is_standard_normal_and_zero_where_a_sample_is_padded():
    noise = stacked_noise([Noise(20_000, 0), Noise(20_000, 1)], sample())
    assert noise.shape == (2, 5, 20_000)
    real = noise[sample().weight > 0]
    assert real.mean(-1).abs().max() < 0.05
    assert (real.std(-1) - 1).abs().max() < 0.05
    assert not noise[sample().weight == 0].any()


def test_a_member_draws_the_same_noise_whoever_trains_beside_it():
    alone = Sample.of([rows(7)], [rows(8, 9)])
    one, both = [Noise(3, 1)], [Noise(3, 0), Noise(3, 1)]
    for _ in range(3):
        expected = stacked_noise(one, alone)[0]
        assert torch.equal(stacked_noise(both, sample())[1][[0, 3, 4]], expected)


def test_noise_of_normals_does_not_depend_on_the_anomalies_and_is_fresh_in_every_step():
    with_anomalies, without = Noise(4, 5), Noise(4, 5)
    steps = [with_anomalies.draw(10, 6)[0] for _ in range(3)]
    np.testing.assert_array_equal(steps, [without.draw(10, 0)[0] for _ in range(3)])
    assert len(np.unique(steps)) == 3 * 10 * 4
