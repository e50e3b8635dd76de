"""Values that stand for missing cells by the word of the user: in fits, and wherever rows score."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from factories import small

from fewlier import AnomalyDetector, UserError
from fewlier.export.onnx.whole import Whole
from fewlier.files import sampling
from fewlier.files.folder import open_table
from fewlier.scoring.batches import BatchScorer
from fewlier.scoring.files import score_file

N = 300
SAID = {"co": -200, "age": [0, -1], "city": "?", "when": "1970-01-01", "price": "-200"}


def tables():
    """Return a table with stand-ins, and the same with gaps in their place."""
    rng = np.random.default_rng(0)
    gap = rng.random((5, N)) < 0.1
    co, age = rng.normal(3, 1, N), rng.integers(18, 80, N)
    city = rng.choice(["Bern", "Oslo"], N).astype(object)
    day = (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D")).strftime(
        "%Y-%m-%d"
    )
    price = np.array([f"{x:.2f}".replace(".", ",") for x in rng.normal(50, 9, N)], dtype=object)
    plain = {"co": co, "age": age, "city": city, "when": day, "price": price}
    stands = (-200.0, np.where(np.arange(N) % 2, 0, -1), "?", "1970-01-01", "-200,00")
    pairs = zip(plain.items(), gap, stands, strict=True)
    marked = {name: np.where(is_gap, stand, values) for (name, values), is_gap, stand in pairs}
    empty = {
        name: pd.Series(values, dtype=None).mask(is_gap)
        for (name, values), is_gap in zip(plain.items(), gap, strict=True)
    }
    return pd.DataFrame(marked), pd.DataFrame(empty)


MARKED, EMPTY = tables()


@pytest.fixture(scope="module")
def fitted():
    detector = small(missing=SAID, columns={"price": "1.234,50"}).fit(MARKED)
    gaps = small(columns={"price": "1.234,50"}).fit(EMPTY)
    return detector, gaps.anomaly_score(EMPTY)


def test_a_fit_and_its_scores_are_those_of_gaps(fitted):
    detector, expected = fitted
    np.testing.assert_array_equal(detector.anomaly_score(MARKED), expected)
    np.testing.assert_array_equal(detector.anomaly_score(EMPTY), expected)


def test_a_model_file_keeps_what_stands_for_missing_cells(fitted, tmp_path):
    detector, expected = fitted
    detector.save(tmp_path / "m.fewlier")
    loaded = AnomalyDetector.load(tmp_path / "m.fewlier")
    np.testing.assert_array_equal(loaded.anomaly_score(MARKED), expected)
    assert loaded.missing["age"] == ["0", "-1"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_and_batches_are_read_alike(fitted, ending, tmp_path):
    detector, expected = fitted
    detector.save(tmp_path / "m.fewlier")
    path, rows = tmp_path / f"t.{ending}", pa.Table.from_pandas(MARKED)
    if ending == "csv":
        MARKED.to_csv(path, index=False)
    else:
        pq.write_table(rows, path)
    scored = []
    with open_table(path) as file:
        report = score_file(detector, file, scored.append)
    assert report.unread == {}
    found = np.array([float(s) for part in scored for s in part["anomaly_score"].to_pylist()])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    batch = BatchScorer(tmp_path / "m.fewlier")(rows.to_batches()[0])
    np.testing.assert_array_equal(batch.column("anomaly_score").to_numpy(), expected)


def test_explanations_call_them_missing(fitted):
    row = int(np.flatnonzero(MARKED["co"] == -200)[0])
    reasons = fitted[0].explain(MARKED.iloc[[row]]).top(0, n=20)
    assert {reason.value for reason in reasons if reason.column == "co"} <= {None, "missing"}


def test_the_graph_reads_numbers_that_stand_for_gaps_as_gaps():
    both = (t[["co", "age"]].astype(float).assign(x=np.arange(N) / 7) for t in (MARKED, EMPTY))
    rows, gaps = both
    detector = small(missing={"co": -200, "age": [0, -1]}).fit(rows)
    whole = Whole(detector.model_)
    columns = [[torch.from_numpy(t[name].to_numpy().copy()) for name in t] for t in (rows, gaps)]
    marked, empty = (whole(*given) for given in columns)
    torch.testing.assert_close(marked, empty, rtol=0, atol=0)


def test_a_stream_does_not_count_them(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_NORMALS", 50)
    batches = lambda t: pa.Table.from_pandas(t).to_batches(40)  # noqa: E731 - twice
    kinds = [
        small(missing=said, columns={"price": "1.234,50"})
        .fit(iter(batches(t)))
        .model_.encoder.schema
        for t, said in ((MARKED, SAID), (EMPTY, None))
    ]
    names = [[(c.name, c.kind, c.coding, c.levels) for c in schema.columns] for schema in kinds]
    assert names[0] == names[1]


@pytest.mark.parametrize("said", [-200, -200.0, "-200", [-200], (-200, "n/k"), np.array([-200])])
def test_a_value_stands_for_gaps_in_every_column(said):
    X = np.random.default_rng(0).normal(size=(60, 2))
    marked = X.copy()
    X[3, 0], marked[3, 0] = np.nan, -200
    found = small(missing=said).fit(marked).anomaly_score(marked)
    np.testing.assert_array_equal(found, small().fit(X).anomaly_score(X))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"aeg": 0}, r"missing=\{'aeg': '0'\} must name a column.* Did you mean 'age'"),
        (object(), "'missing' must be numbers or texts"),
        ([True], "'missing' must be"),
        ([np.inf], "'missing' must be"),
        (10**400, "'missing' must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(said, message):
    with pytest.raises(UserError, match=message):
        small(missing=said).fit(MARKED[["age", "co"]])
