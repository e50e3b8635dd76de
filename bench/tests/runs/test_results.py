from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fcntl import LOCK_EX, LOCK_UN, flock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewlier import UserError
from fewlier_bench.reproduction.experiments import PAPER
from fewlier_bench.runs.results import COLUMNS, Result, Store, cell_of, latest

ROW = Result(
    dataset="Pima",
    method="LOF",
    k=3,
    split=0,
    seed=0,
    parameter="n_neighbors",
    value="15",
    validation_auc=0.75,
    auc=0.5,
    average_precision=0.25,
    seconds=1.5,
    sha256="abc",
    versions="fewlier 0, python 3",
    machine="one, 2 cores",
    date="2020-01-02",
)
FAILURE = replace(
    ROW,
    split=1,
    validation_auc=None,
    auc=None,
    average_precision=None,
    seconds=None,
    reason='a, "b"',
)


def test_rows_come_back_in_the_order_they_were_added(tmp_path):
    store = Store(tmp_path / "new")
    assert store.read(PAPER) == []
    store.append(PAPER, [ROW])
    store.append(PAPER, [FAILURE, ROW])
    assert store.read(PAPER) == [ROW, FAILURE, ROW]
    header, *rows = store.path(PAPER).read_text().splitlines()
    assert header == ",".join(COLUMNS)
    assert len(rows) == 3
    assert store.read("lambdas") == []


# Reasons are single lines; the other texts are names.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")))
SHARE = st.none() | st.integers(0, 10**6).map(lambda n: n / 10**6)
TEXTS = ("dataset", "method", "parameter", "value", "sha256", "versions", "machine", "date")
RESULTS = st.builds(
    replace,
    st.just(ROW),
    reason=TEXT,
    **dict.fromkeys(TEXTS, TEXT),
    **dict.fromkeys(("k", "split", "seed"), st.integers(0, 2**31)),
    **dict.fromkeys(("auc", "average_precision", "validation_auc"), SHARE),
)


@given(RESULTS)
def test_any_text_and_numbers_of_six_digits_survive(tmp_path_factory, result):
    store = Store(tmp_path_factory.mktemp("results"))
    store.append(PAPER, [result])
    assert store.read(PAPER) == [result]


def test_the_last_row_of_a_cell_counts():
    again = replace(FAILURE, auc=0.9, reason="")
    assert latest([ROW, FAILURE, again]) == [ROW, again]
    assert cell_of(PAPER, again) == cell_of(PAPER, FAILURE) == (PAPER, "Pima", "LOF", 3, 1)


def test_a_file_with_other_columns_is_refused(tmp_path):
    (tmp_path / "paper.csv").write_text("dataset,auc\nPima,0.5\n")
    with pytest.raises(
        UserError, match=r"paper.csv must have the columns dataset, .*got dataset, a"
    ):
        Store(tmp_path).read(PAPER)


@pytest.mark.parametrize("n_lost", [3, 20, 60])
def test_half_a_line_is_refused(n_lost, tmp_path):
    store = Store(tmp_path)
    store.append(PAPER, [ROW, ROW])
    path = store.path(PAPER)
    path.write_text(path.read_text()[:-n_lost])
    with pytest.raises(UserError, match=r"has a line that is not a result.*half a line; remove it"):
        store.read(PAPER)


def test_a_process_waits_until_another_has_added_its_rows(tmp_path):
    store, other = Store(tmp_path / "here"), Store(tmp_path / "there")
    other.append(PAPER, [ROW])
    store.folder.mkdir()
    with store.path(PAPER).open("ab", buffering=0) as file, ThreadPoolExecutor() as pool:
        flock(file, LOCK_EX)
        waiting = pool.submit(store.append, PAPER, [FAILURE])
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.2)
        file.write(other.path(PAPER).read_bytes())
        flock(file, LOCK_UN)
        waiting.result()
    assert store.read(PAPER) == [ROW, FAILURE]
