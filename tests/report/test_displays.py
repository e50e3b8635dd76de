"""Figures from Python: what they hold is right, and each follows scikit-learn's Display style."""

import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from factories import FEATURES, payments, small
from matplotlib.figure import Figure
from scipy import stats
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from fewlier import UserError
from fewlier.report.plots import (
    CurveDisplay,
    PValueDisplay,
    ReasonDisplay,
    ScoreDisplay,
)

ROWS = payments(150, seed=1)
X, Y = ROWS[FEATURES], ROWS["fraud"]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def detector():
    rows = payments()
    return small().fit(rows[FEATURES], rows["fraud"])


DISPLAYS = {
    "scores": lambda detector, ax: ScoreDisplay.from_detector(detector, X, ax=ax),
    "labelled scores": lambda detector, ax: ScoreDisplay.from_detector(detector, X, Y, ax=ax),
    "reasons": lambda detector, ax: ReasonDisplay.from_detector(detector, X, ax=ax),
    "reasons of a row": lambda detector, ax: ReasonDisplay.from_detector(detector, X, row=3, ax=ax),
    "roc": lambda detector, ax: CurveDisplay.from_detector(detector, X, Y, ax=ax),
    "precision-recall": lambda detector, ax: CurveDisplay.from_detector(
        detector, X, Y, kind="precision_recall", ax=ax
    ),
    "p-values": lambda detector, ax: PValueDisplay.from_detector(detector, X, ax=ax),
    "p-values of normals": lambda detector, ax: PValueDisplay.from_detector(detector, X, Y, ax=ax),
}
each_display = pytest.mark.parametrize("make", DISPLAYS.values(), ids=DISPLAYS)


@each_display
def test_a_display_draws_on_the_axes_it_is_given(make, detector):
    figure = Figure()
    ax = figure.subplots()
    display = make(detector, ax)
    assert (display.ax_, display.figure_) == (ax, figure)
    assert ax.get_xlabel()
    figure.savefig("/dev/null", format="svg")


@each_display
def test_a_display_makes_axes_where_it_is_given_none_and_can_be_drawn_again(make, detector):
    display = make(detector, None)
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first
    assert display.figure_ is display.ax_.figure


@each_display
def test_without_matplotlib_the_error_says_what_to_install(make, detector, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UserError, match=r"need matplotlib, .* pip install 'fewlier\[report\]'"):
        make(detector, None)


def test_every_row_is_in_one_bar(detector):
    display = ScoreDisplay.from_detector(detector, X, Y)
    assert {name: counts.sum() for name, counts in display.counts_.items()} == {
        "normal": (Y == 0).sum(),
        "anomalous": (Y == 1).sum(),
        "unlabelled": Y.isna().sum(),
    }
    assert list(ScoreDisplay.from_detector(detector, X).counts_) == ["all"]


@pytest.mark.parametrize("scores", [[1.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1e9], [-5.0, -4.0]])
@pytest.mark.parametrize("threshold", [-100.0, 1.5, 100.0])
def test_bars_hold_far_and_equal_scores(scores, threshold):
    display = ScoreDisplay(scores=np.array(scores), threshold=threshold, unit="nats")
    assert display.counts_["all"].sum() == len(scores)
    assert (np.diff(display.edges_) > 0).all()
    display.plot()


def test_far_rows_are_reported_and_do_not_squeeze_the_others():
    scores = np.concatenate([np.linspace(0, 1, 1000), [1e6]])
    display = ScoreDisplay(scores=scores, threshold=0.9, unit="nats").plot()
    assert display.edges_[-1] < 2
    assert "1 row beyond, up to 1e+06" in display.ax_.get_xlabel()


def test_mean_reasons_are_those_of_rows_above_the_threshold(detector):
    display = ReasonDisplay.from_detector(detector, X)
    explanation = detector.explain(X)
    above = explanation.score > detector.threshold_
    mean = dict(zip(FEATURES, explanation.contributions[above].mean(0), strict=True))
    assert display.title == f"mean of {above.sum()} rows above the threshold"
    found = dict(zip(display.names, display.contributions, strict=True))
    assert found == pytest.approx(mean)
    assert (np.diff(display.contributions) <= 0).all()


def test_where_no_row_is_above_all_rows_are_explained(detector):
    calm = X[detector.predict(X) == 0]
    display = ReasonDisplay.from_detector(detector, calm, n_columns=2)
    assert display.title == f"mean of {len(calm)} rows; none is above the threshold"
    assert len(display.names) == 2


def test_reasons_of_one_row_name_its_values(detector):
    display = ReasonDisplay.from_detector(detector, X, row=3)
    best = detector.explain(X).top(3)
    assert display.contributions.tolist() == [reason.contribution for reason in best]
    for name, reason in zip(display.names, best, strict=True):
        assert str(reason).startswith(name)
        assert name.startswith((f"{reason.column} = ", f"{reason.column} is missing"))
    for said, reason in zip(display.expectations, best, strict=True):
        assert said == f"expected {reason.expectation}"
    shown = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert shown[0].endswith(f"\nexpected {best[0].expectation}")


