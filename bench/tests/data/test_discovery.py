"""Which rows there are to ask about."""

import numpy as np

from fewlier_bench.data.discovery import cut_pool, draw_labels, split_and_cut

Y = np.repeat([0, 1], [5000, 400]).astype(np.int8)


def test_a_pool_has_4000_normals_and_5_percent_of_anomalies():
    rows = cut_pool(Y, np.arange(len(Y)), 0)
    assert len(set(rows.tolist())) == len(rows) == 4211
    assert Y[rows].sum() == 211
    assert not np.array_equal(rows, cut_pool(Y, np.arange(len(Y)), 1))


def test_rows_kept_apart_are_not_asked_about():
    pool, apart = split_and_cut(Y, 3)
    assert not set(pool.tolist()) & set(apart.tolist())
    assert (len(apart), Y[apart].sum()) == (2700, 200)


def test_random_labels_are_anomalies():
    given = draw_labels(Y, 6, 0)
    assert (given == 1).sum() == 6
    assert (Y[given == 1] == 1).all()
    assert np.isnan(given[Y == 0]).all()
