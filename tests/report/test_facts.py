"""The facts on a page, gathered batch by batch."""

import numpy as np
import pandas as pd
import pytest
from factories import FEATURES, payments

from fewlier import UserError
from fewlier.files.folder import open_table
from fewlier.report import facts as module
from fewlier.report.facts import gather, tabulate_thresholds
from fewlier.scoring.files import explain_file
from fewlier.table.label_column import LabelColumn

ROWS = payments(400, seed=1)


def gathered(detector, path, label="fraud"):
    shares = []
    with open_table(path) as file:
        column = None if label is None else LabelColumn(label)
        names = {"source": "new.csv", "model": "fraud.fewlier"}
        found = gather(detector, file, column, **names, progress=shares.append)
    return found, shares


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "new.csv"
    ROWS.to_csv(path, index=False)
    return path


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 700)


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches")
def test_many_batches_give_what_one_does(detector, table, facts):
    found, shares = gathered(detector, table)
    assert len(shares) > 5
    assert shares[-1] == 1
    np.testing.assert_array_equal(found.scores, facts.scores)
    np.testing.assert_array_equal(found.labels.codes, facts.labels.codes)
    assert [row["row"] for row in found.rows] == [row["row"] for row in facts.rows]


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches")
def test_rows_are_the_highest_scored_with_their_own_reasons(detector, table):
    found, _ = gathered(detector, table)
    with open_table(table) as file:
        top = explain_file(detector, file, module.N_ROWS)
    assert [row["row"] for row in found.rows] == top.rows.numbers.tolist()
    assert [row["anomaly_score"] for row in found.rows] == top.explanation.score.tolist()
    for number, row in enumerate(found.rows[:20]):
        reasons = top.explanation.top(number)
        assert [str(reason) for reason, _ in row["reasons"]] == [
            str(reason) for reason in reasons[: len(row["reasons"])]
        ]
        label = ROWS["fraud"].map({0: "normal", 1: "anomaly"}).get(number_of := row["row"])
        assert row["others"] == (ROWS["id"][number_of],)
        assert row["label"] == (None if pd.isna(label) else label)
        assert row["p_value"] == detector.p_value(ROWS[FEATURES].iloc[[number_of]])[0]


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches")
def test_rows_that_say_which_columns_matter_are_drawn_from_those_above(
    detector, table, monkeypatch
):
    monkeypatch.setattr(module, "N_FLAGGED", 7)
    found, _ = gathered(detector, table, label=None)
    assert found.is_above.sum() > 7
    assert len(found.flagged.score) == 7
    assert (found.flagged.score > detector.threshold_).all()
    lowest_of_top = np.sort(found.scores)[-7]
    assert (found.flagged.score < lowest_of_top).any()  # they are not the highest seven


def test_where_no_row_is_above_the_highest_are_explained(detector, table):
    calm = ROWS[detector.predict(ROWS[FEATURES]) == 0]
    calm.to_csv(table, index=False)
    found, _ = gathered(detector, table, label=None)
    assert not found.is_above.any()
    assert len(found.flagged.score) == min(len(calm), module.N_ROWS)


@pytest.mark.usefixtures("small_batches")
def test_drift_and_strange_cells_are_those_of_the_whole_file(detector, table):
    moved = ROWS.assign(amount=ROWS["amount"] + 30)
    moved.loc[:4, "city"] = "Paris"
    moved.to_csv(table, index=False)
    found, _ = gathered(detector, table)
    assert found.drift == detector.drift(moved[FEATURES])
    assert found.drift.columns[0] == "amount"
    assert found.n_impossible["city"] == 5


def test_a_missing_label_column_is_an_error(detector, table):
    with pytest.raises(UserError, match="label column must be among its columns"):
        gathered(detector, table, label="theft")


def test_thresholds_count_the_rows_above_each(facts):
    found = tabulate_thresholds(facts)
    steps = np.array(found["thresholds"])
    assert (np.diff(steps) > 0).all()
    assert steps[found["start"]] == facts.calibration.threshold
    held_out = facts.calibration.normal_scores
    for i, step in enumerate(steps):
        assert found["above"][i] == (facts.scores > step).sum()
        rate = (1 + (held_out > step).sum()) / (1 + len(held_out))
        assert found["rate"][i] == pytest.approx(rate)
        for name, label in (("normal", 0), ("anomalous", 1)):
            assert (
                found[name]["above"][i] == (facts.scores[facts.labels.codes == label] > step).sum()
            )
    assert found["normal"]["rows"] == (ROWS["fraud"] == 0).sum()
    own = found["rate"][found["start"]]
    assert own == pytest.approx(0.2, abs=0.02)  # what the detector was asked for


def test_only_columns_that_are_reasons_are_sketched(facts):
    reasons = {reason.column for row in facts.rows for reason, _ in row["reasons"]}
    assert set(facts.sketches) == reasons
