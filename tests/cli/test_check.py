"""`fewlier check`: everything about a table at once, and a line that works."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from factories import payments
from processes import plain

from fewlier.cli.check import _rough

ROWS = payments(80, seed=2).assign(price="$1,200.50")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "orders.csv"
    ROWS.to_csv(path, index=False)
    return path


def test_check_says_what_a_table_holds(table, fewlier):
    shown = fewlier("check", table, "--label", "fraud").out.decode()
    assert "80 rows, 5 columns besides the label; 0 of the rows repeat an earlier one" in shown
    assert "an identifier: 80 different texts" in shown
    assert "always 1200.5" in shown
    assert "labels      fraud: '0' 60; '1' 4; empty 16" in shown
    assert "4 anomaly, 60 normal, 16 unlabelled" in shown
    assert "learn from 4 columns and leave out 1" in shown
    assert "fit time    a few seconds on two cores" in shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.3, "a few seconds"),
        (4.9, "a few seconds"),
        (5, "roughly 10 s"),
        (44, "roughly 40 s"),
        (89, "roughly 90 s"),
        (90, "roughly 2 min"),
        (5300, "roughly 88 min"),
        (9000, "roughly 2 h"),
    ],
)
def test_a_rough_time_is_no_more_exact_than_it_is(seconds, text):
    assert _rough(seconds) == text


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_line_that_check_ends_with_works_and_notes_nothing_more(
    table, fewlier, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = json.loads(fewlier("check", table, "--label", "fraud", "--json").out)
    assert found["problems"] == []
    program, *arguments = shlex.split(found["command"])
    assert program == "fewlier"
    done = fewlier(*arguments)
    assert done.code == 0, done.err
    assert "Left out" not in done.err
    assert (tmp_path / "orders.fewlier").exists()


def test_check_shows_what_fit_would_refuse_and_how_to_settle_it(fewlier, tmp_path):
    (tmp_path / "t.csv").write_text("x,city\n1.200,Rome\n3.400,Oslo\n")
    done = fewlier("check", tmp_path / "t.csv")
    assert done.code == 0
    shown = done.out.decode()
    assert "refuse: Column 'x' does not show whether '1.200' has a fraction or thousands" in shown
    assert "--column x=1200.50 -o t.fewlier" in shown
    assert "decide: --column x=1200.50 or --column x=1.200,50\n" in shown
    assert "learn from" not in shown


def test_check_refuses_a_label_that_is_not_there(table, fewlier):
    done = fewlier("check", table, "--label", "fruad")
    assert done.code == 2
    assert "got 'fruad'. Did you mean 'fraud'?" in done.err


def test_check_names_a_damaged_file_once(fewlier, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"x,y\n1,2\n1,2,3\n")
    done = fewlier("check", path)
    assert done.code == 2
    assert done.err.count(str(path)) == 1, done.err


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_check_asks_for_the_label_that_it_cannot_know(fewlier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ROWS.assign(fraud=ROWS["fraud"].map({1: "theft", 0: "fine"})).to_csv(index=False)
    arguments = ["check", "-", "--label", "fraud"]
    shown = fewlier(*arguments, stdin=words.encode()).out.decode()
    line = next(text for text in shown.splitlines() if text.startswith("command"))
    assert line.endswith("fit - --label fraud --anomaly VALUE --ignore id -o model.fewlier")
    assert "with the label that means anomaly for VALUE, or with --normal" in shown
    slip = json.loads(fewlier(*arguments, "--anomaly", "thef", "--json", stdin=words.encode()).out)
    assert "--anomaly VALUE" in slip["command"]
    command = slip["command"].replace("VALUE", "theft")
    done = fewlier(*shlex.split(command)[1:], stdin=words.encode())
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("rows", "options", "problem"),
    [
        ("x\n1\n", [], "A fit needs 2 rows, and one that is not labelled an anomaly; got 1"),
        ("x,y\n1,1\n2,1\n", ["--label", "y"], "got 2 rows, 2 of the class 1"),
        ("x,y\n1,2\n3,4\n", ["--ignore", "x,y"], "No column is left to learn from."),
    ],
)
def test_check_ends_without_a_line_where_none_works(rows, options, problem, fewlier, tmp_path):
    (tmp_path / "t.csv").write_text(rows)
    shown = fewlier("check", tmp_path / "t.csv", *options).out.decode()
    assert "fit would   refuse: " in shown
    assert problem in shown
    assert "command     none" in shown
    assert "fewlier fit" not in shown
    found = json.loads(fewlier("check", tmp_path / "t.csv", *options, "--json").out)
    assert found["command"] is None
    refused = fewlier("fit", tmp_path / "t.csv", *options, "-o", tmp_path / "m.fewlier")
    assert refused.code == 2


def test_check_does_not_repeat_a_wrong_declaration(table, fewlier):
    options = ["--label", "fraud", "--ignore", "zz", "--column", "id=count"]
    found = json.loads(fewlier("check", table, *options, "--json").out)
    assert len(found["problems"]) == 2
    assert "zz" not in found["command"]
    assert "id=count" not in found["command"]


def test_check_counts_in_good_english(fewlier):
    shown = fewlier("check", "-", stdin=b"x\n1\n").out.decode()
    assert "standard input: 1 row, 1 column; 0 of the rows" in shown


@pytest.fixture
def long_names(tmp_path, monkeypatch):
    """Return a table with long names, many spellings and one missing cell; 80 columns are shown."""
    monkeypatch.setenv("COLUMNS", "80")
    codes = [f"{number}{letter}" for number in range(2000, 2027) for letter in "Aa"]
    n = 54 * 50
    rows = pd.DataFrame(
        {
            "number_of_vehicles_involved": np.random.default_rng(0).normal(size=n),
            "insured_education_level": codes * 50,
            "injuries": [number % 4 for number in range(n)],
            "claim": [None, *(number / 7 for number in range(n - 1))],
        }
    )
    path = tmp_path / "claims.csv"
    rows.to_csv(path, index=False)
    return path


def test_names_are_whole_where_the_terminal_is_narrow(long_names, fewlier):
    shown = fewlier("check", long_names).out.decode()
    assert "number_of_vehicles_involved " in shown
    assert "insured_education_level " in shown
    grid = shown.split("labels ")[0].splitlines()[1:]
    assert max(map(len, grid)) <= 80
    words = plain(shown)
    for column in json.loads(fewlier("check", long_names, "--json").out)["columns"]:
        assert set(column["why"].split()) <= set(words.split())


def test_remarks_that_say_the_same_of_many_values_are_cut_short(long_names, fewlier):
    shown = plain(fewlier("check", long_names).out.decode())
    assert shown.count("may be the same") == 3
    assert "and 24 more" in shown
    found = json.loads(fewlier("check", long_names, "--json").out)
    assert sum("may be the same" in one for one in found["columns"][1]["remarks"]) == 27


def test_a_share_of_missing_cells_that_is_not_zero_is_not_shown_as_zero(long_names, fewlier):
    (line,) = [x for x in fewlier("check", long_names).out.decode().splitlines() if "claim " in x]
    assert "<0.1%" in line


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_check_and_fit_say_the_same_of_what_they_find_and_what_settles_it_is_kept(
    fewlier, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng, odd = np.random.default_rng(0), np.arange(300) % 15 == 0
    rows = pd.DataFrame(
        {"UDI": range(300), "co": rng.normal(3, 1, 300), "age": rng.integers(18, 80, 300)}
    )
    rows.loc[rng.random(300) < 0.1, "co"] = -200
    rows.loc[rng.random(300) < 0.05, "age"] = 0
    rows["x"], rows["late"] = rng.normal(size=300), np.where(odd, rng.normal(size=300), np.nan)
    rows.assign(odd=odd * 1).to_csv("t.csv", index=False)
    checked = fewlier("check", "t.csv", "--label", "odd").out.decode()
    fitted = fewlier("fit", "t.csv", "--label", "odd", "-o", "m.fewlier")
    assert "no cell has a value" not in checked  # because anomalies have one
    assert "filled in 20 of 20 anomalies and in no normal row" in checked
    for said in ("--ignore late", "--missing co=-200 and so on", "--ignore UDI"):
        assert checked.count(said) >= 1, said
        assert (fitted.out.decode() + fitted.err).count(said) == 1, said
    command = next(line for line in checked.splitlines() if line.startswith("command"))
    assert "--ignore UDI" in command
    settled = ["--missing", "-200", "--missing", "age=0", "--ignore", "late,UDI"]
    done = fewlier("fit", "t.csv", "--label", "odd", *settled, "-o", "m.fewlier")
    assert done.code == 0, done.err
    assert " may " not in done.out.decode() + done.err
    again = json.loads(fewlier("check", "t.csv", "--label", "odd", *settled, "--json").out)
    assert again["notes"] == []
    assert {c["name"]: c["n_missing"] for c in again["columns"]}["co"] == (rows["co"] == -200).sum()
    assert "--missing age=0" in again["command"]
