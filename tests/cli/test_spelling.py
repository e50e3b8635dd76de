"""Messages on the command line name flags, not parameters of Python."""

import re

import pytest
from factories import payments

from fewlier.cli.app import app
from fewlier.cli.options import spelling_of
from fewlier.errors import UserError, declaration, parameter, spelling


@pytest.fixture
def _flags():
    with spelling(spelling_of(app)):
        yield


@pytest.mark.usefixtures("_flags")
@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (("cost_miss",), "--cost-miss"),
        (("keep_rows", True), "--keep-rows"),
        (("keep_rows", False), "--no-keep-rows"),
        (("device", "auto"), "--device auto"),
        (("false_alarm_rate", 0.05), "--false-alarm-rate 0.05"),
        (("learning_rate",), "'learning_rate'"),
        (("n_thing", 3), "n_thing=3"),
        (("anomaly", ["bad"]), "--anomaly bad"),
        (("missing", "-200"), "--missing -200"),
        (("missing", "0", "age"), "--missing age=0"),
        (("missing", "?", 'a "b'), "--missing 'a \"b=?'"),
    ],
)
def test_parameters_are_spelled_as_flags(arguments, flags):
    assert parameter(*arguments) == flags


def test_python_has_its_own_spelling_again_afterwards():
    with spelling(spelling_of(app)):
        there = UserError(parameter="max_epochs", expected="an integer", got=0.5)
    here = UserError(parameter="max_epochs", expected="an integer", got=0.5)
    assert str(there) == "--max-epochs must be an integer; got 0.5."
    assert str(here) == "'max_epochs' must be an integer; got 0.5."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["threshold", "--cost-miss", "5"],
            "by both --cost-miss and --cost-alarm; got --cost-miss.",
        ),
        (["threshold", "--false-alarm-rate", "2"], "--false-alarm-rate must be a share between 0"),
        (["threshold", "--contamination", "0"], "fewlier: --contamination must be a share"),
        (["threshold", "--cost-miss", "-1", "--cost-alarm", "1"], "--cost-miss must be a positive"),
    ],
)
def test_commands_name_flags_in_their_errors(arguments, message, model, fewlier):
    command, *options = arguments
    done = fewlier(command, model, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert "'" not in done.err


def test_a_wrong_parameter_is_not_the_fault_of_the_file(fewlier, tmp_path):
    (tmp_path / "t.csv").write_text(payments(40).to_csv(index=False))
    fit = ("fit", tmp_path / "t.csv", "--label", "fraud", "--ignore", "id")
    done = fewlier(*fit, "-o", tmp_path / "m.fewlier", "--false-alarm-rate", "7")
    assert (done.code, done.err) == (
        2,
        "fewlier: --false-alarm-rate must be a share between 0 and 1; got 7.0.",
    )


def test_a_column_that_is_called_like_a_parameter_stays_a_column(fewlier, tmp_path):
    rows = payments(40).rename(columns={"amount": "density"})
    rows.loc[3, "density"] = float("inf")
    (tmp_path / "t.csv").write_text(rows.to_csv(index=False))
    fit = ("fit", tmp_path / "t.csv", "--label", "fraud", "--ignore", "id")
    done = fewlier(*fit, "-o", tmp_path / "m.fewlier", "--column", "density=real")
    assert done.code == 2
    assert "'density'" in done.err
    assert "--density" not in done.err


@pytest.mark.usefixtures("_flags")
@pytest.mark.parametrize(
    ("name", "said", "flags"),
    [
        ("id", "category", "--column id=category"),
        ("id", "ignore", "--ignore id"),
        ("a b's", "ignore", """--ignore 'a b'"'"'s'"""),
        ("a, b", "ignore", "--column 'a, b=ignore'"),
        ('"}\\', "real", """--column '"}\\=real'"""),
        ("day", "%d/%m/%Y", "--column day=%d/%m/%Y"),
        ("n", "1'234.5", """--column 'n=1'"'"'234.5'"""),
    ],
)
def test_declarations_are_flags(name, said, flags):
    assert declaration(name, said) == flags


FITS = {
    "a column left out": (
        [],
        0,
        "Keep a column with --column id=category, or .* with --ignore id.",
    ),
    "no such column": (["--ignore", "zz"], 2, "--ignore zz must name a column of the table"),
    "text": (["--column", "city=real"], 2, "Correct it, or declare --column city=category."),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("options", "code", "message"), FITS.values(), ids=FITS)
def test_a_fit_names_the_flags_that_declare_columns(options, code, message, fewlier, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(payments(40).to_csv(index=False))
    done = fewlier("fit", table, "--label", "fraud", "-o", tmp_path / "m.fewlier", *options)
    assert done.code == code, done.err
    assert re.search(message, done.err)
    assert "columns={" not in done.err
    checked = fewlier("check", table, "--label", "fraud", *options)
    assert (checked.code, b"columns={" in checked.out) == (0, False)
