"""`Question`: a row to judge, and all that helps to judge it. `Progress`: how far the work is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from fewlier.labelling.answers.answer import Answer, Cell
from fewlier.labelling.asking.choice import Histogram
from fewlier.labelling.asking.remaining import Remaining
from fewlier.process import markup
from fewlier.reasons.reason import Reason
from fewlier.table.label_column import listed_counts


@final
@dataclass(frozen=True)
class Question:
    """A row to judge.

    Parameters
    ----------
    number : int
        The number of the question, from 1.
    row : int
        Its number in the table, from 0.
    cells : mapping
        All of its columns as the user knows them, also those that say nothing to the score.
    score : float
        How odd it is by the answers so far, in standard units.
    place : float
        The share of the rows that are less odd.
    chosen : str
        How it was chosen: "oddest", "different" or "by hand".
    reasons : tuple of Reason
        What its columns add to the score, the largest first.
    p_value : float or None
        Of the last full fit; None before the first.
    nearest_normal, nearest_anomaly : int or None
        The rows to compare it with: the nearest one that is normal as far as anybody knows, and
        the nearest known anomaly, if there is one.
    answer : Answer or None
        The answer that stands.
    """

    number: int
    row: int
    cells: Mapping[str, Cell]
    score: float
    place: float
    chosen: str
    reasons: tuple[Reason, ...]
    p_value: float | None = None
    nearest_normal: int | None = None
    nearest_anomaly: int | None = None
    answer: Answer | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON values; reasons also in words."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        reasons = [
            reason.to_json() | {"expectation": reason.expectation} for reason in self.reasons
        ]
        answer = self.answer and self.answer.to_json()
        return own | {"cells": dict(self.cells), "reasons": reasons, "answer": answer}


class Ranked(NamedTuple):
    """A row of the ranking: how odd it is, the answer that stands, and as in `Question`."""

    row: int
    score: float
    answer: Answer | None
    p_value: float | None
    reasons: tuple[Reason, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON values."""
        reasons = [reason.to_json() for reason in self.reasons]
        answer = self.answer and self.answer.to_json()
        return self._asdict() | {"answer": answer, "reasons": reasons}


@final
@dataclass(frozen=True)
class Progress:
    """How far the work is.

    Parameters
    ----------
    asked, found, normal, skipped : int
        Rows with an answer, and how many of them are anomalies, normal, or were skipped.
    known : int
        Labels that were there before.
    curve : tuple of int
        How many anomalies had been found after each answer.
    kinds : mapping
        The kinds that were named, with the number of rows.
    remaining : Remaining or None
        How many anomalies are left, as far as one can tell; None before there is an answer.
    is_fitting : bool
        Whether a full fit is under way.
    has_fit : bool
        Whether one has ended, so that questions have p-values.
    fit_error : str or None
        Why the last one did not end well, if so.
    scores : Histogram
        How odd the rows of the table are.
    """

    asked: int
    found: int
    normal: int
    skipped: int
    known: int
    curve: tuple[int, ...]
    kinds: Mapping[str, int]
    remaining: Remaining | None
    is_fitting: bool
    has_fit: bool
    fit_error: str | None
    scores: Histogram

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return markup.fragment("Labelling", [markup.facts(self._facts())])

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "rows asked", f"{self.asked:,}"
        yield "anomalies found", f"{self.found:,}"
        yield "normal", f"{self.normal:,}"
        yield "skipped", f"{self.skipped:,}"
        if self.known:
            yield "known before", f"{self.known:,}"
        if self.kinds:
            yield "kinds", listed_counts(self.kinds)
        if self.remaining:
            estimate, low, high = self.remaining
            yield "probably left", f"{estimate:.0f} anomalies (90 % interval {low:,} to {high:,})"
        if self.fit_error:
            yield "fit", self.fit_error
        elif self.is_fitting or self.has_fit:
            yield "fit", "under way in the background" if self.is_fitting else "done"

    def to_json(self) -> dict[str, Any]:
        """Return the progress as JSON values."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        remaining = self.remaining and self.remaining._asdict()
        return own | {
            "curve": list(self.curve),
            "kinds": dict(self.kinds),
            "remaining": remaining,
            "scores": self.scores._asdict(),
        }