def test_a_dollar_sign_in_a_name_does_not_start_a_formula():
    names = [r"$\frac{1}{", "a$b", "n" * 500]
    display = ReasonDisplay(names=names, contributions=np.ones(3), unit="nats", title="$\\x$")
    display.plot().figure_.savefig("/dev/null", format="svg")
    shown = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert shown == [*names[:2], "n" * 27 + "…"]


def test_a_column_that_adds_next_to_nothing_has_no_sign_of_its_own():
    display = ReasonDisplay(
        names=["a", "b"], contributions=np.array([1.5, -1e-4]), unit="nats", title="t"
    )
    shown = [text.get_text() for text in display.plot().ax_.texts]
    assert shown == ["+1.50", "+0.00"]


def test_reasons_are_legible_at_the_default_size():
    display = ReasonDisplay(
        names=[f"{'column':_>20} {j} = 1000" for j in range(12)],
        contributions=np.linspace(7, 0, 12),
        unit="standard units",
        title="row 3",
        expectations=["Bern (42 %), Oslo (36 %), Rome (8 %)"] * 12,
    ).plot()
    display.figure_.draw_without_rendering()
    axes = display.ax_.get_window_extent()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    for upper, lower in pairwise(boxes):
        assert upper.y0 > lower.y1
    assert all(box.x0 >= 0 for box in boxes)
    assert axes.width > axes.x0  # bars have more room than their names
    for text in display.ax_.texts:
        assert text.get_window_extent().x1 <= axes.x1


def test_curves_are_those_of_scikit_learn(detector):
    labelled = Y.notna()
    truth, scores = Y[labelled], detector.anomaly_score(X)[labelled]
    roc = CurveDisplay.from_detector(detector, X, Y)
    expected = roc_curve(truth, scores, drop_intermediate=False)[:2]
    np.testing.assert_allclose((roc.x, roc.y), expected)
    assert roc.area == pytest.approx(roc_auc_score(truth, scores))
    curve = CurveDisplay.from_detector(detector, X, Y, kind="precision_recall")
    precision, recall, _ = precision_recall_curve(truth, scores)
    np.testing.assert_allclose(curve.x, recall[::-1])
    np.testing.assert_allclose(curve.y[1:], precision[::-1][1:])
    assert curve.area == pytest.approx(average_precision_score(truth, scores))
    above = scores > detector.threshold_
    assert roc.point == pytest.approx((above[truth == 0].mean(), above[truth == 1].mean()))
    assert curve.point == pytest.approx((above[truth == 1].mean(), truth[above].mean()))


def drawn(n_normal, n_anomaly, shift, seed):
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(size=n_normal), rng.normal(shift, 1, n_anomaly)])
    return scores, np.repeat([0, 1], [n_normal, n_anomaly]).astype(np.int8)


def covered(seeds, n_normal, n_anomaly, shift=1.5):
    """Return how often the true curve lies in the band at some false-alarm rates, and the AUC."""
    rates = np.array([0.1, 0.2, 0.5])
    truth = stats.norm.sf(stats.norm.isf(rates) - shift)
    true_auc = stats.norm.cdf(shift / np.sqrt(2))
    hits = []
    for seed in seeds:
        display = CurveDisplay(*drawn(n_normal, n_anomaly, shift, seed), kind="roc", threshold=0.0)
        at = np.searchsorted(display.grid, rates - 1e-9)
        low, high = display.area_interval
        in_band = (display.lower[at] <= truth) & (truth <= display.upper[at])
        hits.append([*in_band, low <= true_auc <= high])
    return np.mean(hits, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("n_normal", "n_anomaly"), [(300, 60), (100, 8)])
def test_the_band_covers_the_true_curve_as_often_as_it_says(n_normal, n_anomaly):
    shares = covered(range(120), n_normal, n_anomaly)
    assert (shares >= 0.88).all(), shares  # 95 % less three standard errors and a little


def test_the_interval_of_the_auc_is_near_that_of_delong():
    scores, labels = drawn(400, 80, 1.2, seed=3)
    low, high = CurveDisplay(scores, labels, kind="roc").area_interval
    wins = scores[labels == 1][:, None] > scores[labels == 0]
    variance = wins.mean(1).var(ddof=1) / 80 + wins.mean(0).var(ddof=1) / 400
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.15)


@pytest.mark.parametrize("kind", ["roc", "precision_recall"])
def test_scores_that_separate_a_handful_are_not_beyond_doubt(kind):
    scores = np.concatenate([np.linspace(0, 1, 100), np.linspace(2, 3, 4)])
    labels = np.repeat([0, 1], [100, 4]).astype(np.int8)
    display = CurveDisplay(scores, labels, kind=kind)
    assert display.area == 1
    low, high = display.area_interval
    assert low < 0.9
    assert high == 1


