"""`PageApi`: what a page or a widget may ask of a session, and what it is told, as JSON values."""

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from shlex import quote
from typing import Any, TypeAlias, final

from fewlier.errors import UserError
from fewlier.files.atomic import PathLike
from fewlier.labelling.answers.answer import Answer, Cell, Stack
from fewlier.labelling.answers.labels import Labelled
from fewlier.labelling.question import Question
from fewlier.labelling.session import Session
from fewlier.labelling.session_table import as_given, cells_of
from fewlier.process.escape import full_number, shown
from fewlier.process.signals import said_if_stopped
from fewlier.reasons.reason import Reason
from fewlier.table.cells import number_text

Json: TypeAlias = dict[str, Any]
Row: TypeAlias = Mapping[str, Cell]

N_RECENT = 10  # answers that are listed, to be changed
MAX_RANKED = 500
MAX_DOWNLOADED = 200_000  # rows of a table
MAX_REASON = 60  # characters of a reason in the ranking
MAX_TEXT = 4000  # characters of a cell
MAX_SAID = 2000  # characters of a note or a kind
_WHY = {
    "oddest": "The oddest row by the answers so far.",
    "different": "Odd in another way than the anomalies found so far.",
}


@final
class PageApi:
    """Stands between a session and whoever answers; any number of pages may show it.

    A request carries the turn that its page knows. Each change begins another, and a request of an
    earlier turn changes nothing: so an answer is always to the row that was shown.

    Parameters
    ----------
    session : Session
        What asks and learns.
    name : str
        What the table is called.
    model_path : path or None
        Where a model is saved; a page cannot choose it.
    """

    def __init__(
        self, session: Session, *, name: str = "table", model_path: PathLike | None = None
    ) -> None:
        self._session = session
        self._name = name
        self._model_path = model_path
        self._guard = threading.Lock()
        self._start, self._n_changes = secrets.token_hex(4), 0
        self._reads: dict[str, Callable[[Json], Json]] = {
            "state": lambda _: {},
            "look": self._look,
            "ranking": self._rank,
            "labels": lambda _: self._export(),
            "save": lambda _: self._save(),
        }
        self._changes: dict[str, Callable[[Json], Json]] = {
            "answer": self._answer,
            "answers": self._answer_all,
            "undo": lambda _: self._undo(),
        }

    def reply(self, action: object, body: object) -> Json:
        """Do what is asked for; what cannot be done is told as an ``error``, in a sentence."""
        with self._guard:
            try:
                return self._do(action, body)
            except UserError as error:
                return {"error": str(error)}

    def _do(self, action: object, body: object) -> Json:
        if not isinstance(action, str) or not isinstance(body, dict):
            raise UserError(f"A request must be an action and a JSON object; got {action!r}.")
        if action in self._reads:
            return self._reads[action](body) | {"state": self._state()}
        if action not in self._changes:
            raise UserError(f"A request must be one that the page makes; got {action!r}.")
        if body.get("turn") != self._turn:
            error = (
                "Nothing changed: somebody answered in another window. The page now shows the "
                "current state."
            )
            return {"error": error, "state": self._state()}
        self._n_changes += 1  # also if it fails halfway
        return self._changes[action](body) | {"state": self._state()}

    @property
    def _turn(self) -> str:
        return f"{self._start}-{self._n_changes}"

    # What is shown -------------------------------------------------------------------------------

    def _state(self) -> Json:
        session, question = self._session, self._session.next()
        progress, history = session.progress, session.history
        left = progress.remaining
        return {
            "turn": self._turn,
            "name": shown(self._name, 80),
            "rows": session.n_rows,
            "question": question and self._card(question),
            "answered": progress.found + progress.normal,
            "found": progress.found,
            "skipped": progress.skipped,
            "curve": [0, *progress.curve],
            "left": left and [round(left.estimate), left.low, left.high],
            "told": progress.fit_error,
            "recent": [_answer_json(answer) for answer in history[: -N_RECENT - 1 : -1]],
            "kinds": _kinds(history),
            "scores": progress.scores._asdict(),
        }

    def _card(self, question: Question) -> Json:
        """Return a row with its reasons, beside the rows most like it."""
        nearest = {"normal": question.nearest_normal, "anomaly": question.nearest_anomaly}
        beside = {
            name: cells_of(self._session.table, row)
            for name, row in nearest.items()
            if row is not None
        }
        cells, scored = [], set()
        for reason in question.reasons:
            name = reason.column
            source = name if name in question.cells else name.rpartition(" (")[0]
            cells.append(_cell(name, source, question.cells, beside, full_number))
            cells[-1] |= {"expected": reason.expectation, "adds": reason.contribution}
            scored.add(source)
        others = (name for name in question.cells if name not in scored)
        cells += [_cell(name, name, question.cells, beside) for name in others]
        return {
            "row": question.row,
            "score": question.score,
            "p_value": question.p_value,
            "place": question.place,
            "why": _WHY.get(question.chosen),
            "cells": cells,
            "beside": {name: row for name, row in nearest.items() if row is not None},
            "answer": question.answer and _answer_json(question.answer),
        }

    # What is asked -------------------------------------------------------------------------------

    def _look(self, body: Json) -> Json:
        return {"card": self._card(self._session.question(self._row(body)))}

    def _rank(self, body: Json) -> Json:
        n = body.get("n")
        if type(n) is not int or not 0 < n <= MAX_RANKED:
            raise UserError(f"A ranking must have 1 to {MAX_RANKED} rows; got {n!r}.")
        lines = [
            {
                "row": line.row,
                "score": line.score,
                "p_value": line.p_value,
                "reasons": [_in_short(reason) for reason in line.reasons[:3]],
                "answer": line.answer and _answer_json(line.answer),
            }
            for line in self._session.ranking(n)
        ]
        return {"ranking": lines}

    def _answer(self, body: Json) -> Json:
        self._take(self._row(body), body, _text(body, "note"))
        return {}

    def _answer_all(self, body: Json) -> Json:
        rows = body.get("rows")
        if not isinstance(rows, list) or not rows or len(rows) > MAX_RANKED:
            raise UserError(f"Answers must be to 1 to {MAX_RANKED} rows.")
        for row in [self._row({"row": row}) for row in rows]:
            self._take(row, body, None)
        return {}

    def _take(self, row: int, body: Json, note: str | None) -> None:
        label = body.get("answer")
        if type(label) is bool or label not in (0, 1, None) or "answer" not in body:
            raise UserError(f"An answer must be 1, 0 or null; got {label!r}.")
        self._session.answer(row, label, kind=_text(body, "kind"), note=note)

    def _undo(self) -> Json:
        last = self._session.undo()
        if last is None:
            raise UserError("There is no answer to undo.")
        return {"card": self._card(self._session.question(last.row))}

    def _export(self) -> Json:
        if self._session.n_rows > MAX_DOWNLOADED:
            raise UserError(
                f"This page can download tables of up to {MAX_DOWNLOADED} rows; this one has "
                f"{self._session.n_rows}. Use fewlier label --export FILE."
            )
        rows = as_given(self._session.table, is_named=True)
        labelled = Labelled.of(rows, self._session.labels)
        name = f"{PurePath(self._name).name.partition('.')[0] or 'table'}.labelled.csv"
        return {
            "file": {"name": name, "text": labelled.to_csv()},
            "said": f"Next: {shown(labelled.advice(quote(name)), MAX_SAID)}",
        }

    def _save(self) -> Json:
        if self._model_path is None:
            raise UserError(
                "The command line must say where to save a model; it does not. Start again with "
                "--model-out FILE: the answers are kept."
            )
        with no_model_if_stopped(self._session):
            self._session.detector.save(self._model_path)
        return {"said": f"The model is in {shown(str(self._model_path), 200)}."}

    def _row(self, body: Json) -> int:
        row = body.get("row")
        if type(row) is not int or not 0 <= row < self._session.n_rows:
            raise UserError(f"A row must be a number below {self._session.n_rows}; got {row!r}.")
        return row


