"""Several people's answers as one file, and what they disagree on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fewlier.errors import UserError
from fewlier.files.atomic import PathLike, replacing
from fewlier.labelling.answers.answer import Answer, RowKey, Stack, standing
from fewlier.labelling.answers.journal import as_lines, read_answers
from fewlier.process.escape import list_names


class Conflict(NamedTuple):
    """A row with different answers, by file: of another label, or of another kind."""

    row: int
    answers: Mapping[str, Answer]

    def __str__(self) -> str:
        """Return the conflict in words, such as ``row 17: fraud (a.jsonl), normal (b.jsonl)``."""
        said = (f"{answer.kind or answer.word} ({name})" for name, answer in self.answers.items())
        return f"row {self.row}: {', '.join(said)}"

    def to_json(self) -> dict[str, Any]:
        """Return the conflict as JSON values."""
        return {"row": self.row, "answers": {n: a.to_json() for n, a in self.answers.items()}}


class Merged(NamedTuple):
    """The answers of several files in the order of their times, and the rows in conflict."""

    columns: Sequence[str]
    answers: Stack
    conflicts: tuple[Conflict, ...]

    def write(self, path: PathLike) -> None:
        """Write a file of answers, whole or not at all."""
        with replacing(path) as file:
            file.write(as_lines(self.columns, self.answers))


def merge(paths: Sequence[PathLike]) -> Merged:
    """Merge the answers that stand in several files about one table.

    The last answer to a row counts. A skipped row says nothing against an answer. Rows that were
    called an anomaly in one file and normal in another are left out, so that they are asked again;
    rows of different kinds keep the last one named. Both are listed as conflicts.
    """
    files = {str(path): read_answers(path) for path in paths}
    (first, columns), *others = ((name, found.columns) for name, found in files.items())
    for name, more in others:
        if different := set(columns) ^ set(more):
            raise UserError(
                f"{name}: files of answers to merge must be about one table; its columns "
                f"differ from those of {first} in {list_names(sorted(different))}. Merge others."
            )
    by_row: dict[RowKey, dict[str, Answer]] = defaultdict(dict)
    for name, found in files.items():
        for answer in standing(found.stack):
            by_row[answer.key][name] = answer
    kept, conflicts = [], []
    for answers in by_row.values():
        said = {name: a for name, a in answers.items() if a.label is not None} or answers
        labels = {answer.label for answer in said.values()}
        named = [answer for answer in said.values() if answer.kind] or [*said.values()]
        last = max(named, key=lambda answer: answer.time)
        if len(labels) > 1 or len({answer.kind for answer in named}) > 1:
            conflicts.append(Conflict(last.row, said))
        if len(labels) == 1:
            kept.append(last)
    kept.sort(key=lambda answer: answer.time)
    return Merged(columns, tuple(kept), tuple(conflicts))
