"""Messages on the command line name flags, not parameters of Python."""

import re

import pytest
from factories import payments

from fewlier.cli.app import app
from fewlier.cli.flags import in_flags, with_declarations
from fewlier.errors import declaration


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "both 'cost_miss' and 'cost_alarm', no more",
            "both --cost-miss and --cost-alarm, no more",
        ),
        ("The 'max_epochs' parameter of AnomalyDetector must be 1", "--max-epochs must be 1"),
        ("Fit again with keep_rows=True.", "Fit again with --keep-rows."),
        ("Fit again with keep_rows=False.", "Fit again with --no-keep-rows."),
        ("Give device='auto'.", "Give --device auto."),
        ("Give false_alarm_rate=0.05.", "Give --false-alarm-rate 0.05."),
        ("Lower 'learning_rate', set n_thing=3.", "Lower 'learning_rate', set n_thing=3."),
    ],
)
def test_parameters_are_named_by_their_flags(message, shown):
    assert in_flags(message, app) == shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["threshold", "--cost-miss", "5"], "must have both --cost-miss and --cost-alarm, and no"),
        (["threshold", "--cost-miss", "5"], "--cost-alarm is not given."),
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
    assert with_declarations(f"Give {declaration(name, said)}.") == f"Give {flags}."


@pytest.mark.parametrize(
    ("said", "flags"),
    [
        ("missing='-200'", "--missing -200"),
        ("missing={'a \"b': '?'}", "--missing 'a \"b=?'"),
        ("missing={'age': '0'}", "--missing age=0"),
    ],
)
def test_what_stands_for_missing_cells_is_a_flag(said, flags):
    assert with_declarations(f"Declare {said} and so on.") == f"Declare {flags} and so on."


@pytest.mark.parametrize("text", [r"columns={'\x': 'real'}", r"missing='\x'", "missing=0.1"])
def test_text_that_only_looks_like_a_declaration_stays(text):
    assert with_declarations(text) == text


FITS = {
    "a column left out": (
        [],
        0,
        "Keep a column with --column id=category, or .* with --ignore id.",
    ),
    "strict": (["--strict"], 2, "Keep a column with --column id=category, or .* with --ignore id."),
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
    if "--strict" not in options:
        checked = fewlier("check", table, "--label", "fraud", *options)
        assert (checked.code, b"columns={" in checked.out) == (0, False)
