"""`fewlier explain`: the oddest rows, or chosen ones, and why."""

import json
import re

import numpy as np
import pytest
from factories import FEATURES, payments
from processes import plain

from fewlier import AnomalyDetector

ROWS = payments(150, seed=1)


@pytest.fixture
def expected(model):
    return AnomalyDetector.load(model).anomaly_score(ROWS[FEATURES])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(ROWS.to_csv(index=False))
    return path


@pytest.mark.slow
def test_explain_gives_the_oddest_rows_first(table, expected, model, fewlier):
    done = fewlier("explain", table, "-m", model, "--top", 7, "--columns", 2, "--json")
    found = json.loads(done.out)["rows"]
    order = np.argsort(-expected, kind="stable")[:7]
    assert [record["row"] for record in found] == order.tolist()
    assert [record["anomaly_score"] for record in found] == expected[order].tolist()
    assert done.err == ""
    explanation = AnomalyDetector.load(model).explain(ROWS[FEATURES])
    for record in found:
        assert list(record) == ["row", "anomaly_score", "is_anomaly", "p_value", "reasons"]
        assert record["is_anomaly"] is True
        reasons = explanation.top(record["row"], 2)
        assert [reason["column"] for reason in record["reasons"]] == [r.column for r in reasons]
        for reason, r in zip(record["reasons"], reasons, strict=True):
            assert reason["contribution"] == pytest.approx(r.contribution)
            assert reason["expected"] == pytest.approx(r.expected)
            assert reason["expected_categories"] == pytest.approx(r.expected_categories)


def test_explain_shows_rows_in_a_grid(table, model, fewlier):
    shown = fewlier("explain", table, "-m", model, "--top", 3).out.decode()
    assert "Scores are in standard units; a row above" in plain(shown)
    assert "what adds most to the score" in shown
    assert (
        len(re.findall(r"^ +\d+ +\d+\.\d\d +anomaly +0\.\d+ +amount = \d", shown, re.MULTILINE))
        == 3
    )


def test_explain_gives_all_rows_of_a_short_table(model, fewlier):
    content = ROWS.head(2).to_csv(index=False).encode()
    found = json.loads(fewlier("explain", "-", "-m", model, "--json", stdin=content).out)
    assert sorted(record["row"] for record in found["rows"]) == [0, 1]


# Rows of the user's choice


@pytest.fixture
def explained(model, fewlier, table):
    """Return a function that explains rows of a table."""

    def explain(*options, of=table):
        done = fewlier("explain", of, "-m", model, "--json", *options)
        assert done.code == 0, done.err
        return json.loads(done.out)["rows"]

    return explain


def test_explain_takes_rows_by_number(explained):
    everything = {found["row"]: found for found in explained("--top", len(ROWS))}
    chosen = explained("--row", 17, "--row", 3, "--row", 17)
    assert sorted(found["row"] for found in chosen) == [3, 17]
    assert chosen == [everything[found["row"]] for found in chosen]
    assert chosen[0]["anomaly_score"] >= chosen[1]["anomaly_score"]


@pytest.mark.slow
def test_explain_takes_the_oddest_of_chosen_rows(explained, monkeypatch):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 500)  # many batches
    chosen = [option for number in range(0, 100, 7) for option in ("--row", number)]
    found = explained(*chosen)
    assert [one["row"] for one in found] != sorted(one["row"] for one in found)
    assert sorted(one["row"] for one in found) == [*range(0, 100, 7)]
    assert explained(*chosen, "--top", 3) == found[:3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--row", "150", "--row", "3"], "counted from 0 to 149; got 150"),
        (["--row", "-1"], "Invalid value for '--row'"),
    ],
)
def test_a_row_that_is_not_there_is_named(options, message, table, model, fewlier):
    done = fewlier("explain", table, "-m", model, *options)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
