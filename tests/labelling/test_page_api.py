"""What a page may ask of a session, and what it is told."""

import json
import os
import resource
import signal
from contextlib import contextmanager

import pandas as pd
import pytest
from labelling.conftest import HOSTILE, open_session, shop

from fewlier import AnomalyDetector, Session
from fewlier.labelling.page.api import MAX_TEXT, PageApi
from fewlier.labelling.session_table import cells_of
from fewlier.process import signals
from fewlier.process.escape import full_number


def ask(api, action="state", **body):
    """Ask as a page does: what is said travels as JSON."""
    return json.loads(json.dumps(api.reply(action, json.loads(json.dumps(body))), allow_nan=False))


def answer(api, label=1, **more):
    """Answer the row that is shown; return its number and the reply."""
    state = ask(api)["state"]
    row = state["question"]["row"]
    told = {"turn": state["turn"], "row": row, "answer": label} | more
    return row, ask(api, "answer", **told)


def standing(session):
    return [(one.row, one.label, one.kind, one.note) for one in session.history]


def test_answers_reach_the_session_and_its_file(api, session, tmp_path):
    asked = [answer(api, label, kind=kind, note=note)[0] for label, kind, note in SAID]
    expected = [(row, *said) for row, said in zip(asked, SAID, strict=True)]
    assert standing(session) == expected
    session.close()
    with open_session(tmp_path / "labels.jsonl") as again:
        assert standing(again) == expected


SAID = [(1, None, None), (0, None, "looked at it"), (None, None, None), (1, "big <b>", "a\nb")]


def test_the_reply_shows_the_next_question_and_what_was_found(api):
    rows = []
    for label, kind, note in SAID:
        row, reply = answer(api, label, kind=kind, note=note)
        rows.append(row)
        assert "error" not in reply
    state = reply["state"]
    assert state["question"]["row"] not in rows
    assert (state["found"], state["answered"], state["skipped"]) == (2, 3, 1)
    assert state["curve"] == [0, 1, 1, 1, 2]
    assert [one["row"] for one in state["recent"]] == rows[::-1]
    assert state["recent"][0] == {"row": row, "answer": 1, "kind": "big <b>", "note": "a\nb"}
    assert state["kinds"] == [{"name": "big <b>", "n": 1}]
    low, estimate, high = (state["left"][i] for i in (1, 0, 2))
    assert 0 <= low <= estimate <= high
    assert sum(state["scores"]["counts"]) == state["rows"] == 240


def test_a_card_shows_every_column_of_the_row_and_of_the_rows_beside_it(api, session):
    for _ in range(3):
        _, reply = answer(api)
    card = reply["state"]["question"]
    assert card["beside"].keys() == {"normal", "anomaly"}
    own = cells_of(session.table, card["row"])
    shown = {cell["column"]: cell for cell in card["cells"]}
    assert {"id", "note", f"shop {HOSTILE}", "day (date)", "weight"} <= shown.keys()
    for name in ("amount", "visits", "weight"):
        for key, number in {"value": card["row"], **card["beside"]}.items():
            cell = cells_of(session.table, number)[name]
            assert shown[name][key] == (None if cell is None else full_number(cell))
    unscored = [cell["column"] for cell in card["cells"] if "adds" not in cell]
    assert unscored == ["id", "note"]
    adds = [cell["adds"] for cell in card["cells"] if "adds" in cell]
    assert adds == sorted(adds, reverse=True)
    assert shown["id"]["value"] == own["id"]
    assert shown["day (date)"]["normal"] == cells_of(session.table, card["beside"]["normal"])["day"]


def test_long_and_unprintable_cells_are_shown_cut_and_visible():
    table = pd.DataFrame({"x": [0.1, 0.2, 9e15] * 8, "text": ["\u202ea\x1b", "b" * 9999, None] * 8})
    with Session(table, fit_every=None) as session:
        api = PageApi(session)
        texts = [
            {cell["column"]: cell["value"] for cell in ask(api, "look", row=row)["card"]["cells"]}
            for row in range(3)
        ]
    assert [one["text"] for one in texts] == ["\\u202ea\\x1b", "b" * (MAX_TEXT - 1) + "…", None]
    assert [one["x"] for one in texts] == ["0.1", "0.2", "9e+15"]


def test_an_answer_of_an_earlier_turn_is_not_taken(api, session):
    before = ask(api)["state"]
    row, _ = answer(api)
    told = {"turn": before["turn"], "row": row, "answer": 0}
    for action, more in (("answer", {}), ("answers", {"rows": [row]}), ("undo", {})):
        reply = ask(api, action, **told, **more)
        assert reply["error"].startswith("Nothing changed")
        assert reply["state"] == ask(api)["state"]
    assert standing(session) == [(row, 1, None, None)]


def test_the_turns_of_an_earlier_server_are_over(api, session):
    state = ask(api)["state"]
    reply = ask(
        PageApi(session), "answer", turn=state["turn"], row=state["question"]["row"], answer=1
    )
    assert reply["error"].startswith("Nothing changed")
    assert not session.history


def test_undo_opens_the_row_again_and_ends_at_the_start(api, session):
    row, reply = answer(api)
    reply = ask(api, "undo", turn=reply["state"]["turn"])
    assert reply["card"]["row"] == row
    assert not session.history
    reply = ask(api, "undo", turn=reply["state"]["turn"])
    assert reply == {"error": "There is no answer to undo."}
    assert "error" not in answer(api)[1]  # the page knows the turn still


