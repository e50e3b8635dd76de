"""`fewlier fit` and `fewlier update`: from a table to a model file."""

import json
import re
from inspect import signature
from typing import get_args

import numpy as np
import pytest
from factories import FEATURES, payments
from processes import plain, run

from fewlier import AnomalyDetector
from fewlier.cli.training import fit
from fewlier.density import DENSITIES

ROWS = payments(150)
USED = ROWS.drop(columns="id")


def csv(rows=USED, **options):
    return rows.to_csv(index=False, **options).encode()


@pytest.fixture
def fitted(fewlier, quick, tmp_path):  # noqa: ARG001 - quick takes effect
    """Return a function that fits a model to a table on standard input."""

    def fit(content, *options, label="fraud"):
        path = tmp_path / "new.fewlier"
        labels = ["--label", label] if label else []
        done = fewlier("fit", "-", *labels, "-o", path, *options, stdin=content)
        assert done.code == 0, done.err
        return done, AnomalyDetector.load(path)

    return fit


def kinds(detector):
    return {column.name: str(column.kind) for column in detector.model_.encoder.schema.columns}


def test_fit_writes_a_model_that_loads_and_prints_its_summary(tmp_path):
    (tmp_path / "train.csv").write_bytes(csv())
    path = tmp_path / "new.fewlier"
    done = run(
        *("fit", tmp_path / "train.csv", "--label", "fraud", "-o", path, "--max-epochs", "1"),
        *("--selection", "best", "--false-alarm-rate", "0.2", "--random-state", "7"),
        *("--hidden", "16", "--patience", "3"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    detector = AnomalyDetector.load(path)
    assert done.stdout == f"{detector.summary_}\nmodel       {path}\n"
    found = detector.get_params()
    wanted = {"max_epochs": 1, "selection": "best", "false_alarm_rate": 0.2, "random_state": 7}
    wanted |= {"hidden": (16,), "patience": 3}
    assert {name: found[name] for name in wanted} == wanted
    assert sorted(item.name for item in tmp_path.iterdir()) == ["new.fewlier", "train.csv"]


def test_fit_says_in_json_what_it_did(fitted, tmp_path):
    done, detector = fitted(csv(), "--json")
    assert json.loads(done.out) == {
        "model": str(tmp_path / "new.fewlier"),
        **detector.summary_.to_json(),
    }
    assert (detector.summary_.n_anomaly, detector.summary_.n_unlabelled) == (8, 30)


def test_warnings_of_a_fit_are_notes_on_standard_error(fitted):
    done, detector = fitted(csv(), "--false-alarm-rate", "0.000001", "--json")
    assert json.loads(done.out)["notes"] == list(detector.summary_.notes)
    assert done.err.startswith("fewlier: note: ")
    assert ".py:" not in done.err


def test_the_label_is_no_feature_and_ignored_columns_are_none(fitted):
    rows = ROWS.assign(when=range(150), **{"a,b": 1.5})
    _, detector = fitted(csv(rows), "--ignore", "id, when", "--ignore", "city")
    assert list(kinds(detector)) == ["amount", "visits", "a,b"]


def test_an_unnamed_index_is_left_out_and_noted(fitted):
    done, detector = fitted(USED.to_csv().encode())
    assert list(kinds(detector)) == FEATURES
    assert "fewlier: note: the column without a name, such as an index, was left out." in done.err


def test_kinds_may_be_declared_also_of_names_with_an_equals_sign(fitted):
    rows = USED.rename(columns={"visits": "n=visits"}).fillna({"n=visits": 3})
    _, detector = fitted(csv(rows), "--column", "n=visits=category", "--column", "amount=positive")
    assert kinds(detector) == {"amount": "positive", "n=visits": "category", "city": "category"}


def test_text_labels_need_the_value_that_means_anomaly(fitted):
    rows = USED.assign(fraud=USED["fraud"].map({1: "bad", 0: "fine"}))
    _, detector = fitted(csv(rows), "--anomaly", "bad")
    assert (detector.summary_.n_normal, detector.summary_.n_anomaly) == (112, 8)


def test_without_a_label_column_all_rows_are_unlabelled(fitted):
    _, detector = fitted(csv(USED[FEATURES]), label=None)
    assert (detector.summary_.n_normal, detector.summary_.n_unlabelled) == (0, 150)


def test_a_single_column_with_empty_lines_is_a_table(fitted):
    content = b"size\n" + b"".join(b"%d.5\n\n" % (i % 13) for i in range(60))
    _, detector = fitted(content, label=None)
    assert detector.summary_.n_unlabelled == 120
    assert list(kinds(detector)) == ["size"]


@pytest.mark.parametrize(
    ("options", "memory"), [((), True), (("--memory",), True), (("--no-memory",), False)]
)
def test_a_model_keeps_rows_unless_told_not_to(options, memory, fitted, fewlier, tmp_path):
    _, detector = fitted(csv(), *options)
    assert detector.memory is memory
    assert (detector._memory is not None) is memory
    facts = json.loads(fewlier("inspect", tmp_path / "new.fewlier", "--json").out)
    assert (facts["memory"]["n_rows"], facts["parameters"]["memory"]) == (150 * memory, memory)


MORE = payments(30, seed=8)


@pytest.mark.parametrize("name", [None, "other.fewlier"])
@pytest.mark.parametrize("is_piped", [False, True])
def test_update_writes_the_model_that_the_library_would(
    name, is_piped, model, model_bytes, fewlier, tmp_path
):
    table, target = tmp_path / "more.csv", tmp_path / (name or model.name)
    table.write_bytes(csv(MORE))  # with an id, which the model does not know
    source = ["-"] if is_piped else [table]
    output = ["-o", target] if name else []
    done = fewlier("update", model, *source, "--label", "fraud", *output, stdin=table.read_bytes())
    assert done.code == 0
    assert re.fullmatch(r"fewlier: updating takes at most about \d+ s\.", done.err)
    updated = AnomalyDetector.load(target)
    assert done.out.decode() == f"{updated.summary_}\nmodel       {target}\n"
    assert model.read_bytes() == model_bytes or name is None
    model.write_bytes(model_bytes)
    expected = AnomalyDetector.load(model).update(MORE[FEATURES], MORE["fraud"])
    rows = payments(40, seed=5)[FEATURES]
    np.testing.assert_array_equal(updated.anomaly_score(rows), expected.anomaly_score(rows))
    assert updated.threshold_ == expected.threshold_
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        {"more.csv", model.name, target.name}
    )


def test_update_says_in_json_what_it_did_and_counts_rows_given_again_once(model, fewlier):
    for known in ("200 remembered ones. 1 row was", "229 remembered ones. 30 rows were"):
        done = fewlier("update", model, "-", "--label", "fraud", "--json", stdin=csv(MORE))
        assert (done.code, done.err.startswith("fewlier: updating takes")) == (0, True)
        facts = json.loads(done.out)
        summary = AnomalyDetector.load(model).summary_
        assert facts == {"model": str(model), **summary.to_json()}
        counts = facts["n_normal"], facts["n_anomaly"], facts["n_unlabelled"]
        assert counts == (150 + 21, 10 + 2, 40 + 6)  # one normal row is a copy of an old one
        assert facts["notes"][-1].endswith(f"beside {known} known already.")


def test_update_reads_text_labels_and_columns_in_any_order(model, fewlier):
    rows = MORE.assign(fraud=MORE["fraud"].map({1: "bad", 0: "fine"}), more="text")
    rows = rows[rows.columns[::-1]]
    arguments = ["update", model, "-", "--label", "fraud", "--anomaly", "bad"]
    assert fewlier(*arguments, stdin=csv(rows)).code == 0
    assert AnomalyDetector.load(model).summary_.n_anomaly == 12


def test_a_validation_table_chooses_instead_of_training_rows(fitted, tmp_path):
    (tmp_path / "validation.csv").write_bytes(csv(payments(60, seed=9).drop(columns="id")))
    _, detector = fitted(csv(), "--validation", tmp_path / "validation.csv")
    rows = payments(30, seed=5)[FEATURES]
    split_off = fitted(csv())[1]
    assert detector.summary_.validation != split_off.summary_.validation
    assert not np.array_equal(detector.anomaly_score(rows), split_off.anomaly_score(rows))


def test_the_demo_writes_its_tables_for_the_other_commands(fewlier, tmp_path):
    (tmp_path / "demo").mkdir()
    done = fewlier("demo", "--tables", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "label column is 'malignant'" in plain(done.out.decode())
    for name in ("train.csv", "test.csv"):
        assert (tmp_path / "demo" / name).read_text().splitlines()[0].endswith("malignant")


def test_fit_offers_every_density():
    choices = get_args(get_args(signature(fit).parameters["density"].annotation)[0])
    assert sorted(choices) == sorted(DENSITIES)
