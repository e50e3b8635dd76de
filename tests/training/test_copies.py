"""A copy of a row is the row itself: in folds, in neighbours and trees, and behind thresholds."""

import numpy as np
import pandas as pd
import pytest
from factories import small
from hypothesis import given, settings
from hypothesis import strategies as st

from fewlier.decision.threshold import Promise
from fewlier.score.held_out import promise_of
from fewlier.table import Encoder, Table, infer_schema
from fewlier.table.labels import ANOMALY
from fewlier.training.folds import Fold, make_folds
from fewlier.training.plan import make_plan

ROLES = tuple(Fold.__dataclass_fields__)


def numbers(n, rng):
    return pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]).cumsum(axis=1)


def counts(n, rng):
    """Return counts of one cause: copied, they look like scales of a few values."""
    rates = rng.gamma(3, 1, size=(n, 1)) * [1, 2, 4]
    return pd.DataFrame(rng.poisson(rates).astype(float), columns=["a", "b", "c"])


def mixed(n, rng):
    city = rng.choice(["Bern", "Oslo", "Rome"], n)
    size = pd.Series(rng.normal(size=n)).mask(rng.random(n) < 0.1)
    return pd.DataFrame({"k": rng.poisson(4, n).astype(float), "city": city, "size": size})


def copied(table, k, rng):
    return table.iloc[rng.permutation(np.tile(np.arange(len(table)), k))].reset_index(drop=True)


CELLS = st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan])


