"""`fewlier label`: questions in a terminal, and what is made of the answers."""

import json
import os
import pty
import select
import subprocess
import time

import pandas as pd
import pytest
from labelling.tables import mixed
from processes import COMMAND, run

from fewlier import AnomalyDetector


@pytest.fixture
def table(tmp_path):
    columns = mixed(60)
    columns["amount"][:4] = [4000, 3900.5, None, 4200]
    path = tmp_path / "sales.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.fixture
def answers(table, fewlier):
    """Return a file of three answers: an anomaly, one with a kind, and a normal row."""
    path = table.with_name("labels.jsonl")
    done = fewlier("label", table, "-o", path, "--terminal", stdin=b"a\nk\nfraud\nn\nq\n")
    assert done.code == 0
    return path


def records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]]


def test_answers_are_lines_of_the_file_and_the_next_run_goes_on(table, answers, fewlier):
    first = records(answers)
    assert [r["answer"] for r in first] == ["anomaly", "anomaly", "normal"]
    assert [r["kind"] for r in first] == [None, "fraud", None]
    assert set(first[0]["cells"]) == set(mixed(10))
    done = fewlier("label", table, "-o", answers, "--terminal", stdin=b"1\nspace\nundo\n?\nx\n")
    assert done.code == 0
    assert "continuing from 3 answers" in done.err
    assert "question 4: row" in done.err
    assert "it is an anomaly of the kind with this number" in done.err
    assert "keys: a anomaly" in done.err
    assert "note-" not in done.err
    more = records(answers)[3:]
    assert more[0]["kind"] == "fraud"
    assert more[1]["answer"] == "skipped"
    assert more[2]["undo"] == {key: more[1][key] for key in ("hash", "occurrence")}
    assert done.out.decode().startswith("found 3 in 4 answers; about ")
    assert f"next: fewlier fit {table} --labels {answers} -o sales.fewlier" in done.out.decode()
    assert len({r["hash"] for r in more[:2]} | {r["hash"] for r in first}) == 5


def test_identifiers_and_text_are_shown(table, fewlier):
    done = fewlier("label", table, "-o", table.with_name("l.jsonl"), "--terminal", stdin=b"")
    assert "row-" in done.err
    assert "wrote that all is well" in done.err


def test_says_in_json_what_came_of_it(table, fewlier):
    path = table.with_name("l.jsonl")
    done = fewlier("label", table, "-o", path, "--terminal", "--json", stdin=b"a\nn\n")
    facts = json.loads(done.out)
    assert (facts["answers"], facts["found"], facts["normal"], facts["curve"]) == (
        str(path),
        1,
        1,
        [1, 1],
    )


def test_labels_of_a_column_are_known_and_not_asked(table, fewlier):
    rows = pd.read_csv(table)
    rows["fraud"] = [1.0, 0.0, *[None] * (len(rows) - 2)]
    rows.to_csv(table, index=False)
    path = table.with_name("l.jsonl")
    words = ["label", table, "-o", path, "--terminal", "--label", "fraud", "--json"]
    facts = json.loads(fewlier(*words, stdin=b"n\n" * 80).out)
    assert (facts["known"], facts["asked"]) == (2, 58)
    assert "fraud" not in records(path)[0]["cells"]


def test_export_writes_the_table_with_labels(table, answers, fewlier):
    target = table.with_name("labelled.csv")
    done = fewlier("label", table, "-o", answers, "--export", target)
    assert done.code == 0
    assert f"next: fewlier fit {target} --label label --normal normal" in done.err
    before, after = pd.read_csv(table), pd.read_csv(target)
    pd.testing.assert_frame_equal(after.drop(columns="label"), before)
    named = after["label"].dropna()
    assert named.to_dict() == {r["row"]: r["kind"] or r["answer"] for r in records(answers)}


def test_merge_lists_conflicts(table, answers, fewlier):
    other, both = table.with_name("other.jsonl"), table.with_name("both.jsonl")
    fewlier("label", table, "-o", other, "--terminal", stdin=b"n\n")
    words = ["label", "--merge", answers, "--merge", other, "-o", both]
    done = fewlier(*words)
    row = records(answers)[0]["row"]
    assert done.out.decode().splitlines() == [
        f"2 answers in {both}, 1 conflicts",
        f"  row {row}: anomaly ({answers}), normal ({other})",
    ]
    facts = json.loads(fewlier(*words, "--json").out)
    assert (facts["answers"], [c["row"] for c in facts["conflicts"]]) == (2, [row])


