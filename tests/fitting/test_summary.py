import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from stored import read, record_of, reread

from fewlier import AnomalyDetector, FormatError, Made, Training
from fewlier.decision.calibration import Calibration
from fewlier.decision.threshold import Promise, percent
from fewlier.fitting.summary import Summary, _doubtful_note
from fewlier.training.history import MAX_POINTS, MemberHistory, thin_curve

N, N_ANOMALIES, N_UNLABELLED = 300, 8, 50
CALIBRATION = Calibration(np.arange(9.0), np.arange(9.0), 1.0, Promise.EXACT)


def fit(selection="average", **changes):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=N) + 3 * (np.arange(N) < N_ANOMALIES),
            "orders": rng.integers(1, 6, N),
            "city": rng.choice(["Bern", "Oslo"], N),
        }
    )
    y = np.where(np.arange(N) < N_ANOMALIES, 1.0, 0.0)
    y[-N_UNLABELLED:] = np.nan
    settings = {
        "selection": selection,
        "density": Made(hidden=(16,), n_orderings=3),
        "training": Training(lambdas=(0, 1, 10), max_epochs=5),
        "false_alarm_rate": 0.2,
        "random_state": 0,
    }
    return AnomalyDetector(**settings | changes).fit(table, y)


@pytest.fixture(scope="module", params=["average", "best"])
def detector(request):
    return fit(request.param)


def test_a_summary_reads_as_lines_on_rows_columns_and_notes(detector):
    summary = detector.summary_
    lines, workings = (
        dict(line.split(maxsplit=1) for line in text.splitlines())
        for text in (str(summary), summary.workings)
    )
    assert lines["rows"] == "242 normal, 8 anomalous, 50 unlabelled"
    kinds = "1 real (size); 1 count as category (orders); 1 category (city)"
    assert lines["columns"] == kinds
    shown = (
        f"{detector.threshold_:.4g} {detector.score_unit_} ({detector.summary_.decision.meaning})"
    )
    assert lines["threshold"] == shown
    assert detector.summary_.rule.startswith("false-alarm rate ")
    assert lines["note"].startswith(
        "50 unlabelled rows train as normal rows, with less weight where"
    )
    n_rows, n_untrusted = detector.model_.doubtful_rows
    count, are = ("counts", "is") if n_untrusted == 1 else ("count", "are")
    beside = f" and {are} left out of the comparison" if detector.selection == "average" else ""
    distrust = f": of {n_rows} examined, {n_untrusted} {count} less than half{beside}."
    assert lines["note"].endswith(distrust if n_untrusted else "less likely than the others.")
    ranking = detector.summary_.validation
    assert lines["validation"].startswith(f"AUC {ranking.auc:.3f} (95 %: {ranking.low:.2f} to ")
    assert ranking.n_anomalies == {"average": 8, "best": 4}[detector.selection]
    assert lines["flags"].startswith(f"about {percent(detector.summary_.decision.flagged)} %")
    assert not set(lines) & set(workings)
    assert workings["lambda"].endswith("(weight in the density)")
    compared = {"average": ", compared with 300 rows", "best": ""}[detector.selection]
    n_passes = detector.model_.ensemble.passes_per_row
    assert workings["cost"] == f"{n_passes} network passes per row{compared}"
    assert lines["time"].endswith(" s")


def test_a_summary_names_a_few_columns_of_each_kind_and_counts_all():
    table = np.random.default_rng(0).normal(size=(100, 20))
    detector = AnomalyDetector(
        density=Made(hidden=(4,)),
        training=Training(max_epochs=1),
        false_alarm_rate=0.5,
        random_state=0,
    )
    text = str(detector.fit(table).summary_)
    assert "20 real (x0, x1, x2, x3, x4, x5, ...)" in text
    assert "none: no anomaly is labelled" in text
    assert "likelihood" not in text.split("note")[0]


def test_with_one_label_there_are_words_in_place_of_a_figure():
    X = np.random.default_rng(0).normal(size=(100, 3))
    detector = AnomalyDetector(
        density=Made(hidden=(4,)), training=Training(max_epochs=1), random_state=0
    )
    summary = detector.set_params(false_alarm_rate=0.1).fit(X, np.arange(100) == 0).summary_
    assert summary.validation is None
    (line,) = (line for line in str(summary).splitlines() if line.startswith("validation"))
    assert "the only labelled anomaly trains" in line
    assert not any(character.isdigit() for character in line)
    assert json.loads(json.dumps(summary.to_json()))["validation"] is None