def test_an_answered_row_is_looked_at_and_changed(api, session):
    row, reply = answer(api, 1, kind="late", note="why")
    card = ask(api, "look", row=row)["card"]
    assert card["answer"] == {"row": row, "answer": 1, "kind": "late", "note": "why"}
    turn = reply["state"]["turn"]
    assert "error" not in ask(api, "answer", turn=turn, row=row, answer=0, note="a slip")
    assert standing(session) == [(row, 0, None, "a slip")]


def test_several_rows_of_the_ranking_are_answered_at_once(api, session):
    reply = ask(api, "ranking", n=5)
    lines = reply["ranking"]
    assert [line["score"] for line in lines] == sorted((x["score"] for x in lines), reverse=True)
    rows = [line["row"] for line in lines]
    told = {"turn": reply["state"]["turn"], "rows": rows, "answer": 1, "kind": "heavy"}
    assert "error" not in ask(api, "answers", **told)
    assert standing(session) == [(row, 1, "heavy", None) for row in rows]
    given = {x["row"]: x["answer"] for x in ask(api, "ranking", n=20)["ranking"]}
    assert all(given[row]["kind"] == "heavy" for row in rows if row in given)


@pytest.mark.parametrize(
    ("action", "more", "told"),
    [
        ("answer", {"row": -1, "answer": 1}, "A row must be a number below 240; got -1."),
        ("answer", {"row": 240, "answer": 1}, "A row must be"),
        ("answer", {"row": "0", "answer": 1}, "A row must be"),
        ("answer", {"row": True, "answer": 1}, "A row must be"),
        ("answer", {"row": 0}, "An answer must be 1, 0 or null"),
        ("answer", {"row": 0, "answer": True}, "An answer must be 1, 0 or null"),
        ("answer", {"row": 0, "answer": 2}, "An answer must be 1, 0 or null"),
        ("answer", {"row": 0, "answer": [1]}, "An answer must be 1, 0 or null"),
        ("answer", {"row": 0, "answer": 1, "note": 1}, "A note must be a text"),
        ("answer", {"row": 0, "answer": 1, "kind": "x" * 2001}, "A kind must be a text"),
        ("answer", {"row": 0, "answer": 0, "kind": "x"}, "Only an anomaly has a kind"),
        ("answers", {"rows": [], "answer": 1}, "Answers must be to 1 to 500 rows"),
        ("answers", {"rows": [0, 999], "answer": 1}, "A row must be"),
        ("ranking", {"n": 0}, "A ranking must have 1 to 500 rows"),
        ("ranking", {"n": 1e9}, "A ranking must have 1 to 500 rows"),
        ("close", {}, "A request must be one that the page makes"),
        ("_save", {}, "A request must be one that the page makes"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(action, more, told, untouched):
    reply = ask(untouched, action, turn=ask(untouched)["state"]["turn"], **more)
    assert reply["error"].startswith(told)


@contextmanager
def full_disk(path):
    """Let files grow no further than this one is: a write then fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_the_answer_is_not_taken_and_the_question_stays(api, session, tmp_path):
    first, _ = answer(api)
    question = ask(api)["state"]["question"]["row"]
    with full_disk(tmp_path / "labels.jsonl"):
        row, reply = answer(api)
    assert reply.keys() == {"error"}
    assert "not saved" in reply["error"]
    assert os.strerror(27) in reply["error"]  # EFBIG
    assert row == question == ask(api)["state"]["question"]["row"]
    assert "error" not in answer(api)[1]
    session.close()
    with open_session(tmp_path / "labels.jsonl") as again:
        assert [one.row for one in again.history] == [first, row]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "heavy"])
def test_downloaded_labels_can_be_fitted_from(kind, api, session, tmp_path):
    for _ in range(6):
        row = session.next().row
        session.answer(row, int(row < 24), kind=kind if row < 24 else None)
    reply = ask(api, "labels")
    assert reply["file"]["name"] == "shop.labelled.csv"
    path = tmp_path / reply["file"]["name"]
    path.write_text(reply["file"]["text"], "utf-8")
    told = reply["said"].removeprefix("Next: ").split()
    assert told[:5] == ["fewlier", "fit", path.name, "--label", "label"]
    read = pd.read_csv(path)
    assert len(read) == 240
    given = read["label"].dropna()
    assert dict(given.items()) == {
        one.row: (one.label if kind is None else one.kind or "normal") for one in session.history
    }


@pytest.mark.slow
def test_a_model_is_saved_where_the_command_said_and_nowhere_else(api, session, tmp_path):
    answer(api)
    reply = ask(api, "save", path=str(tmp_path / "elsewhere.fewlier"))
    assert reply["said"] == f"The model is in {tmp_path / 'shop.fewlier'}."
    saved = AnomalyDetector.load(tmp_path / "shop.fewlier")
    rows = shop()[["amount", "visits", "weight", "day", f"shop {HOSTILE}"]]
    assert (saved.anomaly_score(rows) == session.detector.anomaly_score(rows)).all()
    assert not (tmp_path / "elsewhere.fewlier").exists()
    assert "--model-out FILE" in ask(PageApi(session), "save")["error"]


def test_who_stops_the_program_during_a_save_hears_that_no_model_was_written(api, monkeypatch):
    told = []
    monkeypatch.setattr(AnomalyDetector, "save", lambda *_: told.append(signals._last_words[-1]()))
    answer(api)
    ask(api, "save")
    assert told == ["stopped; no model was written, and 1 answers are kept."]
    assert "no model" not in signals._last_words[-1]()