@contextmanager
def no_model_if_stopped(session: Session) -> Iterator[None]:
    """Say so when the program is stopped inside the block, which fits and saves a model."""
    with said_if_stopped(
        lambda: f"stopped; no model was written, and {len(session.history)} answers are kept."
    ):
        yield


def _in_short(reason: Reason) -> str:
    return f"{shown(f'{reason.name} {reason.state}', MAX_REASON)}: {reason.contribution:+.1f}"


def _answer_json(answer: Answer) -> Json:
    kind, note = answer.kind and shown(answer.kind, MAX_TEXT), answer.note
    return {"row": answer.row, "answer": answer.label, "kind": kind, "note": note}


def _kinds(history: Stack) -> list[Json]:
    """Return the kinds that were named, in the order in which they were: their numbers stay."""
    counts = Counter(answer.kind for answer in history if answer.kind is not None)
    return [{"name": name, "n": n} for name, n in counts.items()]


def _cell(
    name: str,
    source: str,
    cells: Row,
    beside: Mapping[str, Row],
    write: Callable[[float], str] = number_text,
) -> Json:
    """Return a column of a row as text, beside that of other rows; None where it is missing."""
    others = {key: _text_of(row.get(source), write) for key, row in beside.items()}
    return {"column": shown(name, 200), "value": _text_of(cells.get(source), write)} | others


def _text_of(cell: Cell, write: Callable[[float], str]) -> str | None:
    return cell and shown(cell, MAX_TEXT) if cell is None or isinstance(cell, str) else write(cell)


def _text(body: Json, name: str) -> str | None:
    text = body.get(name)
    if text is not None and (not isinstance(text, str) or len(text) > MAX_SAID):
        raise UserError(f"A {name} must be a text of at most {MAX_SAID} characters, or null.")
    return (text or "").strip() or None