def test_a_summary_weighs_every_lambda(detector):
    weights = detector.summary_.lambda_weights
    assert list(weights) == [0, 1, 10]
    assert sum(weights.values()) == pytest.approx(1)
    shown = detector.summary_.workings
    for lam, weight in weights.items():
        assert (f"{lam:g}: {weight:.2f}" in shown) == (weight > 0)


def test_history_has_a_line_per_member(detector):
    members = [(line.fold, line.lam) for line in detector.history_]
    folds = {"average": [0, 1], "best": [0]}[detector.selection]
    assert members == [(fold, lam) for fold in folds for lam in (0, 1, 10)]
    for line in detector.history_:
        assert line.n_anomalies == N_ANOMALIES / 2
        assert line.criterion_name == {"average": "smooth_auc", "best": "auc"}[detector.selection]
        assert 0 <= line.criterion <= 1


def test_rows_that_train_as_normal_are_not_said_to_be_distrusted():
    trusting = fit(unlabelled="normal")
    assert trusting.model_.doubtful_rows is None
    assert trusting.summary_.notes[-1] == "50 unlabelled rows train as normal rows."


def test_history_keeps_the_curve_and_the_best_epoch_of_each_member(detector):
    for line in detector.history_:
        assert line.epochs == (1, 2, 3, 4, 5)
        assert line.values[line.best_epoch - 1] == max(line.values)


def test_weights_sum_to_one_and_say_who_is_kept(detector):
    weights = np.array([line.weight for line in detector.history_])
    assert weights.sum() == pytest.approx(1)
    for line in detector.history_:
        assert line.status == ("kept" if line.weight else "left out")
    assert (weights > 0).sum() == {"average": 3, "best": 1}[detector.selection]
    assert len(detector.model_.ensemble.members) == (weights > 0).sum()


def test_members_of_a_fold_share_a_seed_and_folds_do_not():
    seeds = {(line.fold, line.seed) for line in fit().history_}
    assert len(seeds) == len({seed for _, seed in seeds}) == 2


@pytest.mark.parametrize("selection", ["average", "best"])
def test_a_diverged_member_stops_is_noted_and_keeps_its_line(selection):
    detector = fit(
        selection, training=Training(lambdas=(0, 1e39), max_epochs=5)
    )  # more than float32 holds: infinite
    kept, diverged = detector.history_[:2]
    assert (kept.lam, kept.status) == (0, "kept")
    assert (diverged.lam, diverged.status, diverged.weight) == (1e39, "diverged", 0)
    assert (diverged.criterion, diverged.epochs, diverged.values) == (None, (), ())
    n = len(detector.history_)
    assert f"note        {n // 2} of {n} members diverged" in str(detector.summary_)


def test_a_long_curve_is_thinned_from_its_first_epoch_to_its_last():
    curve = np.linspace(0, 1, 1000)
    epochs, values = thin_curve(curve.tolist())
    assert len(epochs) == MAX_POINTS
    assert (epochs[0], epochs[-1]) == (1, 1000)
    np.testing.assert_allclose(values, curve[np.array(epochs) - 1], rtol=1e-4)


def test_the_curve_of_a_member_that_diverged_ends_before_it():
    assert thin_curve((0.5, 0.6, float("nan"))) == ((1, 2), (0.5, 0.6))
    assert thin_curve((float("nan"),)) == ((), ())


