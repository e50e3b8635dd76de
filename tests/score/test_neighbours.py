"""Neighbours on both scales, alone and as a part of a detector's score."""

import numpy as np
import pandas as pd
import pytest
from factories import small
from hypothesis import given, settings
from hypothesis import strategies as st
from shops import CPU, N_ODD, N, distances, encoded, fit, neighbours, shops
from sklearn.metrics import roc_auc_score
from stored import reread

from fewlier import FormatError
from fewlier.density.rows import Rows
from fewlier.modelfile.state import State
from fewlier.score.held_out import held_out_scores
from fewlier.score.neighbours import view as module
from fewlier.score.neighbours.coordinates import COORDINATES
from fewlier.score.neighbours.part import Neighbours
from fewlier.score.neighbours.view import max_landmarks
from fewlier.score.part import HeldOut
from fewlier.score.scorer import Scorer
from fewlier.score.shares import own_passes
from fewlier.table import Table


def score(neighbours, encoded, own=None):
    """Return z of encoded rows; with their ids, none is its own neighbour."""
    own = None if own is None else HeldOut(own)
    contributions = neighbours.contributions(Rows.of(encoded), {}, own)
    assert (contributions[:, -1] == 0).all()
    return contributions.sum(1).numpy()


def landmarks(detector):
    """Return the ids of the normals and of the anomalies that a detector compares rows with."""
    view, other = detector.model_.parts["neighbours"].views
    sides = [(v.normals.ids, v.anomalies and v.anomalies.ids) for v in (view, other)]
    found, same = ([set() if ids is None else set(ids) for ids in side] for side in sides)
    assert found == same
    return found


@pytest.fixture(scope="module")
def detector():
    return small().fit(shops(), np.arange(N) < N_ODD)


@pytest.mark.parametrize("n_odd", [0, N_ODD])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_row_is_judged_and_explained_by_the_view_in_which_it_is_odder(n_odd, is_known):
    encoder, rows = encoded(shops(n_odd=n_odd))
    both = neighbours(encoder, rows, n_odd)
    assert [v.space.coordinates.name for v in both.views] == list(COORDINATES)
    fresh = rows if is_known else encoded(shops(200, seed=1), encoder)[1]
    own = rows.ids() if is_known else None
    found = [view.contributions(Rows.of(fresh), own).numpy() for view in both.views]
    z = np.stack(found).sum(-1)
    np.testing.assert_allclose(score(both, fresh, own), z.max(0), rtol=1e-9, atol=1e-9)
    assert set(z.argmax(0)) == {0, 1}
    held_out = None if own is None else HeldOut(own)
    contributions = both.contributions(Rows.of(fresh), {}, held_out)[:, :-1].numpy()
    for row, odder in enumerate(z.argmax(0)):
        np.testing.assert_array_equal(contributions[row], found[odder][row])


def test_each_view_finds_what_is_odd_on_its_scale():
    rng = np.random.default_rng(0)
    income = rng.lognormal(size=N)
    frame = pd.DataFrame({"income": income, "rent": income * rng.lognormal(0, 0.1, N)})
    frame.loc[:8] *= 1e4  # a few of the rich
    encoder, rows = encoded(frame, kinds=dict.fromkeys(frame, "real"))
    # As usual; a low income and a high rent; more than anyone has.
    new = pd.DataFrame({"income": [1.0, 0.3, 1e5], "rent": [1.0, 4.0, 4e5]})
    both = neighbours(encoder, rows)
    fresh = encoded(new, encoder)[1]
    parts = (view.contributions(Rows.of(fresh), None).sum(1).numpy() for view in both.views)
    deviations, ranks = parts
    assert ranks[1] > ranks[0] + 1
    assert abs(deviations[1] - deviations[0]) < 0.5  # the rich make all others look alike
    assert deviations[2] > ranks[2] + 1  # ranks do not tell how far beyond
    z = score(both, fresh)
    assert (z[1:] > z[0] + 1).all()


