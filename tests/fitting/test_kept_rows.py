"""Which rows of a fit a model keeps, and what they and new ones do in an update."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from fewlier import UserError
from fewlier.decision.threshold import Promise
from fewlier.fitting import kept_rows
from fewlier.fitting.kept_rows import MAX_ROWS_OF, NEW, ROLES, KeptRows
from fewlier.score.held_out import promise_of
from fewlier.table import Table, infer_schema
from fewlier.table.labels import ANOMALY, NORMAL, UNLABELLED
from fewlier.training.plan import make_plan, plan_with_validation

LABELS = st.sampled_from([ANOMALY, NORMAL, UNLABELLED])


def parcels(n, seed=0):
    """Return a table whose first column tells its rows apart, with a category and gaps."""
    rng = np.random.default_rng(seed)
    size = (rng.permutation(n) + seed / 7) / 1000
    table = pd.DataFrame({"size": size, "city": rng.choice(["Bern", "Oslo"], n)})
    table.loc[3::7, "city"] = None
    return table


SCHEMA = infer_schema(Table.of(parcels(200)))


def plan_of(labels, selection="average", seed=0, table=None, **changes):
    """Plan a fit of a table with these labels, which need not be trained."""
    cells = Table.of(parcels(len(labels)) if table is None else table)
    y = np.asarray(labels, dtype=np.int8)
    return make_plan(SCHEMA, (cells, y), selection, seed, **changes)


def labels_of(n_normal, n_anomaly=0, n_unlabelled=0):
    """Return labels in an order that tells nothing."""
    labels = np.repeat([NORMAL, ANOMALY, UNLABELLED], [n_normal, n_anomaly, n_unlabelled])
    return np.random.default_rng(9).permutation(labels)


def more_of(plan, labels, seed=1, table=None):
    """Return further rows with labels, encoded."""
    cells = Table.of(parcels(len(labels), seed) if table is None else table)
    encoded = plan.encoder.encode(plan.encoder.schema.match(cells))
    return encoded, np.asarray(labels, dtype=np.int8)


def updated(plan, labels, unlabelled="robust", seed=5, **more):
    """Plan an update of what a fit remembers; return how many it remembers, and the plan."""
    kept = KeptRows.draw(plan)
    new = more_of(plan, labels, **more)
    return len(kept), kept.plan(plan.encoder, kept.news(*new), unlabelled, seed)


def said_of(plan, labels, unlabelled="robust", **more):
    """Return what an update says of these rows."""
    kept = KeptRows.draw(plan)
    news = kept.news(*more_of(plan, labels, **more))
    return news.note(kept.plan(plan.encoder, news, unlabelled, 5))


def roles(fold):
    return {name: set(getattr(fold, name).tolist()) for name in ROLES}


def sizes(encoded, rows):
    """Name rows by their size, which no two share."""
    column = encoded.targets[:, 0]
    return set(column[list(rows)].tolist())


# What is kept


@pytest.mark.parametrize("selection", ["average", "best"])
def test_of_a_table_of_moderate_size_every_row_is_kept_with_its_roles(selection):
    plan = plan_of(labels_of(150, 7, 40), selection)
    kept = KeptRows.draw(plan)
    assert len(kept) == 197
    np.testing.assert_array_equal(kept.labels, labels_of(150, 7, 40))
    np.testing.assert_array_equal(kept.encoded.inputs, plan.encoded.inputs)
    assert [roles(fold) for fold in kept.folds] == [roles(fold) for fold in plan.folds]


@pytest.mark.parametrize("selection", ["average", "best"])
@pytest.mark.parametrize("n_normal", [2500, 30_000])
def test_a_large_table_keeps_every_anomaly_and_at_most_so_many_of_each_role(selection, n_normal):
    labels = labels_of(n_normal, 300, 500)
    plan = plan_of(labels, selection)
    kept = KeptRows.draw(plan)
    found = kept.encoded.targets[:, 0]
    assert len(np.unique(found)) == len(found) <= sum(MAX_ROWS_OF.values())
    assert sizes(plan.encoded, np.flatnonzero(labels == ANOMALY)) <= set(found.tolist())
    if selection == "best":  # where each row has one role
        for name, most in MAX_ROWS_OF.items():
            assert len(getattr(kept.folds[0], name)) <= most
    for fold in kept.folds:  # of two folds, each keeps half
        assert len(fold.calibration) >= min(n_normal / 20, MAX_ROWS_OF["calibration"]) / 2


@pytest.mark.parametrize("n_normal", [2500, 30_000])
def test_a_row_plays_in_memory_the_roles_it_had_in_the_fit(n_normal):
    plan = plan_of(labels_of(n_normal, 50, 500))
    kept = KeptRows.draw(plan)
    is_kept = np.isin(plan.encoded.targets[:, 0], kept.encoded.targets[:, 0])
    for before, after in zip(plan.folds, kept.folds, strict=True):
        for name in ROLES:
            rows = [row for row in getattr(before, name).tolist() if is_kept[row]]
            assert sizes(kept.encoded, getattr(after, name)) == sizes(plan.encoded, rows)
            assert len(getattr(after, name)) == len(rows) > 0
    for label in (ANOMALY, NORMAL, UNLABELLED):
        rows = np.flatnonzero(is_kept & (plan.labels == label))
        assert sizes(kept.encoded, kept.labels == label) == sizes(plan.encoded, rows)


@pytest.mark.parametrize("n_normal", [100, 5000])
@pytest.mark.parametrize("n_bytes", [1, 2000])
def test_a_wide_table_keeps_fewer_rows_and_still_all_roles_of_all_folds(
    n_bytes, n_normal, monkeypatch
):
    monkeypatch.setattr(kept_rows, "MAX_KEPT_BYTES", n_bytes)
    plan = plan_of(labels_of(n_normal, 10))
    kept = KeptRows.draw(plan)
    at_least = 2 * len(MAX_ROWS_OF) * kept._row_bytes  # one row a role and fold
    assert kept.n_bytes <= max(1.05 * n_bytes, at_least)
    assert len(kept) < 60
    assert all(min(map(len, roles(fold).values())) >= 1 for fold in kept.folds)
    assert not kept.lacks_a_role


@pytest.mark.parametrize("selection", ["average", "best"])
def test_its_size_is_that_of_its_arrays_in_the_file(selection):
    kept = KeptRows.draw(plan_of(labels_of(60, 4), selection))
    assert kept.n_bytes == sum(array.nbytes for array in kept.state().flat()[1].values())


def test_the_same_fit_keeps_the_same_rows_and_another_seed_others():
    labels = labels_of(9000, 4)
    first, same = (KeptRows.draw(plan_of(labels, seed=1)) for _ in range(2))
    other = KeptRows.draw(plan_of(labels, seed=2))
    np.testing.assert_array_equal(first.encoded.targets, same.encoded.targets)
    np.testing.assert_array_equal(first.roles, same.roles)
    assert not np.array_equal(first.encoded.targets[:, 0], other.encoded.targets[:, 0])


# What new rows do


@pytest.mark.slow
@given(
    old=st.lists(LABELS, min_size=8, max_size=40),
    new=st.lists(LABELS, max_size=12),
    selection=st.sampled_from(["average", "best"]),
    seed=st.integers(0, 9),
)
@examples(max_examples=60)
def test_rows_that_calibrate_never_train_and_no_new_row_is_one(old, new, selection, seed):
    plan = plan_of([NORMAL] * 4 + old, selection, seed)
    n_kept, now = updated(plan, new, seed=seed)
    rows = set(range(n_kept, n_kept + len(new)))
    normal = {n_kept + i for i, label in enumerate(new) if label != ANOMALY}
    assert now.n_training == len(now.encoded) == len(now.doubtful) == n_kept + len(new)
    for before, after in zip(plan.folds, now.folds, strict=True):
        then, fold = roles(before), roles(after)
        used = fold["normals"] | fold["anomalies"] | fold["validation_anomalies"]
        assert fold["calibration"].isdisjoint(used)
        if selection == "best":
            assert fold["calibration"].isdisjoint(fold["validation_normals"])
        assert sizes(now.encoded, fold["calibration"]) == sizes(plan.encoded, then["calibration"])
        assert fold["normals"] & rows == normal
        assert fold["validation_normals"].isdisjoint(rows)
        assert (fold["anomalies"] | fold["validation_anomalies"]) & rows == rows - normal
        assert fold["anomalies"].isdisjoint(fold["validation_anomalies"])
    later = KeptRows.draw(now)
    news = later.news(*more_of(plan, new, 2))
    again = later.plan(plan.encoder, news, "robust", seed)
    for before, after in zip(plan.folds, again.folds, strict=True):
        held_out = sizes(plan.encoded, before.calibration)
        assert sizes(again.encoded, after.calibration) == held_out
        assert sizes(again.encoded, after.normals).isdisjoint(held_out)


@given(n_old=st.integers(0, 9), n_new=st.integers(1, 9), seed=st.integers(0, 9))
@examples(max_examples=40)
def test_new_anomalies_balance_those_that_train_and_those_that_validate(n_old, n_new, seed):
    _, now = updated(plan_of(labels_of(60, n_old), seed=seed), [ANOMALY] * n_new, seed=seed)
    for fold in now.folds:
        n_train, n_validate = len(fold.anomalies), len(fold.validation_anomalies)
        assert n_train + n_validate == n_old + n_new
        assert abs(n_train - n_validate) <= 1
        assert n_train > 0


@pytest.mark.parametrize("n_old", [0, 4])
@pytest.mark.parametrize("n_new", [2, 5])
def test_over_two_folds_with_equal_sides_every_new_anomaly_trains_once_and_validates_once(
    n_old, n_new
):
    n_kept, now = updated(plan_of(labels_of(60, n_old)), [ANOMALY] * n_new)
    first, second = map(roles, now.folds)
    new = set(range(n_kept, n_kept + n_new))
    for one, other in ((first, second), (second, first)):
        assert one["anomalies"] & new == other["validation_anomalies"] & new
        assert (one["anomalies"] | other["anomalies"]) & new == new


@pytest.mark.parametrize("selection", ["average", "best"])
def test_a_first_anomaly_trains_in_every_fold(selection):
    n_kept, now = updated(plan_of(labels_of(60), selection), [NORMAL, ANOMALY])
    for fold in now.folds:
        assert fold.anomalies.tolist() == [n_kept + 1]
        assert not len(fold.validation_anomalies)


def test_anomalies_that_the_user_chose_to_validate_do_not_train_for_want_of_others():
    cells = Table.of(parcels(60))
    validation = Table.of(parcels(20, seed=3)), np.repeat([1, 0], [5, 15]).astype(np.int8)
    training = cells, np.zeros(60, dtype=np.int8)
    plan = plan_with_validation(SCHEMA, training, validation, 0)
    _, now = updated(plan, [NORMAL] * 4)
    assert not len(now.folds[0].anomalies)
    assert len(now.folds[0].validation_anomalies) == 5
    _, now = updated(plan, [ANOMALY])
    assert now.folds[0].anomalies.tolist() == [60]  # validation rows come last
    assert promise_of(plan.folds) is Promise.NOTHING


@pytest.mark.parametrize("unlabelled", ["robust", "normal"])
@pytest.mark.parametrize("old", [ANOMALY, NORMAL, UNLABELLED])
@pytest.mark.parametrize("new", [ANOMALY, NORMAL, UNLABELLED])
def test_a_remembered_row_is_never_added_again_and_does_what_its_newest_label_says(
    old, new, unlabelled
):
    labels = np.tile([UNLABELLED, NORMAL, NORMAL, ANOMALY], 20)
    now_labelled = old if new == UNLABELLED else new
    for row in range(2, 26, 3):  # rows of every role, with a city and without
        labels[row] = old
        plan = plan_of(labels, unlabelled=unlabelled)
        n_kept, now = updated(plan, [new], unlabelled, table=parcels(80).iloc[[row]])
        assert n_kept == len(now.encoded) == now.n_training == 80
        expected = labels.copy()
        expected[row] = now_labelled
        np.testing.assert_array_equal(now.labels, expected)
        for before, after in zip(map(roles, plan.folds), map(roles, now.folds), strict=True):
            plays = {name for name in ROLES if row in after[name]}
            if (old == ANOMALY) == (now_labelled == ANOMALY):
                assert plays == {name for name in ROLES if row in before[name]}
            elif now_labelled == ANOMALY:
                assert len(plays) == 1
                assert plays <= {"anomalies", "validation_anomalies"}
            else:
                assert plays == {"normals"}
            for name in ROLES:  # the others do what they did
                assert after[name] - {row} == before[name] - {row}
        n_news = new not in (old, UNLABELLED)
        told = f"and {80 - n_news} kept ones of the fit." + " 1 row was known already." * (
            not n_news
        )
        given = {"table": parcels(80).iloc[[row]]}
        assert said_of(plan, [new], unlabelled, **given).endswith(told)


def news_of(old, new, rows):
    """Return what labels of rows add to a fit of rows that may repeat."""
    table = parcels(80)
    everything = pd.concat([table, table.iloc[[5] * (len(old) - 1)]], ignore_index=True)
    labels = np.concatenate([np.tile([NORMAL, UNLABELLED], 40), old[1:]])
    labels[5] = old[0]
    plan = plan_of(labels, table=everything)
    return KeptRows.draw(plan), more_of(plan, new, table=table.iloc[rows])


@pytest.mark.parametrize(
    ("old", "new", "is_news", "replaced"),
    [
        ([NORMAL], [NORMAL], [False], []),
        ([NORMAL], [NORMAL] * 2, [False, True], []),
        ([NORMAL], [UNLABELLED] * 3, [False] * 3, []),
        ([UNLABELLED] * 3, [ANOMALY], [True], [UNLABELLED]),
        ([UNLABELLED] * 3, [UNLABELLED, ANOMALY], [False, True], [UNLABELLED]),
        ([UNLABELLED, NORMAL], [NORMAL], [False], []),
        ([UNLABELLED, NORMAL], [ANOMALY], [True], [UNLABELLED]),
        ([UNLABELLED, NORMAL], [ANOMALY] * 3, [True] * 3, [UNLABELLED, NORMAL]),
        ([NORMAL, ANOMALY], [ANOMALY, NORMAL], [False, False], []),
        ([ANOMALY], [NORMAL, ANOMALY], [True, False], []),
    ],
)
def test_each_labelled_row_stands_for_one_remembered_copy(old, new, is_news, replaced):
    kept, given = news_of(old, new, [5] * len(new))
    news = kept.news(*given)
    assert news.is_news.tolist() == is_news
    assert news.replaced.tolist() == replaced
    np.testing.assert_array_equal(news.labels, np.array(new)[is_news])


def test_no_unlabelled_copy_of_a_row_labelled_an_anomaly_now_trains_as_a_normal():
    kept, given = news_of([UNLABELLED] * 4, [ANOMALY], [5])
    encoder = plan_of(labels_of(80)).encoder  # any: the rows are encoded
    plan = kept.plan(encoder, kept.news(*given), "normal", 0)
    copies = np.flatnonzero(np.isin(plan.ids, given[0].ids()))
    assert plan.labels[copies].tolist() == [ANOMALY]
    assert len(plan.encoded) == 80


def test_a_copy_of_a_remembered_normal_does_what_that_does():
    plan = plan_of(np.full(100, NORMAL))
    table = pd.concat([parcels(100)] * 2)
    _, now = updated(plan, np.full(200, NORMAL), table=table)
    assert len(now.encoded) == 200
    for before, after in zip(plan.folds, now.folds, strict=True):
        for name in ROLES:
            rows = getattr(after, name)
            assert sizes(now.encoded, rows) == sizes(plan.encoded, getattr(before, name))
            assert len(rows) == 2 * len(getattr(before, name))


def test_of_a_large_table_only_remembered_rows_are_recognised():
    plan = plan_of(np.full(9000, NORMAL))
    kept = KeptRows.draw(plan)
    news = kept.news(*more_of(plan, np.full(9000, ANOMALY), table=parcels(9000)))
    assert news.is_news.all()
    assert (news.place == NEW).sum() == 9000 - len(kept) > 4000
    assert len(news.replaced) == len(kept)


def test_rows_that_the_user_chose_to_validate_by_are_not_counted_until_labelled_otherwise():
    validation = Table.of(parcels(20, seed=3)), np.repeat([1, 0], [5, 15]).astype(np.int8)
    training = Table.of(parcels(60)), np.full(60, UNLABELLED, dtype=np.int8)
    plan = plan_with_validation(SCHEMA, training, validation, 0)
    kept = KeptRows.draw(plan)
    for _ in range(2):
        assert (len(kept), kept.counted.sum()) == (80, 60)
        news = kept.news(*more_of(plan, [UNLABELLED], table=parcels(60).head(1)))
        now = kept.plan(plan.encoder, news, "robust", 0)
        assert now.n_training == 60
        kept = KeptRows.draw(now)
    news = kept.news(*more_of(plan, [ANOMALY] * 3, table=parcels(20, seed=3).tail(3)))
    assert (news.is_news.tolist(), news.replaced.tolist()) == ([True] * 3, [])
    now = kept.plan(plan.encoder, news, "robust", 0)
    assert (now.n_training, len(now.encoded)) == (63, 80)
    assert (now.labels[60:63] == ANOMALY).all()


@pytest.mark.parametrize("changes", [{"city": "Paris"}, {"city": None}, {"size": 0.123}])
def test_a_row_that_differs_in_a_cell_is_another_row(changes):
    table = parcels(80).assign(city="Bern")
    table.loc[40:, "city"] = "Oslo"
    plan = plan_of(np.full(80, UNLABELLED), table=table)
    for row in (0, 79):  # one with each of the codes of the category
        _, now = updated(plan, [ANOMALY], table=table.iloc[[row]].assign(**changes))
        assert len(now.encoded) == 81


@pytest.mark.parametrize("old", [UNLABELLED, NORMAL])
def test_where_every_remembered_row_is_an_anomaly_now_a_new_fit_is_asked_for(old):
    plan = plan_of([old] * 40)
    with pytest.raises(UserError, match=r"needs normal rows of the fit.*Fit again"):
        updated(plan, [ANOMALY] * 40, table=parcels(40))


@pytest.mark.parametrize(
    ("unlabelled", "expected"), [("robust", [False, False, True]), ("normal", [False] * 3)]
)
def test_new_rows_without_a_label_are_doubtful_unless_taken_as_normal(unlabelled, expected):
    plan = plan_of(labels_of(40, 2, 20), unlabelled="robust")
    n_kept, now = updated(plan, [NORMAL, ANOMALY, UNLABELLED], unlabelled)
    assert now.doubtful[n_kept:].tolist() == expected
    assert now.doubtful[:n_kept].sum() == (20 if unlabelled == "robust" else 0)


def test_a_plan_is_that_of_its_seed_and_says_what_it_adds():
    plan, labels = plan_of(labels_of(60, 4)), [ANOMALY] * 6 + [NORMAL] * 3 + [UNLABELLED]
    (_, one), (_, same), (_, other) = (updated(plan, labels, seed=seed) for seed in (1, 1, 2))
    for first, second in zip(one.folds, same.folds, strict=True):
        for name in ROLES:
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert one.folds[0].anomalies.tolist() != other.folds[0].anomalies.tolist()
    assert one.seed == 1
    assert promise_of(one.folds) is promise_of(plan.folds)


def test_an_update_says_what_it_adds():
    plan = plan_of(labels_of(60, 4))
    expected = "6 anomalous, 3 normal and 1 unlabelled rows, and 64 kept ones of the fit."
    assert said_of(plan, [ANOMALY] * 6 + [NORMAL] * 3 + [UNLABELLED]).endswith(expected)


@pytest.mark.parametrize(
    ("old", "new"), [(NORMAL, NORMAL), (NORMAL, UNLABELLED), (UNLABELLED, UNLABELLED)]
)
def test_a_table_given_again_changes_nothing(old, new):
    plan = plan_of(np.full(100, old))
    n_kept, now = updated(plan, np.full(100, new), table=parcels(100))
    assert n_kept == len(now.encoded) == 100
    assert [roles(fold) for fold in now.folds] == [roles(fold) for fold in plan.folds]
    told = said_of(plan, np.full(100, new), table=parcels(100))
    assert told.endswith("and 100 kept ones of the fit. 100 rows were known already.")