CURVE = {"lam": 1.0, "fold": 0, "seed": 7, "n_anomalies": 3, "status": "kept", "weight": 0.5}
CURVE |= {"criterion_name": "auc", "criterion": 0.9, "best_epoch": 2}
CURVE |= {"epochs": [1, 2], "values": [0.5, 0.6]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": -1.0}, "lam' must be a finite number from 0"),
        ({"lam": "1"}, "lam' must be a finite number from 0"),
        ({"weight": 2.0}, "weight' must be a finite number from 0 to 1"),
        ({"fold": -1}, "fold' must be an integer"),
        ({"best_epoch": 1.5}, "best_epoch' must be an integer"),
        ({"epochs": [1]}, "needs a value for each epoch"),
        ({"status": "lost"}, "status' must be one of"),
        ({"criterion_name": "f1"}, "criterion_name' must be one of"),
        ({"criterion": "0.9"}, "criterion' must be a finite number"),
        ({"epochs": None}, "epochs' must be a list"),
        ({"epochs": [1, "2"]}, "epochs' must be a list of integers"),
        ({"values": [0.5, float("nan")]}, "values' must be a list of numbers"),
        ({"more": 1}, "it holds .*more"),
    ],
    ids=str,
)
def test_a_curve_that_no_fit_has_written_is_refused(change, message):
    assert record_of(read(MemberHistory, CURVE)) == CURVE
    with pytest.raises(FormatError, match=message):
        read(MemberHistory, CURVE | change)


def test_a_summary_survives_json(detector):
    summary = detector.summary_
    record = record_of(summary)
    assert reread(summary, detector.model_.calibration) == summary
    shown = json.loads(json.dumps(summary.to_json()))
    assert shown["threshold"] == detector.threshold_
    assert shown["false_alarm_interval"] == list(summary.decision.interval)
    assert record["n_anomaly"] == N_ANOMALIES
    assert [lam for lam, _ in record["lambda_weights"]] == [0, 1, 10]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_normal", -1, "n_normal' must be an integer"),
        ("n_anomaly", True, "n_anomaly' must be an integer"),
        ("passes_per_row", 1.5, "passes_per_row' must be an integer"),
        ("seconds", "1", "seconds' must be a finite number"),
        ("unit", None, "unit' must be text"),
        ("criterion", 3, "criterion' must be text"),
        ("kinds", ["real"], "kinds' must be a record of texts"),
        ("kinds", {"x": 1}, "kinds' must be a record of texts"),
        ("notes", "all well", "notes' must be a list of texts"),
        ("notes", [1], "notes' must be a list of texts"),
        ("lambda_weights", {"0": 1}, "lambda_weights' must be a list of pairs"),
        ("lambda_weights", [[0]], "lambda_weights' must be a list of pairs"),
        ("lambda_weights", [[0, "1"]], "lambda_weights' must be a list of pairs"),
        ("history", {}, "history' must be a list"),
        ("labelled_kinds", ["theft"], "labelled_kinds' must be a record of counts"),
        ("labelled_kinds", {"theft": 0}, "labelled_kinds' must be a record of counts"),
        ("history", [1], "'one.history.0' must be a record"),
    ],
)
def test_a_record_that_no_summary_has_written_is_refused(name, value, message):
    record = {"n_normal": 9, "n_anomaly": 1, "n_unlabelled": 0, "kinds": {"x": "real"}}
    record |= {"criterion": "auc", "lambda_weights": [[0.0, 1.0]]}
    record |= {"unit": "nats", "passes_per_row": 1, "seconds": 0.5, "notes": []}
    record |= {"history": [], "n_compared": 0, "labelled_kinds": {"theft": 1}}
    assert read(Summary, record, CALIBRATION).n_normal == 9
    with pytest.raises(FormatError, match=message):
        read(Summary, record | {name: value}, CALIBRATION)


@pytest.mark.parametrize("record", [None, [], {}, {"n_normal": 1}])
def test_a_record_without_the_fields_of_a_summary_is_refused(record):
    with pytest.raises(FormatError):
        read(Summary, record, CALIBRATION)


@pytest.mark.parametrize(
    ("n_unlabelled", "doubtful", "ending"),
    [
        (
            200,
            (200, 0),
            "200 unlabelled rows train as normal rows, with less weight .* than the others\\.",
        ),
        (200, (180, 1), ".*: of 180 examined, 1 counts less than half and is left out of .*"),
        (200, (180, 5), ".*: of 180 examined, 5 count less than half and are left out of .*"),
        (1, (1, 0), "1 unlabelled row trains as a normal row, .* if it is far less likely\\."),
    ],
)
def test_a_note_on_unlabelled_rows_counts_in_good_english(n_unlabelled, doubtful, ending):
    (note,) = _doubtful_note(SimpleNamespace(doubtful_rows=doubtful, n_compared=9), n_unlabelled)
    assert re.fullmatch(ending, note)