@pytest.mark.slow
def test_fit_and_update_learn_from_answers(table, answers, fewlier, tmp_path):
    model, small = tmp_path / "m.fewlier", ["--max-epochs", "2"]
    rows = pd.read_csv(table)
    shuffled = tmp_path / "shuffled.csv"
    rows.sample(frac=1, random_state=0).to_csv(shuffled, index=False)
    done = fewlier("fit", shuffled, "--labels", answers, "-o", model, *small)
    assert done.code == 0
    summary = AnomalyDetector.load(model).summary_
    assert (summary.n_anomaly, summary.n_normal) == (2, 1)
    assert summary.labelled_kinds == {"fraud": 1}
    fewlier("label", table, "-o", answers, "--terminal", stdin=b"a\na\n")
    done = fewlier("update", model, answers)
    assert done.code == 0
    assert AnomalyDetector.load(model).summary_.n_anomaly == 4
    on = tmp_path / "on.jsonl"
    done = fewlier("label", table, "-m", model, "-o", on, "--terminal", stdin=b"n\n")
    assert done.code == 0
    assert records(on)[0]["p_value"] is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["label", "{t}"], "Name one: -o labels.jsonl"),
        (["label", "-o", "x.jsonl"], "A table must be named"),
        (["label", "-", "-o", "x.jsonl", "--terminal"], "Name a file"),
        (["label", "{t}", "-o", "{t}", "--terminal"], "must be another file than the input"),
        (["label", "{t}", "--merge", "a", "-o", "x.jsonl"], "merged without a table"),
        (["label", "--merge", "{f}/none", "-o", "{f}/x.jsonl"], "No such file"),
        (["label", "{t}", "-o", "{f}/no/x.jsonl", "--terminal"], "no"),
        (["fit", "{t}", "--labels", "{t}", "-o", "{f}/m.fewlier"], "`fewlier label` wrote"),
        (["update", "{f}/m.fewlier", "{t}"], "name their column by --label"),
    ],
)
def test_says_what_is_wrong(table, fewlier, folder, words, said):
    before = folder()
    done = fewlier(*(word.format(t=table, f=table.parent) for word in words))
    assert done.code == 2
    assert said in done.err
    assert folder() == before


def read_until(descriptor, text, seconds=60):
    """Read from a terminal until it shows a text."""
    found, end = b"", time.monotonic() + seconds
    while text not in found:
        assert time.monotonic() < end, found.decode("utf-8", "replace")
        if select.select([descriptor], [], [], 1)[0]:
            found += os.read(descriptor, 65536)
    return found


@pytest.mark.slow
def test_keys_of_a_terminal_answer_and_a_killed_process_loses_nothing(table):
    path, words = table.with_name("l.jsonl"), ["--terminal"]
    command = [COMMAND, "label", table, "-o", path, *words]
    for keys, ends in ((b"an \x7f", "kill"), (b"k", "kind"), (b"a", "ctrl-c")):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        read_until(ours, b"? help")
        for key in keys:
            os.write(ours, bytes([key]))
            read_until(ours, b"kind: " if key == ord("k") else b"? help")
        if ends == "kind":
            os.write(ours, b"late fee\n")
            read_until(ours, b"? help")
            os.write(ours, b"q")
            read_until(ours, b"next: fewlier fit")
            assert process.wait(60) == 0
        elif ends == "kill":
            process.kill()
            process.wait(60)
        else:
            process.send_signal(2)
            assert b"answers are in" in read_until(ours, b"answers are in")
            assert process.wait(60) == 130
        os.close(ours)
    found = [r.get("answer", "undo") for r in records(path)]
    assert found == ["anomaly", "normal", "skipped", "undo", "anomaly", "anomaly"]
    assert records(path)[4]["kind"] == "late fee"


@pytest.mark.slow
def test_a_second_session_is_refused(table):
    path = table.with_name("l.jsonl")
    with subprocess.Popen(
        [COMMAND, "label", table, "-o", path, "--terminal"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as first:
        for line in first.stderr:
            if b"? help" in line:
                break
        second = run("label", table, "-o", path, "--terminal", input="")
        first.stdin.close()
        first.stderr.read()
    assert second.returncode == 2
    assert "another one has this file open" in second.stderr
