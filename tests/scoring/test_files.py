"""A detector on files, without the command line."""

import bz2
import gzip

import numpy as np
import pyarrow as pa
import pytest
from factories import FEATURES, payments, small

from fewlier import AnomalyDetector, UserError
from fewlier.decision.evaluation import evaluate
from fewlier.files import reading
from fewlier.files.folder import open_table
from fewlier.process.progress import FitProgress
from fewlier.report.plots import CurveDisplay
from fewlier.scoring.batches import ScoreReport
from fewlier.scoring.files import evaluate_file, explain_file, fit_file, read_rows, score_file
from fewlier.table import Table, infer_schema
from fewlier.table.label_column import LabelColumn

ROWS = payments(60, seed=4)
FRAUD = LabelColumn("fraud")


def text(rows=ROWS, **options):
    return rows.to_csv(index=False, **options).encode()


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens some bytes as a table."""
    files = []

    def open_bytes(content):
        path = tmp_path / f"table{len(files)}"
        path.write_bytes(content)
        files.append(open_table(path))
        return files[-1].__enter__()

    yield open_bytes
    for file in files:
        file.__exit__(None, None, None)


@pytest.fixture
def detector(model):
    return AnomalyDetector.load(model)


SAME = {
    "semicolons and decimal commas": text(sep=";", decimal=","),
    "tabs": text(sep="\t"),
    "bars": text(sep="|"),
    "mark and CRLF": text(lineterminator="\r\n").decode().encode("utf-8-sig"),
    "NA": text(na_rep="NA"),
    "null": text(na_rep="null"),
    "true and false": text(ROWS.assign(fraud=ROWS["fraud"].map({1: True, 0: False}))),
    "an index": ROWS.to_csv().encode(),
    "gzip": gzip.compress(text()),
    "bz2": bz2.compress(text()),
    "zstd": pa.compress(text(), codec="zstd", asbytes=True),
    "parquet": ROWS.to_parquet(index=False),
    "parquet with types": ROWS.astype({"fraud": "boolean", "visits": "Int8"}).to_parquet(),
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_the_same_rows_are_read_however_they_are_written(content, opened):
    rows, labels = read_rows(opened(content), FRAUD)
    assert rows.column_names == ["id", *FEATURES]
    found = Table.of(rows.select(FEATURES))
    found = infer_schema(found).match(found)
    expected = Table.of(ROWS[FEATURES])
    for name in FEATURES:
        np.testing.assert_array_equal(found.cells[name], expected.cells[name])
    assert labels.codes.tolist() == ROWS["fraud"].fillna(-1).tolist()


def test_without_a_label_column_there_are_no_labels(opened):
    rows, labels = read_rows(opened(text()), None)
    assert labels is None
    assert rows.num_rows == 60


def test_numbers_that_begin_with_a_zero_are_categories(opened):
    rows, _ = read_rows(opened(text()), FRAUD)
    table = Table.of(rows)
    schema = infer_schema(table, {"id": "category"})
    assert schema.match(table).cells["id"].tolist() == ROWS["id"].tolist()


def test_a_name_nearly_right_is_guessed(opened):
    with pytest.raises(UserError, match=r"got 'frauds'\. Did you mean 'fraud'\?"):
        read_rows(opened(text()), LabelColumn("frauds"))
    with pytest.raises(UserError, match=r"got 'amuont'\. Did you mean 'amount'\?"):
        fit_file(small(columns={"amuont": "ignore"}), opened(text()), FRAUD)


@pytest.mark.slow
def test_a_file_and_a_frame_give_the_same_detector(opened):
    tiny = {"hidden": (4,), "max_epochs": 1, "false_alarm_rate": 0.5}
    seen = []
    detector = fit_file(
        small(**tiny, columns={"id": "ignore"}),
        opened(text()),
        FRAUD,
        progress=FitProgress(training=seen.append),
    )
    expected = small(**tiny).fit(ROWS[FEATURES], ROWS["fraud"]).anomaly_score(ROWS[FEATURES])
    assert detector.anomaly_score(ROWS[FEATURES]).tolist() == expected.tolist()
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize("content", [text(), ROWS.to_parquet()], ids=["csv", "parquet"])
def test_scores_are_written_batch_by_batch_and_progress_is_told(
    content, opened, detector, monkeypatch
):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 600)
    monkeypatch.setattr(reading, "_BATCH_ROWS", 20)
    parts, shares = [], []
    report = score_file(detector, opened(content), parts.append, progress=shares.append)
    assert len(parts) == len(shares) >= 3
    assert shares[-1] == 1
    out = pa.concat_tables(parts)
    assert out["id"].to_pylist() == ROWS["id"].tolist()
    expected = detector.anomaly_score(ROWS[FEATURES])
    assert out["anomaly_score"].to_pylist() == expected.tolist()
    n_above = int((expected > detector.threshold_).sum())
    assert report == ScoreReport(
        60, n_above, detector.threshold_, ("id", "fraud"), {"visits": 1}, {}, report.drift
    )
    assert report.drift == detector.drift(ROWS[FEATURES])


def test_cells_that_training_never_saw_are_counted(opened, detector):
    rows = ROWS.assign(city=ROWS["city"].where(ROWS.index > 2, "Paris"))
    report = score_file(detector, opened(text(rows)), lambda _: None)
    assert report.n_impossible == {"visits": 1, "city": 3}


def test_typed_scores_have_the_types_of_the_model_and_others_stay_text(opened, detector):
    parts = []
    score_file(detector, opened(text()), parts.append, typed=True)
    types = {field.name: str(field.type) for field in parts[0].schema}
    assert types == {
        "id": "string",
        "amount": "double",
        "visits": "double",
        "city": "string",
        "fraud": "string",
        "anomaly_score": "double",
        "is_anomaly": "bool",
        "p_value": "double",
        "reason": "string",
    }
    assert parts[0]["city"].null_count == ROWS["city"].isna().sum()


def test_explanations_are_of_the_highest_scores_over_all_batches(opened, detector, monkeypatch):
    monkeypatch.setattr("fewlier.files.text.BLOCK_BYTES", 600)
    top = explain_file(detector, opened(text()), 4)
    scores = detector.anomaly_score(ROWS[FEATURES])
    assert top.rows.numbers.tolist() == np.argsort(-scores, kind="stable")[:4].tolist()
    assert top.explanation.score.tolist() == np.sort(scores)[::-1][:4].tolist()


def test_an_evaluation_leaves_unlabelled_rows_out(opened, detector):
    whole = evaluate_file(detector, opened(text()), FRAUD)
    labelled = evaluate_file(detector, opened(text(ROWS[ROWS["fraud"].notna()])), FRAUD)
    assert whole.n_unlabelled == 12
    assert (labelled.auc, labelled.recall, labelled.n_normal, labelled.n_unlabelled) == (
        *(whole.auc, whole.recall, whole.n_normal),
        0,
    )


@pytest.mark.slow
def test_a_detector_takes_labels_that_were_read_and_keeps_their_kinds():
    tiny = {"hidden": (4,), "max_epochs": 1, "false_alarm_rate": 0.5}
    words = ROWS["fraud"].map({1: "theft", 0: "fine"})
    labels = LabelColumn("fraud", normal=("fine",)).read(words)
    detector = small(**tiny).fit(ROWS[FEATURES], labels)
    by_numbers = small(**tiny).fit(ROWS[FEATURES], ROWS["fraud"])
    scores = detector.anomaly_score(ROWS[FEATURES])
    assert scores.tolist() == by_numbers.anomaly_score(ROWS[FEATURES]).tolist()
    assert detector.summary_.labelled_kinds == {"theft": 3}
    assert by_numbers.summary_.labelled_kinds == {}
    assert labels.notes[0] in detector.summary_.notes
    roc = CurveDisplay.from_detector(detector, ROWS[FEATURES], labels)
    assert roc.area == pytest.approx(evaluate(scores, labels, 0).auc)
