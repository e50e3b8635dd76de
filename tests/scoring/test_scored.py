"""The scored row: what every program says of a row, made in one place."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from factories import FEATURES, payments

import fewlier
from fewlier import AnomalyDetector
from fewlier.files.reading import Batch
from fewlier.scoring.batches import Tally
from fewlier.scoring.scored import ADDED, Scored
from fewlier.table import Table

SOURCE = Path(fewlier.__file__).parent
ROWS = payments(60, seed=4)[FEATURES]


@pytest.fixture(scope="module")
def detector(model_bytes, tmp_path_factory):
    path = tmp_path_factory.mktemp("scored") / "fraud.fewlier"
    path.write_bytes(model_bytes)
    return AnomalyDetector.load(path)


@pytest.fixture(scope="module")
def scored(detector):
    return Scored.of(detector.model_, detector.model_.encoder.schema.match(Table.of(ROWS)))


def test_no_other_module_makes_a_scored_row_or_judges_by_the_threshold():
    made, judged = set(), set()
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Scored":
                made.add(name)
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Gt):
                right = getattr(node.comparators[0], "attr", "")
                judged |= {name} if right in ("threshold", "threshold_") else set()
    assert made == {"scoring/scored.py"}
    # A curve is of scores without a model.
    assert judged <= {"decision/calibration.py", "report/plots/rates.py"}


def test_it_says_what_the_detector_says(detector, scored):
    np.testing.assert_array_equal(scored.scores, detector.anomaly_score(ROWS))
    np.testing.assert_array_equal(scored.p_values, detector.p_value(ROWS))
    np.testing.assert_array_equal(scored.is_anomaly, detector.predict(ROWS) == 1)
    assert 0 < scored.is_anomaly.sum() < len(scored)
    frame = detector.score_frame(ROWS)
    assert pd.DataFrame(scored.records()).equals(frame.reset_index(drop=True))
    assert scored.to_arrow().to_pandas().equals(frame.reset_index(drop=True))
    assert scored.to_arrow(["x"] * 60).column_names == [*ADDED]


def test_taken_and_joined_it_is_what_it_was(scored):
    first, rest = np.arange(7), np.arange(7, 60)
    again = scored.take(first).followed_by(scored.take(rest))
    assert again.to_arrow().equals(scored.to_arrow())
    np.testing.assert_array_equal(again.encoded.inputs, scored.encoded.inputs)
    assert len(scored.take(first)) == 7


def test_known_scores_are_judged_and_not_computed_again(detector, scored, monkeypatch):
    monkeypatch.setattr(type(detector.model_), "score", None)
    again = Scored.of(detector.model_, scored.rows, scored.scores)
    assert again.to_arrow().equals(scored.to_arrow())


def test_notes_name_the_columns_of_strange_cells(detector):
    schema = detector.model_.encoder.schema
    strange = ROWS.assign(city="Paris", amount=["1,5,0", *ROWS["amount"].astype(str)[1:]])
    notes = Scored.of(detector.model_, schema.match(Table.of(strange))).notes
    assert any("60 in city" in note for note in notes)
    assert Scored.of(detector.model_, schema.match(Table.of(ROWS.iloc[[0]]))).notes == []


def test_counts_of_parts_add_up_to_those_of_the_whole(detector):
    model, rows = detector.model_, ROWS.assign(city=["Paris", *ROWS["city"][1:]])

    def counted(start, stop):
        part = pa.Table.from_pandas(rows[start:stop], preserve_index=False)
        batch = Batch("a file", part, start, None)
        return Tally.of(model, batch, Scored.of(model, batch.table(model.encoder.schema)))

    whole, parts = counted(0, 60), counted(0, 17).plus(counted(17, 60))
    assert Tally.zero(model).plus(parts).report(model) == whole.report(model)
    assert whole.report(model).n_impossible["city"] == 1
    assert whole.report(model).drift == detector.drift(rows)
