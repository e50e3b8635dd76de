"""The file of answers survives whatever happens to it."""

import json
import os
import resource
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelling.tables import mixed

from fewlier import UserError
from fewlier.errors import FewlierWarning
from fewlier.labelling.answers.answer import Answer
from fewlier.labelling.answers.journal import Journal, now, read_answers
from fewlier.labelling.answers.labels import answered_rows
from fewlier.labelling.answers.ledger import Ledger
from fewlier.labelling.answers.merge import merge
from fewlier.table import Table

ROWS = Table.of([[1, "a"], [2, "b"], [1, "a"], [3, None], [1, "a"]])
STEPS = st.lists(
    st.one_of(
        st.just("undo"),
        st.tuples(
            st.integers(0, ROWS.n_rows - 1),
            st.sampled_from([0, 1, None]),
            st.sampled_from([None, "fraud", "Ünfug\n2"]),
        ),
    ),
    max_size=8,
)


def answer(ledger, row, label=1, kind=None, **more):
    cells = {"x0": 1.5, "x1": None}
    return Answer(row, ledger.key(row), label, now(), cells, kind if label == 1 else None, **more)


def take(ledger, steps):
    for step in steps:
        if step == "undo":
            ledger.take_back()
        else:
            ledger.add(answer(ledger, *step))


def plain(ledger):
    return [(a.row, a.label, a.kind) for a in ledger.standing]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.jsonl"


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, data=st.data())
def test_a_file_torn_at_any_byte_holds_what_was_whole(steps, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("torn") / "answers.jsonl"
    ledger, states = Ledger(ROWS, path), []
    states.append((path.stat().st_size, plain(ledger)))
    for step in steps:
        take(ledger, [step])
        states.append((path.stat().st_size, plain(ledger)))
    ledger.close()
    size = data.draw(st.integers(0, path.stat().st_size))
    os.truncate(path, size)
    whole = [state for end, state in states if end <= size]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewlierWarning)
        again = Ledger(ROWS, path)
    assert plain(again) == (whole[-1] if whole else [])
    again.add(answer(again, 3))
    again.close()
    assert plain(Ledger(ROWS, path))[-1] == (3, 1, None)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, order=st.permutations(range(7)))
def test_answers_are_found_in_another_order_and_among_more_rows(steps, order, tmp_path_factory):
    path = tmp_path_factory.mktemp("order") / "answers.jsonl"
    ledger = Ledger(ROWS, path)
    take(ledger, steps)
    ledger.close()
    more = ROWS.followed_by(Table.of([[7, "new"], [8, None]])).take(np.array(order))
    again = Ledger(more, path)
    again.close()

    def cells(table, standing):
        return sorted(
            (str([column[a.row] for column in table.cells.values()]), str(a.label), str(a.kind))
            for a in standing
        )

    assert cells(more, again.standing) == cells(ROWS, ledger.standing)


def test_a_row_is_the_same_from_text_and_from_numbers(path):
    text = Table.of([["1", "a"], ["2.0", "b"], ["01.0e0", "a"], ["3", ""], ["+1", "a"]])
    ledger = Ledger(text, path)
    ledger.add(answer(ledger, 1))
    ledger.close()
    assert plain(Ledger(ROWS, path)) == [(1, 1, None)]


def test_a_torn_line_is_noted(path):
    Ledger(ROWS, path).close()
    with path.open("ab") as file:
        file.write(b'{"row": 3, "has')
    with pytest.warns(FewlierWarning, match="last line"):
        Ledger(ROWS, path)


def test_each_answer_holds_what_is_needed_later(path):
    ledger = Ledger(ROWS, path)
    given_ = answer(ledger, 4, kind="fraud", note="called", score=2.5, p_value=0.01)
    ledger.add(given_)
    ledger.take_back()
    header, line, undo = map(json.loads, path.read_text("utf-8").splitlines())
    assert header["columns"] == ["x0", "x1"]
    assert Answer.from_json(line) == given_
    assert (line["answer"], line["occurrence"], line["cells"]) == (
        "anomaly",
        2,
        {"x0": 1.5, "x1": None},
    )
    assert undo["undo"] == given_.key._asdict()


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("nonsense", "line 2: every line must be an answer"),
        ("{}", "it is damaged"),
        ('{"undo": {"hash": "0", "occurrence": 0}}', "undoes an answer that is not the last"),
    ],
)
def test_a_damaged_line_is_named(path, line, match):
    Ledger(ROWS, path).close()
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UserError, match=match):
        read_answers(path)


