"""`Answer`: what somebody said of a row; `Stack`: the answers that stand."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, TypeAlias, final

from fewlier.errors import UserError

Cell: TypeAlias = float | str | None
"""A cell as the user knows it; None where it is missing."""

ANSWERS: dict[str, int | None] = {"anomaly": 1, "normal": 0, "skipped": None}
"""The answers in words, as files and pages have them, and as labels."""
WORDS = {label: word for word, label in ANSWERS.items()}


class RowKey(NamedTuple):
    """Finds a row again in the same table, whatever its order: `hash` of its cells.

    Of rows that are equal, `occurrence` counts those before it.
    """

    hash: str
    occurrence: int


@final
@dataclass(frozen=True)
class Answer:
    """What somebody said of a row, and what was known of it then.

    Parameters
    ----------
    row : int
        Its number in the table, from 0.
    key : RowKey
        Finds it in a table with rows added or in another order.
    label : 1, 0 or None
        Anomaly, normal, or skipped.
    time : str
        When, in UTC, as in ISO 8601.
    cells : mapping
        The row as it was, so that a model can be updated without the table.
    kind, note : str or None
        The kind of the anomaly, if one was named, and whatever else was said.
    score, p_value : float or None
        The row's score and p-value when it was answered, where there were any.
    chosen : str or None
        How the row was chosen (see `Question.chosen`).
    version : str
        The version of fewlier.
    """

    row: int
    key: RowKey
    label: int | None
    time: str
    cells: Mapping[str, Cell]
    kind: str | None = None
    note: str | None = None
    score: float | None = None
    p_value: float | None = None
    chosen: str | None = None
    version: str = ""

    def __post_init__(self) -> None:
        """Refuse what is not an answer."""
        if self.label not in (0, 1, None) or isinstance(self.label, bool):
            raise UserError(
                f"An answer must be 1 (anomaly), 0 (normal) or None (skipped); got {self.label!r}."
            )
        for name, text in (("kind", self.kind), ("note", self.note)):
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise UserError(f"The {name} of an answer must be a text or None; got {text!r}.")
        if self.kind is not None and self.label != 1:
            raise UserError(
                f"Only an anomaly has a kind; got {self.kind!r} with the answer "
                f"{WORDS[self.label]!r}. Leave the kind out."
            )

    @property
    def word(self) -> str:
        """The answer in a word."""
        return WORDS[self.label]

    def at(self, row: int) -> "Answer":
        """Return the answer with the number that its row has in another table."""
        return replace(self, row=row)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values: a line of the file, and what pages are sent."""
        record = asdict(self) | {"answer": self.word, "cells": dict(self.cells)}
        del record["label"], record["key"]
        return record | self.key._asdict()

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Answer":
        """Inverse of `to_json`; `KeyError`, `TypeError` or `UserError` for anything else."""
        fields = dict(record)
        key = RowKey(str(fields.pop("hash")), _count(fields.pop("occurrence")))
        label = ANSWERS[fields.pop("answer")]
        cells = fields.pop("cells")
        _check(isinstance(cells, dict) and all(map(_is_cell, cells.values())))
        _check(all(isinstance(fields[name], str) for name in ("time", "version")))
        _check(all(_is_number(fields[name]) for name in ("score", "p_value")))
        return cls(**fields | {"row": _count(fields["row"])}, key=key, label=label, cells=cells)


Stack: TypeAlias = tuple[Answer, ...]
"""The answers that were given and not taken back, in order."""


def standing(stack: Stack) -> Stack:
    """Return the answers that stand: a later answer to a row replaces the one before."""
    last = {answer.key: place for place, answer in enumerate(stack)}
    return tuple(answer for place, answer in enumerate(stack) if last[answer.key] == place)


def _check(is_right: bool) -> None:
    if not is_right:
        raise TypeError


def _count(value: object) -> int:
    _check(isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    return value  # type: ignore[return-value] # checked above


def _is_cell(value: object) -> bool:
    return isinstance(value, str) or _is_number(value)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
