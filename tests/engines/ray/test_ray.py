"""Ray: what two nodes score is, bit for bit, what one process scores."""

import os
import signal
import threading
import time

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import ray
import ray.data
import slowness
from factories import FEATURES, payments, save_typed_model, typed_rows

from fewlier import AnomalyDetector, UserError
from fewlier.engines.ray import RayWorkers, _BlockScorer, score
from fewlier.files.folder import TableFolder
from fewlier.scoring.batches import BatchScorer, ScoreReport
from fewlier.scoring.folders import score_folder
from fewlier.scoring.scored import ADDED

ROWS = payments(1200, seed=5)
TABLE = pa.Table.from_pandas(ROWS, preserve_index=False)


@pytest.fixture(scope="session")
def detector(model):
    return AnomalyDetector.load(model)


def blocks(table, size):
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


def whole(dataset):
    """Return a dataset as a table; Ray hands blocks without rows past every function."""
    tables = ray.get(dataset.to_arrow_refs())
    return pa.concat_tables([table for table in tables if table.num_rows])


@pytest.mark.usefixtures("cluster")
def test_a_dataset_keeps_its_order_and_gets_the_scores_of_one_process(model, detector):
    dataset = ray.data.from_arrow([*blocks(TABLE, 100), TABLE.slice(0, 0)])
    found = whole(score(dataset, model, workers=3))
    assert found["id"].to_pylist() == ROWS["id"].tolist()
    assert found.column_names == [*TABLE.column_names, *ADDED]
    rows = ROWS[FEATURES]
    assert found["anomaly_score"].to_pylist() == detector.anomaly_score(rows).tolist()
    assert found["p_value"].to_pylist() == detector.p_value(rows).tolist()
    assert found["is_anomaly"].to_pylist() == detector.predict(rows).astype(bool).tolist()
    assert {name: found.schema.field(name).type for name in ADDED} == ADDED


@pytest.mark.usefixtures("cluster")
def test_integers_with_gaps_stay_integers_and_a_column_may_be_empty(model, detector):
    visits = pa.array([1, None, 3, 4] * 5, pa.int32())
    table = pa.table({"amount": [50.0] * 20, "visits": visits, "city": pa.nulls(20)})
    found = whole(score(ray.data.from_arrow(table), model))
    assert found["visits"].combine_chunks().equals(visits)
    expected = detector.anomaly_score(table.to_pandas().astype({"city": object}))
    assert found["anomaly_score"].to_pylist() == expected.tolist()


@pytest.mark.usefixtures("cluster")
def test_dates_decimals_and_dictionaries_get_the_scores_of_one_process(tmp_path):
    rows = typed_rows(seed=5, zone="Europe/Zurich")
    model = save_typed_model(tmp_path / "m.fewlier", zone="Europe/Zurich")
    expected = AnomalyDetector.load(model).anomaly_score(rows.drop_columns("id")).tolist()
    found = whole(score(ray.data.from_arrow(blocks(rows, 100)), model, workers=2))
    assert found["id"].to_pylist() == rows["id"].to_pylist()
    assert found["anomaly_score"].to_pylist() == expected
    assert found["zoned"].type == rows["zoned"].type


@pytest.mark.usefixtures("cluster")
def test_a_block_that_does_not_fit_says_what_is_wrong(model):
    dataset = ray.data.from_arrow(TABLE.drop_columns("city"))
    with pytest.raises(Exception, match="without 'city'"):
        score(dataset, model, workers=1).materialize()
    words = ray.data.from_arrow(TABLE.set_column(1, "amount", pa.array(["much"] * 1200)))
    with pytest.raises(Exception, match=r"a block: Column 'amount' must hold numbers.*row 0\)"):
        score(words, model, workers=1).materialize()


@pytest.mark.usefixtures("cluster")
def test_a_block_that_kills_its_actor_is_not_tried_for_ever(model, monkeypatch):
    monkeypatch.setattr("fewlier.engines.ray.MAX_RETRIES", 1)
    monkeypatch.setattr("fewlier.engines.ray._BlockScorer", slowness.DyingBlocks)
    with pytest.raises(ray.exceptions.RayError):
        score(ray.data.from_arrow(TABLE), model, workers=1).materialize()


def test_a_large_block_is_scored_a_batch_at_a_time(model, monkeypatch):
    monkeypatch.setattr("fewlier.files.reading._BATCH_ROWS", 500)
    scorer, sizes = _BlockScorer(model, with_reason=True), []
    monkeypatch.setattr(
        BatchScorer, "__call__", lambda _, rows, **where: sizes.append((rows, where)) or rows
    )
    assert scorer(TABLE).equals(TABLE)
    assert [(rows.num_rows, where["start"]) for rows, where in sizes] == (
        [(500, 0), (500, 500), (200, 1000)]
    )


@pytest.fixture
def big(tmp_path):
    """Return a folder of twelve files, alternately of Parquet and CSV."""
    folder = tmp_path / "big"
    folder.mkdir()
    for number, rows in enumerate(blocks(TABLE, 100)):
        frame, name = rows.to_pandas(), folder / f"{number:02}"
        if number % 2:
            frame.to_csv(f"{name}.csv", index=False)
        else:
            frame.to_parquet(f"{name}.parquet", index=False)
    return TableFolder.find(folder)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("fdr", [None, 0.3])
def test_a_folder_becomes_the_files_that_one_process_writes(fdr, big, model, detector, tmp_path):
    here = score_folder(detector, big, tmp_path / "here", fdr=fdr)
    shares = []
    there = score_folder(
        detector,
        big,
        tmp_path / "there",
        fdr=fdr,
        score=RayWorkers(model, workers=3).score,
        progress=shares.append,
    )
    assert isinstance(there, ScoreReport)
    assert there == here
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert shares[-1] == 1
    assert len(shares) == 12 * (1 + (fdr is not None))


