"""`fewlier check`: everything about a table at once, and a line that works."""

import json
import shlex

import pytest
from factories import payments

ROWS = payments(80, seed=2).assign(price="$1,200.50")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "orders.csv"
    ROWS.to_csv(path, index=False)
    return path


def test_check_says_what_a_table_holds(table, fewlier):
    shown = fewlier("check", table, "--label", "fraud").out.decode()
    assert "80 rows, 5 columns beside the label; 0 of the rows repeat an earlier one" in shown
    assert "an identifier: 80 different texts" in shown
    assert "always 1200.5" in shown
    assert "labels      fraud: '0' 60; '1' 4; empty 16" in shown
    assert "4 anomaly, 60 normal, 16 unlabelled" in shown
    assert "learn from 4 columns and leave out 1" in shown


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
    assert "refuse: Column 'x' must say what the mark in '1.200' is" in shown
    assert "--column x=1200.50 -o t.fewlier" in shown


def test_check_refuses_a_label_that_is_not_there(table, fewlier):
    done = fewlier("check", table, "--label", "fruad")
    assert done.code == 2
    assert "got 'fruad'. Did you mean 'fraud'?" in done.err