@pytest.mark.parametrize("change", [{"row": -1}, {"answer": 1}, {"cells": [1]}, {"kind": 3}])
def test_a_line_with_another_content_is_refused(path, change):
    ledger = Ledger(ROWS, path)
    record = answer(ledger, 0).to_json() | change
    ledger.close()
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    with pytest.raises(UserError, match="line 2"):
        read_answers(path)


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "[]\n", '{"format": "other"}\n'])
def test_another_file_is_refused_and_left_alone(path, content):
    path.write_text(content)
    with pytest.raises(UserError, match="fewlier label"):
        Ledger(ROWS, path)
    assert path.read_text() == content


def test_a_newer_format_is_refused(path):
    Ledger(ROWS, path).close()
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(UserError, match="newer version"):
        Ledger(ROWS, path)


def test_a_second_writer_is_refused_and_told_who_writes(path):
    first = Ledger(ROWS, path)
    with pytest.raises(UserError, match="another one has this file open"):
        Journal(path)
    first.close()
    Journal(path).close()


def test_a_table_that_lacks_answered_rows_is_refused(path):
    ledger = Ledger(ROWS, path)
    take(ledger, [(1, 1, None), (3, 0, None)])
    ledger.close()
    with pytest.raises(UserError, match=r"1 of 2 .*row 3"):
        Ledger(ROWS.take(np.array([0, 1, 2])), path)
    with pytest.raises(UserError, match="'x1'"):
        Ledger(ROWS.select(["x0"]), path)


def test_a_file_that_was_moved_takes_no_answer(path):
    ledger = Ledger(ROWS, path)
    path.rename(path.with_suffix(".old"))
    with pytest.raises(UserError, match="moved"):
        ledger.add(answer(ledger, 0))
    assert ledger.standing == ()


def test_a_closed_session_takes_no_answer(path):
    ledger = Ledger(ROWS, path)
    ledger.close()
    with pytest.raises(UserError, match="closed"):
        ledger.add(answer(ledger, 0))


def test_a_full_disk_refuses_the_answer_and_leaves_the_file_whole(path):
    ledger = Ledger(ROWS, path)
    ledger.add(answer(ledger, 0))
    size, (soft, hard) = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))  # a write ends halfway
    try:
        for _ in range(2):
            with pytest.raises(UserError, match="not saved"):
                ledger.add(answer(ledger, 1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert plain(ledger) == [(0, 1, None)]
    assert path.stat().st_size == size
    ledger.add(answer(ledger, 2))
    assert [a.row for a in read_answers(path).stack] == [0, 2]


def two_files(tmp_path, first, second):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, steps in zip(paths, (first, second), strict=True):
        ledger = Ledger(ROWS, path)
        take(ledger, steps)
        ledger.close()
    return paths


def test_merged_files_hold_what_both_agree_on(tmp_path):
    paths = two_files(
        tmp_path,
        [(0, 1, None), (1, 0, None), (3, None, None), (2, 1, "fraud")],
        [(0, 1, "fraud"), (1, 1, None), (3, 0, None), (2, 1, "slip"), (4, None, None)],
    )
    merged = merge(paths)
    merged.write(tmp_path / "both.jsonl")
    found = {a.row: (a.label, a.kind) for a in read_answers(tmp_path / "both.jsonl").stack}
    assert found.keys() == {0, 2, 3, 4}
    assert (found[0], found[3], found[4]) == ((1, "fraud"), (0, None), (None, None))
    assert [conflict.row for conflict in merged.conflicts] == [1, 2]
    assert str(merged.conflicts[0]) == f"row 1: normal ({paths[0]}), anomaly ({paths[1]})"
    again = Ledger(ROWS, tmp_path / "both.jsonl")
    assert len(again.standing) == 4


def test_files_about_other_tables_are_not_merged(tmp_path):
    paths = two_files(tmp_path, [], [])
    Ledger(Table.of(pa.table(mixed(5))), tmp_path / "c.jsonl").close()
    with pytest.raises(UserError, match="columns"):
        merge([paths[0], tmp_path / "c.jsonl"])


def test_answered_rows_need_no_table(path):
    ledger = Ledger(ROWS, path)
    take(ledger, [(0, 1, "fraud"), (1, 0, None), (3, None, None), "undo", (1, 1, None)])
    ledger.close()
    rows, labels = answered_rows(path)
    assert rows["x0"].to_pylist() == [1.5, 1.5]
    assert labels.codes.tolist() == [1, 1]
    assert labels.kind_counts == {"fraud": 1}