def test_with_labels_columns_that_say_nothing_count_less():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 20))).rename(columns="c{}".format)
    odd = np.arange(600) < 106  # the first six have labels
    frame.loc[odd, "c0"] += 3
    normals, labels, tested = np.arange(200, 600), np.arange(6), np.arange(6, 200)
    encoder, rows = encoded(frame)
    fits = [fit(encoder, rows, normals, labels[:n]) for n in (0, 6)]
    assert all((view.space.weight == 1).all() for view in fits[0].views)
    plain, weighed = (roc_auc_score(odd[tested], score(f, rows.take(tested))) for f in fits)
    assert weighed > plain + 0.1


@pytest.mark.parametrize("n_odd", [0, 1, N_ODD])
def test_neighbours_are_read_back_as_they_were(n_odd):
    encoder, rows = encoded(shops())
    fitted = neighbours(encoder, rows, n_odd)
    again = reread(fitted, encoder, CPU)
    np.testing.assert_array_equal(score(again, rows), score(fitted, rows))
    assert (again.n_compared, again.meaning) == (fitted.n_compared, fitted.meaning)


@pytest.mark.parametrize("chosen", [[], [0], [1, 0], [0, 0], [0, 1, 1]])
def test_neighbours_that_are_not_seen_once_on_each_scale_are_refused(chosen):
    encoder, rows = encoded(shops())
    views = neighbours(encoder, rows, N_ODD).views
    state = State({"views": [views[number].state() for number in chosen]})
    with pytest.raises(FormatError, match="once on each scale"):
        Neighbours.from_state(State(*state.flat()), encoder, CPU)


@pytest.mark.slow
@given(st.permutations(range(40)), st.integers(1, 40))
@settings(max_examples=20)
def test_a_row_scores_the_same_in_any_company(detector, order, n):
    table = shops(40, seed=5)
    scores = detector.anomaly_score(table)
    chosen = list(order)[:n]
    np.testing.assert_array_equal(detector.anomaly_score(table.iloc[chosen]), scores[chosen])


@pytest.mark.slow
def test_wide_tables_keep_fewer_rows(monkeypatch):
    assert max_landmarks(20) == module.MAX_LANDMARKS
    assert max_landmarks(2000) == 8 * 2**20 // 8000
    assert max_landmarks(10**9) == 3
    monkeypatch.setattr(module, "_MAX_BYTES", 4 * 5 * 51)  # five inputs
    fitted = small(max_epochs=1).fit(shops(gaps=0), np.arange(N) < N_ODD)
    kept = fitted.model_.parts["neighbours"]
    assert [len(ids) for ids in landmarks(fitted)] == [51, N_ODD]
    assert kept.n_compared == fitted.model_.n_compared == 51 + N_ODD


# In a detector


@pytest.mark.slow
@pytest.mark.parametrize(("n_labels", "grown"), [(0, 0), (1, 0), (2, 2 / 7.2), (6, 6 / 13.6)])
def test_the_score_is_the_sum_of_its_parts(n_labels, grown):
    detector = small(max_epochs=2).fit(shops(), np.arange(N) < n_labels)
    fresh = shops(50, seed=7)
    model = detector.model_
    encoded = model.encode(Table.of(fresh))
    alone = Scorer(model.encoder, model.ensemble)
    near = score(model.parts["neighbours"], encoded)
    found = {"density": alone.score(encoded), "neighbours": near}
    shares = {"density": 0.25 * (1 - grown), "neighbours": 0.75 * (1 - grown)}
    if grown:
        shares |= {"trees": grown / 2, "rules": grown / 2}
        for name in ("trees", "rules"):
            before = {"neighbours": model.parts["neighbours"].contributions(Rows.of(encoded), {})}
            parts = model.parts[name].contributions(Rows.of(encoded), before)
            found[name] = parts.sum(1).numpy()
    assert list(model.parts) == list(shares)
    expected = sum(share * found[name] for name, share in shares.items())
    np.testing.assert_allclose(model.score(encoded), expected, atol=1e-5)
    np.testing.assert_array_equal(detector.score_samples(fresh), alone.log_density(encoded))


@pytest.mark.slow
def test_the_best_member_has_no_companion_and_all_passes():
    best = small(selection="best", n_orderings=3).fit(shops(), np.arange(N) < N_ODD)
    assert list(best.model_.parts) == ["density"]
    (member,) = best.model_.ensemble.members
    assert member.passes == (0, 1, 2)
    fresh = shops(20, seed=7)
    np.testing.assert_allclose(best.anomaly_score(fresh), -best.score_samples(fresh), rtol=1e-6)


