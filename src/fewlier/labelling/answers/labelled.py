"""The table with its labels, to fit from."""

import tempfile
from itertools import count
from pathlib import Path
from typing import NamedTuple, final

import pyarrow as pa

from fewlier.files.writing import create_table
from fewlier.table.labels import UNLABELLED, WORDS, Labels


@final
class Labelled(NamedTuple):
    """A table with one more column, which holds the labels.

    Where anomalies have kinds the labels are words: "normal", and the kinds; else 1 and 0. They are
    missing where nothing is known.
    """

    rows: pa.Table
    label: str
    has_kinds: bool

    @classmethod
    def of(cls, rows: pa.Table, labels: Labels) -> "Labelled":
        """Put labels beside a table."""
        names = (f"label_{n}" if n else "label" for n in count())
        name = next(name for name in names if name not in rows.column_names)
        codes = labels.codes.tolist()
        if labels.kinds:
            cells = [
                None if code == UNLABELLED else labels.kind(row) or WORDS[code]
                for row, code in enumerate(codes)
            ]
        else:
            cells = [None if code == UNLABELLED else str(code) for code in codes]
        rows = rows.append_column(name, pa.array(cells, pa.string()))
        return cls(rows, name, bool(labels.kinds))

    def advice(self, path: str) -> str:
        """Return the command that fits to the table, once it is at a path."""
        normal = f" --normal {WORDS[0]}" if self.has_kinds else ""
        return f"fewlier fit {path} --label {self.label}{normal} -o model.fewlier"

    def to_csv(self) -> str:
        """Return the table as text."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "labelled.csv"
            with create_table(path) as write:
                write(self.rows)
            return path.read_text("utf-8")