@pytest.mark.slow
@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["x", "y", None])), min_size=1))
def test_rows_share_an_id_if_and_only_if_all_their_cells_are_alike(rows):
    table = Table.of(pd.DataFrame(rows, columns=["a", "b", "c"]).astype({"c": object}))
    schema = infer_schema(table, {"c": "category"})
    table = schema.match(table)
    encoder = Encoder.fit(schema, table)
    ids = encoder.encode(table).ids()
    # None, so that a gap is like a gap; -0.0 == 0.0 anyway.
    plain = [tuple(None if cell != cell else cell for cell in row) for row in rows]
    alike = [a == b for a in plain for b in plain]
    assert [a == b for a in ids for b in ids] == alike
    assert [a == b for a in table.ids() for b in table.ids()] == alike
    np.testing.assert_array_equal(encoder.encode(table.take(np.arange(1))).ids(), ids[:1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=3, max_size=120),
    st.integers(0, 12),
    st.sampled_from([1, 2]),
    st.integers(0, 99),
)
def test_copies_share_a_role_in_every_fold(ids, n_anomalies, n_folds, seed):
    ids = np.array([*ids, *range(n_anomalies // 2), *range(n_anomalies - n_anomalies // 2)])
    rows = np.arange(len(ids))
    normals, anomalies = np.split(rows, [len(ids) - n_anomalies])
    folds = make_folds(normals, anomalies, n_folds, np.random.default_rng(seed), ids=ids)
    for fold in folds:
        for some in (normals, anomalies):
            roles = {}
            for row in some:
                plays = tuple(row in getattr(fold, name) for name in ROLES)
                assert roles.setdefault(ids[row], plays) == plays
        played = np.concatenate([getattr(fold, name) for name in ROLES])
        assert set(normals) <= set(played.tolist()) <= set(rows)
        if len(np.unique(ids[normals])) >= 3:
            assert not np.isin(fold.calibration, fold.normals).any()
            assert not np.isin(fold.validation_normals, fold.normals).any()


def test_a_very_common_row_trains_every_fold():
    ids = np.array([0] * 60 + list(range(1, 61)))
    for seed in range(20):
        for fold in make_folds(
            np.arange(120), np.arange(0), 2, np.random.default_rng(seed), ids=ids
        ):
            assert set(range(60)) <= set(fold.normals.tolist())


@pytest.mark.parametrize("selection", ["average", "best"])
@pytest.mark.parametrize("table", [numbers, mixed])
def test_a_table_of_copies_promises_what_its_distinct_rows_do(table, selection):
    rng = np.random.default_rng(0)
    rows = table(300, rng)
    quick = {"selection": selection, "max_epochs": 1, "false_alarm_rate": 0.1}
    tables = rows, copied(rows, 10, rng)
    once, often = (small(**quick).fit(X, np.zeros(len(X))).model_ for X in tables)
    for name in ("guarantee", "smallest_rate", "rule"):
        assert getattr(often.calibration, name) == getattr(once.calibration, name)


def test_copies_of_an_anomaly_are_one_label():
    """Ten copies of each of two anomalies had the shares of twenty labels."""
    rng = np.random.default_rng(0)
    rows = numbers(102, rng)
    odd, normal = rows.iloc[:2] + 30, rows.iloc[2:]

    def learned(k):
        X = pd.concat([odd] * k + [normal])
        model = small(max_epochs=1).fit(X, np.arange(len(X)) < 2 * k).model_
        return [addend.share for addend in model.scorer.addends]

    assert learned(10) == learned(1)
    assert sum(learned(1)[2:]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("labels", [0, 6])
@pytest.mark.parametrize("table", [numbers, counts, mixed])
def test_fresh_normals_are_not_flagged_for_copies_of_others(table, labels):
    """Ten copies of each row had every fresh row of numbers and of counts flagged."""
    excess = []
    for seed in range(6):
        rng = np.random.default_rng([seed, labels, 1])
        rows = table(60 + labels, rng)
        odd = rows.select_dtypes("number").columns
        rows.loc[: labels - 1, odd] += 30
        y = (np.arange(len(rows)) < labels).astype(float)
        X = copied(rows.assign(y=y), 10, rng)
        quick = {
            "max_epochs": 1,
            "hidden": (8,),
            "false_alarm_rate": 0.2,
            "random_state": seed,
        }
        detector = small(**quick).fit(X.drop(columns="y"), X["y"])
        alarms = detector.predict(table(300, rng)).mean()
        m = len(detector.model_.calibration.normal_scores)
        excess.append(alarms - np.floor(0.2 * (m + 1)) / (m + 1))
    # Over fits of so few rows rates spread a little more than a Beta distribution does.
    error = 1.5 * np.sqrt(0.2 * 0.8 / (m + 2) / len(excess))
    assert np.mean(excess) < 3 * error


def test_copies_do_not_make_a_guarantee_exact():
    rng = np.random.default_rng(0)
    X = copied(numbers(450, rng), 10, rng)
    plan = make_plan(
        infer_schema(Table.of(X)), (Table.of(X), np.zeros(len(X), np.int8)), "average", 0
    )
    assert promise_of(plan.folds) is Promise.CROSSED
    assert not np.isin(plan.ids[plan.folds[0].calibration], plan.ids[plan.folds[0].normals]).any()


@pytest.mark.parametrize("n", [300, 5000])
def test_a_category_that_only_a_held_out_row_has_is_one_never_seen(n):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=n), "city": [f"c{i // 3}" for i in range(n)]})
    X.loc[::3, "city"] = [f"only {i}" for i in range(0, n, 3)]
    table, labels = Table.of(X), np.zeros(n, np.int8)
    labels[:4] = ANOMALY
    plan = make_plan(infer_schema(table, {"city": "category"}), (table, labels), "average", 0)
    held_out = np.unique(np.concatenate([fold.calibration for fold in plan.folds]))
    is_only = X["city"].str.startswith("only").to_numpy()[held_out]
    assert 0.1 < is_only.mean() < 0.6
    fresh = Table.of(X.iloc[held_out].assign(city=np.where(is_only, "new", X["city"][held_out])))
    expected, found = plan.encoder.encode(fresh), plan.as_new(held_out)
    assert found.impossible[is_only, 1].all()
    for name in ("inputs", "targets", "impossible"):
        same = is_only | (n == 300)  # of many rows, the other row of a city may be held out too
        np.testing.assert_array_equal(getattr(found, name)[same], getattr(expected, name)[same])


def test_a_number_that_only_a_held_out_row_has_lies_where_it_lies():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"stars": np.repeat([1.0, 2.0, 3.0, 4.0], 75), "size": rng.normal(size=300)})
    X.loc[7, "stars"] = 9.0
    table, labels = Table.of(X), np.zeros(300, np.int8)
    plan = make_plan(infer_schema(table), (table, labels), "average", 0)
    assert plan.encoder.schema.columns[0].coding == "category"
    row = plan.as_new(np.array([7, 8]))
    assert row.impossible[:, 0].tolist() == [True, False]
    assert row.targets[0, 0] == 9


@pytest.mark.slow
def test_rows_drawn_as_those_of_a_table_that_repeats_have_not_drifted():
    """A fresh row is mostly like one that trained, and scores lower than any held-out row."""

    def scales(n, rng):
        return pd.DataFrame(rng.poisson(1.5, size=(n, 2)).astype(float), columns=["a", "b"])

    for seed in range(4):
        rng = np.random.default_rng(seed)
        quick = {"max_epochs": 1, "hidden": (4,), "false_alarm_rate": 0.5}
        detector = small(**quick).fit(scales(600, rng))
        assert detector.drift(scales(2000, rng)).found == ()