def test_passes_are_shared_out_in_turn():
    assert [own_passes(number, 2, "average") for number in range(4)] == [(0,), (1,), (1,), (0,)]
    assert [own_passes(number, 3, "average") for number in range(4)] == [(0,), (1,), (2,), (1,)]
    assert own_passes(4, 1, "average") == (0,)
    assert own_passes(4, 3, "best") == (0, 1, 2)


@pytest.mark.slow
def test_members_take_their_own_passes_and_a_row_as_many_in_all():
    fitted = small(n_orderings=5, max_epochs=1).fit(shops(), np.arange(N) < N_ODD)
    for member in fitted.model_.ensemble.members:
        index = 2 * member.fold + (0, 10).index(member.lam)
        assert member.passes == own_passes(index, 5, "average")
        assert member.substitutes.typical.shape == (1, 3)
    assert fitted.model_.ensemble.passes_per_row == len(fitted.model_.ensemble.members)


@pytest.mark.slow
def test_rows_that_stand_behind_thresholds_are_neighbours_of_others_but_with_best():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    fitted = small(max_epochs=1, hidden=(4,)).fit(X, np.arange(300) < 4)
    assert landmarks(fitted) == [set(fitted._plan.ids[4:]), set(fitted._plan.ids[:4])]
    assert len(fitted.model_.calibration.normal_scores) == 296
    assert fitted.model_.calibration.guarantee.startswith("approximate")
    best = small(max_epochs=1, hidden=(4,), selection="best").fit(X, np.arange(300) < 4)
    assert best.model_.calibration.guarantee.startswith("exact")


@pytest.mark.slow
def test_training_rows_are_scored_without_themselves(detector):
    model, plan = detector.model_, detector._plan
    scores = held_out_scores(plan, model.scorer)
    np.testing.assert_array_equal(detector.decision_scores_, scores)
    seen = detector.anomaly_score(shops())
    rows = plan.encoded.take(np.arange(N))
    neighbours = model.parts["neighbours"]
    complete = shops().notna().all(axis=1).to_numpy()
    near = score(neighbours, rows) - score(neighbours, rows, rows.ids())
    assert (near[:N_ODD][complete[:N_ODD]] > 0).all()  # each is a known anomaly to itself
    for view in neighbours.views:
        to_others, to_all = (distances(view, rows, i).sum(1).numpy() for i in (rows.ids(), None))
        assert (to_all <= to_others)[N_ODD:][complete[N_ODD:]].all()
        assert (to_all < to_others)[N_ODD:][complete[N_ODD:]].mean() > 0.9
    assert scores[N_ODD:].mean() > seen[N_ODD:].mean()
    unseen = model.calibration.anomaly_scores
    assert len(unseen) == N_ODD
    assert unseen.mean() < seen[:N_ODD].mean()


@pytest.mark.slow
def test_unlabelled_rows_that_are_distrusted_are_no_neighbours():
    table = shops(gaps=0, n_odd=0)
    table.loc[:9, "size"] = 60.0 + np.arange(10) / 100
    quick = {"max_epochs": 30, "learning_rate": 0.01}
    robust, trusting = (small(unlabelled=how, **quick).fit(table) for how in ("robust", "normal"))
    hidden = set(robust._plan.ids[:10])
    kept, all_rows = landmarks(robust)[0], landmarks(trusting)[0]
    assert hidden <= all_rows
    assert not hidden & kept
    assert len(kept) > 0.9 * (N - 10)


@pytest.mark.slow
def test_an_update_compares_with_the_rows_at_hand(detector, tmp_path):
    detector.save(tmp_path / "m.fewlier")
    updated = type(detector).load(tmp_path / "m.fewlier")
    more = shops(30, seed=8)
    updated.update(more, np.arange(30) < N_ODD)
    normals = pd.concat([shops()[N_ODD:], more[N_ODD:]]).drop_duplicates()
    assert [len(ids) for ids in landmarks(updated)] == [len(normals), 2 * N_ODD]


