"""`fewlier fit`: from a table to a model file."""

import json
import re
from inspect import signature
from typing import get_args

import numpy as np
import pytest
from factories import FEATURES, payments
from processes import run

from fewlier import AnomalyDetector, Flow, Made, UserError, Vae
from fewlier.cli.fit import fit
from fewlier.cli.inputs import read_density
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


@pytest.mark.slow
def test_fit_writes_a_model_that_loads_and_prints_its_summary(tmp_path):
    (tmp_path / "train.csv").write_bytes(csv())
    path = tmp_path / "new.fewlier"
    done = run(
        *("fit", tmp_path / "train.csv", "--label", "fraud", "-o", path, "--max-epochs", "1"),
        *("--selection", "best", "--false-alarm-rate", "0.2", "--random-state", "7"),
        *("--density-option", "hidden=16", "--patience", "3"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    detector = AnomalyDetector.load(path)
    assert done.stdout == f"{detector.summary_}\nmodel       {path}\n"
    found = detector.get_params()
    wanted = {
        "training__max_epochs": 1,
        "selection": "best",
        "false_alarm_rate": 0.2,
        "random_state": 7,
    }
    wanted |= {"density__hidden": (16,), "training__patience": 3}
    assert {name: found[name] for name in wanted} == wanted
    assert sorted(item.name for item in tmp_path.iterdir()) == ["new.fewlier", "train.csv"]


@pytest.mark.slow
def test_fit_says_in_json_what_it_did(fitted, tmp_path):
    done, detector = fitted(csv(), "--json")
    assert json.loads(done.out) == {
        "model": str(tmp_path / "new.fewlier"),
        **detector.summary_.to_json(),
    }
    assert (detector.summary_.n_anomaly, detector.summary_.n_unlabelled) == (8, 30)


@pytest.mark.slow
def test_warnings_of_a_fit_are_notes_on_standard_error(fitted):
    done, detector = fitted(csv(), "--false-alarm-rate", "0.000001", "--json")
    assert json.loads(done.out)["notes"] == list(detector.summary_.notes)
    assert done.err.startswith("fewlier: note: ")
    assert ".py:" not in done.err


@pytest.mark.slow
def test_the_label_is_no_feature_and_ignored_columns_are_none(fitted):
    rows = ROWS.assign(when=range(150), **{"a,b": 1.5})
    _, detector = fitted(csv(rows), "--ignore", "id, when", "--ignore", "city")
    assert list(kinds(detector)) == ["amount", "visits", "a,b"]


@pytest.mark.slow
def test_an_unnamed_index_is_left_out_and_noted(fitted):
    done, detector = fitted(USED.to_csv().encode())
    assert list(kinds(detector)) == FEATURES
    assert "fewlier: note: the column without a name, such as an index, was left out." in done.err


@pytest.mark.slow
def test_kinds_may_be_declared_also_of_names_with_an_equals_sign(fitted):
    rows = USED.rename(columns={"visits": "n=visits"}).fillna({"n=visits": 3})
    _, detector = fitted(csv(rows), "--column", "n=visits=category", "--column", "amount=positive")
    assert kinds(detector) == {"amount": "positive", "n=visits": "category", "city": "category"}


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "keep_rows"), [((), True), (("--keep-rows",), True), (("--no-keep-rows",), False)]
)
def test_a_model_keeps_rows_unless_told_not_to(options, keep_rows, fitted, fewlier, tmp_path):
    _, detector = fitted(csv(), *options)
    assert detector.keep_rows is keep_rows
    assert (detector._kept_rows is not None) is keep_rows
    facts = json.loads(fewlier("inspect", tmp_path / "new.fewlier", "--json").out)
    assert facts["kept_rows"]["n_rows"] == 150 * keep_rows
    assert facts["parameters"]["keep_rows"] is keep_rows


@pytest.mark.slow
def test_a_validation_table_chooses_instead_of_training_rows(fitted, tmp_path):
    (tmp_path / "validation.csv").write_bytes(csv(payments(60, seed=9).drop(columns="id")))
    _, detector = fitted(csv(), "--validation", tmp_path / "validation.csv")
    rows = payments(30, seed=5)[FEATURES]
    split_off = fitted(csv())[1]
    assert detector.summary_.validation != split_off.summary_.validation
    assert not np.array_equal(detector.anomaly_score(rows), split_off.anomaly_score(rows))


def test_fit_offers_every_density():
    help_of = {n: get_args(p.annotation)[1].help for n, p in signature(fit).parameters.items()}
    words = set(re.findall(r"\w+", f"{help_of['density']} {help_of['density_option']}"))
    for name, settings in DENSITIES.items():
        assert {name, *settings().get_params()} <= words


@pytest.mark.parametrize(
    ("density", "options", "expected"),
    [
        ("made", [], "made"),
        ("made", ["hidden=64,32"], Made(hidden=(64, 32))),
        ("made", ["hidden="], Made(hidden=())),
        ("vae", ["latent=5", "n_samples=3"], Vae(latent=5, n_samples=3)),
        ("flow", ["kind=nsf"], Flow(kind="nsf")),
    ],
)
def test_settings_of_a_density_are_read(density, options, expected):
    assert repr(read_density(density, options)) == repr(expected)


@pytest.mark.parametrize(
    ("density", "options", "message"),
    [
        ("nade", [], "'density' must be one of"),
        ("made", ["latent=5"], "once for each of hidden, .*; got 'latent=5'"),
        ("vae", ["latent"], "must be NAME=VALUE"),
        ("vae", ["latent=5", "latent=6"], "once for each"),
        ("vae", ["latent=many"], "'latent' must be an integer"),
        ("vae", ["latent=5,6"], "'latent' must be an integer"),
        ("vae", ["hidden=0"], "'hidden' must be a sequence"),
        ("flow", ["kind=rnvp"], "'kind' must be one of"),
    ],
)
def test_settings_that_a_density_cannot_have_are_refused(density, options, message):
    with pytest.raises(UserError, match=message):
        read_density(density, options)
