from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small_density
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fewlier.density import DENSITIES
from fewlier.density.rows import Rows
from fewlier.table import Encoder, Table, infer_schema
from fewlier.training import stack
from fewlier.training.folds import NO_ROWS, Fold
from fewlier.training.objective import criterion
from fewlier.training.stack import Member, Settings, train

N_NORMALS, N_ANOMALIES = 150, 8
QUICK = Settings(max_epochs=5, batch_size=25, learning_rate=0.01)


def table():
    """Normals, then anomalies, of two numbers and a category with missing cells."""
    rng = np.random.default_rng(0)
    n = N_NORMALS + N_ANOMALIES
    x = np.append(rng.normal(0, 1, N_NORMALS), rng.normal(3, 1, N_ANOMALIES))
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(0, 0.3, n), "kind": ["a", "b"] * (n // 2)})
    frame.loc[1::7, "y"] = np.nan  # not in row 0, with which members are padded
    frame.loc[2::11, "kind"] = None
    return frame


def density_and_rows(frame=None, width=8, name="made", seed=0):
    cells = Table.of(table() if frame is None else frame)
    schema = infer_schema(cells)
    encoder = Encoder.fit(schema, cells.take(np.arange(N_NORMALS)))
    sizes = {"n_orderings": 4, "latent": 3, "n_samples": 4, "n_transforms": 2, "n_components": 2}
    settings = small_density(name, hidden=(width,), **sizes)
    density = settings.build(encoder, torch.Generator().manual_seed(seed))
    return density, Rows.of(encoder.encode(cells))


def member(lam=1, seed=0, normals=100, anomalies=(0, 1, 2), validation_anomalies=(3, 4, 5, 6, 7)):
    """A member that trains on the first normals and validates on some of the last, by its seed."""
    first, second = (
        N_NORMALS + np.array(rows, dtype=np.int64) for rows in (anomalies, validation_anomalies)
    )
    validation = np.arange(100 + 4 * seed, N_NORMALS)
    rows = Fold(np.arange(normals), first, validation, second, calibration=NO_ROWS)
    return Member(float(lam), 0, seed, rows)


def run(members, settings=QUICK, frame=None, name="made", **changes):
    return train(*density_and_rows(frame, name=name), members, settings, **changes)


# Of the rows of `table`, every other normal is unlabelled.
DOUBTFUL = (torch.arange(N_NORMALS + N_ANOMALIES) % 2 == 0) & (
    torch.arange(N_NORMALS + N_ANOMALIES) < N_NORMALS
)


def assert_same(found, expected, tolerance=0.0):
    assert found.best_epoch == expected.best_epoch
    np.testing.assert_allclose(found.curve, expected.curve, rtol=tolerance, atol=tolerance)
    assert found.parameters.keys() == expected.parameters.keys()
    for name, parameter in found.parameters.items():
        torch.testing.assert_close(
            parameter, expected.parameters[name], rtol=tolerance, atol=tolerance, msg=name
        )


def motley_members():
    """Members of one, two and four steps, with no, one and more anomalies, of many lambdas."""
    return [
        member(lam=0, seed=1),
        member(lam=1, seed=2),
        member(lam=1000, seed=3),
        member(lam=10, seed=2, normals=90, anomalies=[5], validation_anomalies=[1, 2]),
        member(lam=3, seed=4, normals=80, anomalies=[1, 2, 3, 4, 5, 6]),
        member(lam=1, seed=3, normals=30, validation_anomalies=[]),
        member(lam=1, seed=4, normals=7, anomalies=[], validation_anomalies=[]),
        member(lam=0.1, seed=5, normals=49, anomalies=[0], validation_anomalies=[1, 2]),
        member(lam=0, seed=7, normals=52, anomalies=[], validation_anomalies=[]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "patience"), [*((name, 1) for name in DENSITIES), ("made", None)])
def test_a_member_comes_out_of_a_stack_as_if_trained_alone(name, patience):
    settings = replace(QUICK, patience=patience)
    members = motley_members()
    for together, one in zip(run(members, settings, name=name), members, strict=True):
        assert_same(together, run([one], settings, name=name)[0], tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_members_with_structures_of_their_own_come_out_as_from_their_own_templates(name):
    settings, members = replace(QUICK, patience=1), motley_members()
    templates = [density_and_rows(name=name, seed=i) for i in range(len(members))]
    own = [
        replace(one, drawn=density.drawn())
        for one, (density, _) in zip(members, templates, strict=True)
    ]
    stack = run(own, settings, name=name)
    for together, one, template in zip(stack, members, templates, strict=True):
        assert_same(together, train(*template, [one], settings)[0], tolerance=1e-5)


@pytest.mark.slow
def test_with_unlabelled_rows_too_a_member_comes_out_of_a_stack_as_if_trained_alone():
    members, settings = motley_members(), replace(QUICK, patience=2)
    for together, one in zip(run(members, settings, doubtful=DOUBTFUL), members, strict=True):
        assert_same(together, run([one], settings, doubtful=DOUBTFUL)[0], tolerance=1e-5)


def test_unlabelled_rows_make_a_difference_and_labelled_normals_none():
    members = [member(lam=0, validation_anomalies=[]), member(lam=10)]
    plain, doubted = run(members), run(members, doubtful=DOUBTFUL)
    for one, same in zip(plain, run(members, doubtful=torch.zeros_like(DOUBTFUL)), strict=True):
        assert_same(same, one)
    for one, other in zip(plain, doubted, strict=True):
        assert any(not torch.equal(p, other.parameters[n]) for n, p in one.parameters.items())


@pytest.mark.slow
def test_members_that_leave_early_do_not_disturb_those_that_stay():
    members, settings = motley_members(), replace(QUICK, patience=1, max_epochs=8)
    lengths = {len(trained.curve) for trained in run(members, settings)}
    assert len(lengths) > 1
    for one in run(members, settings):
        assert len(one.curve) in (one.best_epoch + 1, settings.max_epochs)


@pytest.mark.slow
def test_a_stack_beyond_the_memory_limit_is_trained_in_parts(monkeypatch):
    members = motley_members()[:3]
    together = run(members)
    monkeypatch.setattr(stack, "MAX_STACK_BYTES", 1)
    for one, other in zip(run(members), together, strict=True):
        assert_same(one, other, tolerance=1e-5)


@pytest.mark.slow
def test_the_order_of_members_is_kept():
    members = motley_members()
    for one, other in zip(run(members), run(members[::-1])[::-1], strict=True):
        assert_same(one, other, tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_without_lambda_a_member_trains_as_if_there_were_no_anomalies(name):
    plain = run([member(lam=0, anomalies=[])], name=name)[0]
    assert_same(run([member(lam=0)], name=name)[0], plain, tolerance=1e-5)
    assert_same(run([member(lam=50, anomalies=[])], name=name)[0], plain, tolerance=1e-5)


def test_lambda_makes_a_difference():
    without, with_it = run([member(lam=0), member(lam=100)])
    assert any(not torch.equal(p, with_it.parameters[n]) for n, p in without.parameters.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_the_same_seed_gives_the_same_parameters_bit_for_bit(name):
    runs = (run(motley_members(), name=name) for _ in range(2))
    for one, other in zip(*runs, strict=True):
        assert_same(one, other)


def test_another_seed_gives_other_parameters():
    one, other = run([member(seed=0), member(seed=1)])
    assert all(not torch.equal(p, other.parameters[n]) for n, p in one.parameters.items())


def test_training_again_from_a_used_template_gives_the_same():
    density, rows = density_and_rows()
    first = train(density, rows, [member()], QUICK)[0]
    assert_same(train(density, rows, [member()], QUICK)[0], first)


@pytest.mark.parametrize("lam", [float("inf"), float("nan")])
def test_a_member_that_diverges_is_alone_with_it(lam):
    good = [member(lam=1, seed=1), member(lam=10, seed=2, anomalies=[0])]
    first, diverged, second = run([good[0], member(lam=lam), good[1]])
    assert diverged.diverged
    assert all(p.isfinite().all() for p in diverged.parameters.values())
    for found, expected in zip((first, second), run(good), strict=True):
        assert not found.diverged
        assert_same(found, expected, tolerance=1e-5)


def test_a_member_that_diverges_costs_no_more_epochs():
    diverged = run([member(lam=float("inf")), member()])[0]
    assert len(diverged.curve) == 1
    assert diverged.best_epoch == 0


def test_all_members_may_diverge():
    for one in run([member(lam=float("inf")), member(lam=float("nan"))]):
        assert one.diverged


def test_the_best_epoch_is_the_one_with_the_highest_criterion():
    for one in run(motley_members()):
        assert len(one.curve) == QUICK.max_epochs
        assert one.best_epoch == 1 + np.argmax(one.curve)


def test_the_last_epoch_is_kept_if_asked_for_though_another_was_better():
    settings = replace(QUICK, learning_rate=1e3, keep_last=True)
    for one in run(motley_members(), settings):
        assert one.best_epoch == settings.max_epochs == len(one.curve)
    assert any(one.curve[-1] < max(one.curve) for one in run(motley_members(), settings))


def test_the_kept_parameters_are_those_of_the_best_epoch():
    settings = replace(QUICK, learning_rate=0.1, max_epochs=8)
    found = run([member(lam=1)], settings)[0]
    assert found.best_epoch < settings.max_epochs
    again = run([member(lam=1)], replace(settings, max_epochs=found.best_epoch))[0]
    assert_same(again, replace(found, curve=found.curve[: found.best_epoch]))


@pytest.mark.slow
def test_patience_stops_early_and_keeps_the_best():
    settings = replace(QUICK, learning_rate=0.1, max_epochs=30)
    patient, hasty = (run([member(lam=1)], replace(settings, patience=p))[0] for p in (None, 2))
    assert len(hasty.curve) == hasty.best_epoch + 2 < settings.max_epochs
    assert hasty.best_epoch == 1 + np.argmax(hasty.curve)
    assert hasty.curve == patient.curve[: len(hasty.curve)]


def test_of_epochs_that_tie_the_earliest_is_kept():
    found = run([member()], replace(QUICK, learning_rate=0.0))[0]
    assert len(set(found.curve)) == 1
    assert found.best_epoch == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", DENSITIES)
def test_training_raises_the_likelihood_of_validation_normals(name):
    settings = replace(QUICK, max_epochs=40)
    found = run([member(lam=0, validation_anomalies=[])], settings, name=name)[0]
    assert found.curve[-1] > found.curve[0] + 0.1


@pytest.mark.parametrize("name", DENSITIES)
def test_training_tells_anomalies_from_normals(name):
    settings = replace(QUICK, max_epochs=15, criterion="auc")
    assert max(run([member(lam=10)], settings, name=name)[0].curve) > 0.9


def test_what_stands_in_for_a_value_outside_its_domain_is_never_read():
    density, rows = density_and_rows()
    place = torch.arange(len(rows.targets)) == 120, 2
    curves = []
    for code in (0.0, 1.0):
        targets, impossible = rows.targets.clone(), rows.impossible.clone()
        targets[place], impossible[place] = code, True
        odd = rows._replace(targets=targets, impossible=impossible)
        curves.append(train(density, odd, [member(validation_anomalies=[])], QUICK)[0].curve)
    assert curves[0] == curves[1]


def test_training_learns_when_cells_are_missing():
    frame = table()[["x"]].assign(y=lambda t: np.sin(t.index).where(t["x"] < 0.5))
    density, rows = density_and_rows(frame, width=32)
    settings = replace(QUICK, max_epochs=30, learning_rate=0.03)
    (found,) = train(density, rows, [member(lam=0, validation_anomalies=[])], settings)
    unheard_of = rows._replace(observed=~rows.observed)
    trained = density.with_parameters(found.parameters)
    terms = [trained.terms(unheard_of, i) for i in range(4)]
    assert min(each.presence[:, 1].mean() for each in terms) < -1  # where y comes after x


def test_every_epoch_is_reported():
    shares = []
    members = [member(), member(normals=30)]  # of four steps and of one: two stacks
    train(*density_and_rows(), members, QUICK, shares.append)
    total = 2 * QUICK.max_epochs
    assert shares == [done / total for done in range(total + 1)]  # from 0: training begins


def test_the_random_numbers_of_the_caller_are_left_alone():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    run(motley_members())
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002


def test_tiny_numbers_of_the_caller_are_left_alone():
    run([member()])
    assert (torch.tensor([1e-40]) * 1).all()


@pytest.mark.slow
@given(
    normal=st.lists(st.integers(-5, 5), min_size=1, max_size=20),
    anomaly=st.lists(st.integers(-5, 5), min_size=1, max_size=20),
)
def test_the_auc_is_that_of_scikit_learn_ties_included(normal, anomaly):
    score = [-x for x in (*normal, *anomaly)]
    expected = roc_auc_score([0] * len(normal) + [1] * len(anomaly), score)
    log_p = [torch.tensor([x], dtype=torch.float64) for x in (normal, anomaly)]
    found = criterion(*log_p, *(torch.ones_like(x) for x in log_p), name="auc")
    assert float(found) == pytest.approx(expected)


def test_the_smooth_auc_is_the_ranking_term_of_the_objective():
    normal, anomaly = torch.tensor([[0.0, -1.0]]), torch.tensor([[-2.0, 0.5, 1.0]])
    expected = torch.sigmoid(normal[0][:, None] - anomaly[0]).mean()
    found = criterion(normal, anomaly, torch.ones(1, 2), torch.ones(1, 3), name="smooth_auc")
    torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize("name", ["auc", "smooth_auc"])
def test_without_anomalies_the_criterion_is_the_likelihood(name):
    normal, anomaly = torch.tensor([[1.0, 2.0, 9.0]] * 2), torch.tensor([[5.0], [0.0]])
    weights = torch.tensor([[1.0, 1.0, 0.0]] * 2), torch.tensor([[0.0], [1.0]])
    found = criterion(normal, anomaly, *weights, name=name)
    assert float(found[0]) == 1.5
    assert float(found[1]) <= 1