@pytest.mark.slow
def test_rows_of_the_fit_are_scored_without_themselves_after_an_update_too():
    live = small(max_epochs=1).fit(shops(), np.arange(N) < N_ODD)
    before = live.decision_scores_
    live.update(shops(30, seed=8), np.arange(30) < N_ODD)
    after, in_sample = live.decision_scores_, live.anomaly_score(shops())
    # In-sample, every normal is its own nearest, and every anomaly is a known one.
    assert after[N_ODD:].mean() > in_sample[N_ODD:].mean() + 0.1
    assert after[:N_ODD].mean() < in_sample[:N_ODD].mean()
    assert np.corrcoef(after, before)[0, 1] > 0.9
    assert abs(after[N_ODD:].mean() - before[N_ODD:].mean()) < 0.2
    np.testing.assert_array_equal(live.labels_, after > live.threshold_)


STRANGE = {
    "one column": lambda t: t[["size"]],
    "a category": lambda t: t[["city"]],
    "constant": lambda t: t.assign(same=1.0),
    "all constant": lambda t: pd.DataFrame({"a": np.ones(len(t)), "b": ["x"] * len(t)}),
    "empty column": lambda t: t.assign(empty=np.nan),
    "nothing": lambda t: t[["size"]].assign(size=np.nan),
    "twins": lambda t: t.iloc[np.arange(len(t)) // 10].reset_index(drop=True),
    "few normals": lambda t: t.head(N_ODD + 3),
    "one normal": lambda t: t.head(2),
}


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [0, N_ODD])
@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE)
@pytest.mark.filterwarnings("ignore:A false-alarm rate:fewlier.FewlierWarning")
def test_tables_of_any_shape_are_fitted_saved_and_explained(change, n_labels, tmp_path):
    table = change(shops(gaps=0.05))
    n_labels = min(n_labels, len(table) - 1)
    quick = small(max_epochs=1, hidden=(4,)).fit(table, np.arange(len(table)) < n_labels)
    assert bool(landmarks(quick)[1]) == (n_labels > 0)
    scores = quick.anomaly_score(table)
    assert np.isfinite(scores).all()
    assert np.isfinite(quick.decision_scores_).all()
    np.testing.assert_allclose(quick.explain(table).score, scores, rtol=1e-9, atol=1e-6)
    quick.save(tmp_path / "m.fewlier")
    loaded = type(quick).load(tmp_path / "m.fewlier")
    np.testing.assert_array_equal(loaded.anomaly_score(table), scores)


@pytest.mark.slow
def test_a_member_that_knows_normals_has_a_share_and_says_what_was_expected():
    fitted = small(lambdas=(0, 1e4), max_epochs=20).fit(shops(gaps=0), np.arange(N) < N_ODD)
    model = fitted.model_
    lambdas = [member.lam for member in model.ensemble.members]
    weights = [*zip(lambdas, model.ensemble.weights, strict=True)]
    # In each of two folds the other has three quarters, or none where this one is the best.
    assert {(0, 0.125), (1e4, 0.375)} <= set(weights) <= {(0, 0.125), (1e4, 0.375), (0, 0.5)}
    assert model.ensemble.likeliest.lam == 0


@pytest.mark.slow
def test_one_label_is_enough_to_find_its_like():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    X[:1, :2] += 2.5
    fresh = rng.normal(size=(400, 6))
    fresh[:100, :2] += 2.5
    is_odd = np.arange(400) < 100
    model = small(max_epochs=2).fit(X, np.arange(400) < 1)
    without = small(max_epochs=2).fit(X[1:])
    found, blind = (roc_auc_score(is_odd, d.anomaly_score(fresh)) for d in (model, without))
    assert found > max(0.85, blind)


@pytest.mark.slow
@pytest.mark.parametrize(("n_labels", "unranked"), [(1, {0, 1}), (4, {0, 1}), (5, {0}), (6, set())])
def test_members_are_ranked_only_where_three_anomalies_are_held_out(n_labels, unranked):
    lambdas = (0, 1, 10)
    fitted = small(max_epochs=1, lambdas=lambdas).fit(shops(gaps=0), np.arange(N) < n_labels)
    ensemble = fitted.model_.ensemble
    for fold in (0, 1):
        weights = [
            w for m, w in zip(ensemble.members, ensemble.weights, strict=True) if m.fold == fold
        ]
        if fold in unranked:
            assert weights == [1 / 6] * 3
        else:
            assert len(weights) <= 2