@pytest.mark.parametrize("kind", ["roc", "precision_recall"])
def test_the_same_scores_give_the_same_band(kind):
    first, second = (CurveDisplay(*drawn(50, 9, 1, 0), kind=kind) for _ in range(2))
    np.testing.assert_array_equal((first.lower, first.upper), (second.lower, second.upper))


@pytest.mark.parametrize("kind", ["roc", "precision_recall"])
def test_a_curve_of_many_rows_is_thinned_and_near_the_whole(kind):
    scores, labels = drawn(60_000, 5_000, 1.5, seed=0)
    display = CurveDisplay(scores, labels, kind=kind)
    assert len(display.x) <= 2001
    whole = np.interp(display.grid[1:], display.x, display.y)
    assert (display.lower[1:] - 1e-3 <= whole).all()
    assert (whole <= display.upper[1:] + 1e-3).all()


@pytest.mark.parametrize("labels", [[0, 0], [1, 1], [-1, -1]])
def test_a_curve_of_one_label_is_refused(labels):
    with pytest.raises(UserError, match=r"needs rows of both labels; got \d normal and \d "):
        CurveDisplay(np.arange(2.0), np.array(labels, np.int8), kind="roc")


def test_a_threshold_above_all_rows_has_no_precision():
    scores, labels = drawn(20, 5, 1, 0)
    display = CurveDisplay(scores, labels, kind="precision_recall", threshold=scores.max())
    assert display.point is None
    display.plot()


def test_p_values_of_normal_rows_stay_in_the_band_and_others_leave_it():
    rng = np.random.default_rng(0)
    fair = PValueDisplay(p_values=rng.random(500), n_held_out=400, what="rows")
    assert fair.verdict == "kept"
    unfair = PValueDisplay(p_values=rng.random(500) ** 2, n_held_out=400, what="rows")
    assert unfair.verdict == "broken"
    assert unfair.p_value < 1e-3


def conformal(n_held_out, n_rows, rng):
    """Return p-values of fresh rows by held-out rows of the same distribution."""
    held_out = np.sort(rng.random(n_held_out))
    above = n_held_out - np.searchsorted(held_out, rng.random(n_rows))
    return (1 + above) / (n_held_out + 1)


@pytest.mark.slow
def test_tests_of_p_values_are_right_over_fits_and_their_intervals_hold_95_percent():
    rng = np.random.default_rng(0)
    displays = [
        PValueDisplay(p_values=conformal(120, 1000, rng), n_held_out=120, what="rows")
        for _ in range(400)
    ]
    broken = np.mean([display.verdict == "broken" for display in displays])
    assert broken < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    # A model's own rate is mostly not the one it promises, and many rows show it.
    assert np.mean([display.verdict == "scatter" for display in displays]) > 0.2
    checks = [check for display in displays for check in display.checks_]
    inside = np.mean([check.low <= check.share <= check.high for check in checks])
    assert inside == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("n_rows", [1, 7, 60, 1500])
@pytest.mark.parametrize("m", [1, 19, 400])
def test_the_interval_of_a_share_is_that_of_the_beta_binomial_distribution(n_rows, m):
    display = PValueDisplay(p_values=np.ones(n_rows), n_held_out=m, what="rows")
    ranks = np.unique(np.linspace(1, m, 20).round())
    low, high = display._interval(ranks)
    exact = stats.betabinom(n_rows, ranks, m + 1 - ranks)
    assert (exact.cdf(high * n_rows) - exact.cdf(low * n_rows - 1) >= 0.95).all()
    ends = exact.ppf(0.025), exact.ppf(0.975)
    np.testing.assert_allclose((low * n_rows, high * n_rows), ends, atol=1)


def test_p_values_of_a_million_rows_are_drawn():
    rng = np.random.default_rng(0)
    display = PValueDisplay(p_values=conformal(300, 1_000_000, rng), n_held_out=300, what="rows")
    display.plot()
    assert display.verdict in ("kept", "scatter")


def test_twice_as_many_small_p_values_as_promised_are_never_called_right():
    p = np.concatenate([np.full(100, 0.004), np.linspace(0.011, 1, 4900)])  # 2 % up to 1 %
    few, many = (
        PValueDisplay(p_values=p, n_held_out=m, what="rows labelled normal") for m in (250, 20_000)
    )
    assert (few.verdict, many.verdict) == ("scatter", "broken")
    check = few.checks_[0]
    assert (check.alpha, check.share) == (0.01, 0.02)
    assert check.low < 0.005 < 0.02 < check.high < 0.03


def test_displays_take_arrays_as_the_detector_does():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    detector = small().fit(table.to_numpy())
    assert set(ReasonDisplay.from_detector(detector, table.to_numpy()).names) == {"x0", "x1"}
