"""Tasks hold what they say, and nothing that would give the answer away."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fewlier_bench.prior.anomalies import make_kind
from fewlier_bench.prior.cells import describe
from fewlier_bench.prior.distances import distances
from fewlier_bench.prior.made_up import make_up
from fewlier_bench.prior.network import Label
from fewlier_bench.prior.tables import Tables
from fewlier_bench.prior.tasks import Size, make_tasks

CPU = torch.device("cpu")
SIZE = Size(n_normals=60, n_labels=4, n_asked=20)


@pytest.fixture(autouse=True)
def same_numbers():
    with torch.random.fork_rng():
        torch.manual_seed(0)  # noqa: TID251
        yield


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    names = ["held out", "wide", "narrow"]
    whole = {"names": np.array(names)}
    for i, d in enumerate((4, 6, 3)):
        X = np.round(rng.normal(size=(240, d)) * 100 + 1000 * i) + np.arange(d) * 10_000
        whole |= {f"X{i}": X, f"y{i}": (np.arange(240) < 40).astype(np.int8)}
    np.savez(tmp_path / "tables.npz", **whole)
    return Tables(tmp_path / "tables.npz", CPU)


def test_a_task_has_its_rows_in_order_and_some_of_each_sort():
    rows, other = make_up(9, SIZE.n_rows, 5, CPU), make_up(9, SIZE.n_rows, 5, CPU)
    tasks = make_tasks(rows, other, SIZE)
    known = tasks.labels[:, :60]
    assert ((known == Label.NORMAL) | (known == Label.UNLABELLED)).all()
    assert (tasks.labels[:, 60:64] == Label.ANOMALY).all()
    assert (tasks.labels[:, 64:] == Label.ASKED).all()
    assert tasks.values.shape == (9, 60 + 4 + 40, 5)
    assert not tasks.values.isinf().any()


def test_columns_and_rows_of_real_tables_stay_together(tables):
    rows = tables.draw(32, 3, 10)
    for values in (rows.normals, rows.anomalies):
        of = (values / 10_000).floor()  # the column that a cell comes from
        assert (of == of[:, :1]).all()
        assert all(len(set(task[0].tolist())) == 3 for task in of)


def test_tables_that_are_held_out_are_drawn_alone(tables):
    rows = tables.draw(16, 3, 10, held_out=True)
    thousands = ((rows.normals % 10_000) / 1000).round() % 10
    assert (thousands == 0).float().mean() > 0.99


def test_columns_that_a_table_lacks_come_from_another(tables):
    rows = tables.draw(64, 4, 10)
    thousands = ((rows.normals[:, 0] % 10_000) / 1000).round()
    assert ((thousands == 1).any(1) | (thousands == 2).any(1)).all()


def test_no_row_is_both_labelled_and_asked_about(tables):
    size = Size(60, 4, 20)
    for _ in range(20):
        rows = tables.draw(8, 5, 20)
        tasks = make_tasks(rows, tables.draw(8, 5, 0), size)
        whole = tasks.values.nan_to_num(-7.0)
        labelled, asked = whole[:, 60:64], whole[:, 84:]
        same = (labelled[:, :, None] == asked[:, None]).all(-1)
        assert float(same.float().mean()) < 0.02  # but where a table has few different rows


def test_kinds_change_cells_and_never_make_levels_of_their_own():
    normals = torch.randint(5, (40, 80, 6)).float()
    made = make_kind(normals, torch.ones(40, 6, dtype=torch.bool), 30)
    levels = set(made[~made.isnan()].unique().tolist())
    assert levels - set(range(5)) <= {-54_321.0}
    assert len(levels) > 5


def test_tasks_are_neither_given_away_nor_hopeless():
    """Distances alone rank some tasks well, others not at all: there is something to learn."""
    found = []
    for _ in range(4):
        rows, other = make_up(12, SIZE.n_rows, 6, CPU), make_up(12, SIZE.n_rows, 6, CPU)
        tasks = make_tasks(rows, other, SIZE)
        far = distances(describe(tasks.values, tasks.is_category, 60), 60, 4)[:, 64:, 1]
        truth = np.repeat([0, 1], 20)
        found += [roc_auc_score(truth, scores) for scores in far]
    assert 0.55 < np.mean(found) < 0.8
    assert np.std(found) > 0.1