@pytest.mark.usefixtures("cluster")
def test_a_bad_file_among_many_is_named_and_leaves_nothing(big, model, detector, tmp_path):
    bad = big.root / "05.csv"
    frame = blocks(TABLE, 100)[5].to_pandas().assign(amount="much")
    frame.to_csv(bad, index=False)
    with pytest.raises(UserError, match=r"05\.csv: Column 'amount' must hold numbers.*row 0\)"):
        score_folder(detector, big, tmp_path / "out", score=RayWorkers(model, workers=2).score)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big"]
    assert big.root.exists()


@pytest.fixture
def marks(big, tmp_path):
    """Return a folder in which workers tell of themselves."""
    marks = tmp_path / "marks"
    marks.mkdir()
    (big.root / ".marks").write_text(str(marks))
    return marks


@pytest.fixture
def slow(monkeypatch, marks):
    """Let every file take a moment, and say in a folder which process is at it."""
    monkeypatch.setattr("fewlier.engines.ray._score_job", slowness.slowly)
    return marks


def disturb(marks, do):
    """Do something once the first file is being scored."""

    def wait():
        while not (found := [*marks.iterdir()]):
            time.sleep(0.05)
        do(int(found[0].name))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_is_killed_loses_nothing(big, model, detector, slow, tmp_path):
    here = score_folder(detector, big, tmp_path / "here")
    thread = disturb(slow, lambda pid: os.kill(pid, signal.SIGKILL))
    there = score_folder(
        detector, big, tmp_path / "there", score=RayWorkers(model, workers=2).score
    )
    thread.join()
    assert there == here
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_node_that_is_lost_half_way_loses_nothing(cluster, big, model, detector, slow, tmp_path):
    here = score_folder(detector, big, tmp_path / "here")
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    thread = disturb(slow, lambda _: cluster.remove_node(node, allow_graceful=False))
    there = score_folder(
        detector, big, tmp_path / "there", score=RayWorkers(model, workers=5).score
    )
    thread.join()
    assert there == here
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert ds.dataset([str(p) for p in (tmp_path / "there").glob("*.parquet")]).count_rows() == 600


def test_an_address_without_a_cluster_is_refused(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(UserError, match="must be that of a Ray cluster that is running"):
        RayWorkers("m.fewlier", "ray-head:1")


FAULTS = {
    "killed": ("deadly", r"deadly\.csv: .*got WorkerCrashedError: .* replaced 1 times"),
    "out of memory": ("greedily", r"\.(csv|parquet): .*got \w*MemoryError"),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("how", "message"), FAULTS.values(), ids=FAULTS)
def test_a_worker_that_is_always_lost_is_an_error_with_its_file(
    how, message, big, model, detector, tmp_path, monkeypatch
):
    ROWS.to_csv(big.root / "deadly.csv", index=False)
    big = TableFolder.find(big.root)
    monkeypatch.setattr("fewlier.engines.ray.MAX_RETRIES", 1)
    monkeypatch.setattr("fewlier.engines.ray._score_job", getattr(slowness, how))
    with pytest.raises(UserError, match=message):
        score_folder(detector, big, tmp_path / "out", score=RayWorkers(model, workers=2).score)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big"]


@pytest.mark.usefixtures("cluster")
def test_a_worker_loads_the_model_once_and_computes_in_one_thread(
    big, model, detector, marks, tmp_path, monkeypatch
):
    monkeypatch.setattr("fewlier.engines.ray._score_job", slowness.telling)
    score_folder(detector, big, tmp_path / "out", score=RayWorkers(model, workers=2).score)
    told = [path.read_text().splitlines() for path in marks.iterdir()]
    assert 1 <= len(told) < 12  # Ray may replace workers that idle
    assert [line for lines in told for line in lines] == ["1 1"] * 12


@pytest.mark.usefixtures("cluster")
def test_a_damaged_row_group_is_named(big, model, detector, tmp_path):
    path = big.root / "04.parquet"
    pq.write_table(TABLE, path, row_group_size=300, use_dictionary=False)
    group = pq.ParquetFile(path).metadata.row_group(1)
    content, start = bytearray(path.read_bytes()), group.column(1).data_page_offset
    content[start : start + 40] = (byte ^ 0xFF for byte in content[start : start + 40])
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"04\.parquet: .* column 'amount' of row group 1, rows 300"
    ):
        score_folder(detector, big, tmp_path / "out", score=RayWorkers(model, workers=2).score)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big"]


@pytest.mark.usefixtures("cluster")
def test_a_bad_file_among_sixty_is_named_and_without_it_all_are_scored(model, detector, tmp_path):
    big = tmp_path / "big"
    big.mkdir()
    for number, rows in enumerate(blocks(TABLE, 20)):
        pq.write_table(rows, big / f"{number:03}.parquet")
    good = (big / "042.parquet").read_bytes()
    bad = TABLE.set_column(1, "amount", pa.array(["much"] * 1200))
    pq.write_table(bad, big / "042.parquet")
    folder, out = TableFolder.find(big), tmp_path / "out"
    with pytest.raises(UserError, match=r"042\.parquet: Column 'amount' must hold numbers"):
        score_folder(detector, folder, out, score=RayWorkers(model, workers=2).score)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big"]
    (big / "042.parquet").write_bytes(good)
    report = score_folder(detector, folder, out, score=RayWorkers(model, workers=2).score)
    assert report.n_rows == ds.dataset(out).count_rows() == 1200
    assert len([*out.glob("*.parquet")]) == 60
