"""What a table holds, and what a fit would make of it, as data that `fewlier check` shows."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from fewlier.errors import UserError, noting
from fewlier.files.reading import TableFile, naming
from fewlier.table.cells import Cells, is_text
from fewlier.table.cells import missing as missing_cells
from fewlier.table.columns import Column, Kind
from fewlier.table.declarations import IGNORE, StandIns
from fewlier.table.findings import Finding, Topic, find, notes_on
from fewlier.table.frame import Table
from fewlier.table.inference import IGNORED, find_columns
from fewlier.table.label_column import LabelColumn, LabelReader
from fewlier.table.labels import ANOMALY, WORDS, Labels, check_enough, read_labels
from fewlier.table.numbers import PLAIN
from fewlier.table.schema import LEFT_OUT, Schema

REFUSED = "refused"
_LABEL_NAMES = frozenset(
    {"anomaly", "attack", "class", "fraud", "is_anomaly", "is_fraud", "label", "outlier", "target"}
)
_WHY = {
    Kind.REAL: "numbers",
    Kind.BINARY: "two different numbers",
    Kind.COUNT: "integers from 0 or 1 on that scatter as counts do",
    Kind.POSITIVE: "numbers >= 0 with a long right tail",
}


@final
@dataclass(frozen=True)
class ColumnCheck:
    """One column: the kind that a fit would give it and why, its missing cells, and remarks."""

    name: str
    kind: str
    why: str
    n_missing: int
    remarks: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class LabelCheck:
    """What a label column holds: rows of each value and of each meaning, and remarks."""

    name: str
    values: dict[str, int]
    meanings: dict[str, int]
    remarks: tuple[str, ...]
    problem: str = ""


@final
@dataclass(frozen=True)
class TableCheck:
    """Everything about a table at once.

    Attributes
    ----------
    n_rows, n_repeated : int
        Rows, and rows that repeat an earlier one in every column that a fit learns from.
    columns : tuple of ColumnCheck
        The columns but the label.
    notes : tuple of str
        What to look at before a fit, one line for each topic, which names the columns; what was
        found in a column is among its remarks.
    label : LabelCheck or None
        The label column, if there is one.
    seconds : float
        Roughly how long a fit takes.
    declarations : dict of str to str
        What to declare of columns, so that a fit refuses and leaves out none of them unasked.
    readings : dict of str to pair of str
        For a column that may be read in two ways, the text that declares each. `declarations` has
        the first.
    too_few : str
        Why these rows are too few for a fit; empty if they are not.
    """

    n_rows: int
    n_repeated: int
    columns: tuple[ColumnCheck, ...]
    notes: tuple[str, ...]
    label: LabelCheck | None
    seconds: float
    declarations: dict[str, str]
    readings: dict[str, tuple[str, str]]
    too_few: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """What a fit would refuse."""
        refused = [column.why for column in self.columns if column.kind == REFUSED]
        nothing = "" if self._has_columns else "No column is left to learn from."
        others = nothing, self.label.problem if self.label else "", self.too_few
        return (*refused, *filter(None, others))

    @property
    def is_hopeless(self) -> bool:
        """Whether a fit needs more than other options."""
        return bool(self.too_few) or not self._has_columns

    @property
    def _has_columns(self) -> bool:
        """Whether a column is left to learn from, once its reading is declared."""
        unusable = (REFUSED, LEFT_OUT)
        return any(c.kind not in unusable or c.name in self.readings for c in self.columns)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self) | {"problems": list(self.problems)}


def check_table(
    rows: object,
    columns: Mapping[str, str] | None = None,
    label: LabelColumn | None = None,
    label_cells: Sequence[object] = (),
    missing: object = None,
) -> TableCheck:
    """Find out what a table holds, and what a fit would make of it.

    Parameters
    ----------
    rows : DataFrame or array
        The rows without their labels.
    columns : mapping of str to str, or None
        What is declared of columns, as for `AnomalyDetector`.
    label, label_cells : LabelColumn or None, sequence
        The label column, and what it holds.
    missing : number, str, several, or mapping of columns to these
        What stands for missing cells, as for `AnomalyDetector`.

    Examples
    --------
    >>> import pandas as pd
    >>> from fewlier.fitting.check import check_table
    >>> rows = pd.DataFrame({"paid": [f"{n}.50 EUR" for n in range(100)], "till": [1, 2] * 50})
    >>> [(column.name, column.kind) for column in check_table(rows).columns]
    [('paid', 'real'), ('till', 'binary')]
    """
    declared = dict(columns or {})
    ignored = [name for name, said in declared.items() if said == IGNORE]
    problems: dict[str, UserError] = {}
    stand_ins = StandIns.read(missing)
    table = Table.of(rows, ignore=ignored, problems=problems).without(stand_ins.of)
    found, codes = (None, None) if label is None else _check_labels(label, label_cells)
    is_normal = None if codes is None else codes != ANOMALY
    schema = find_columns(table, declared, is_normal, problems, stand_ins=stand_ins)
    labels = read_labels(None, table.n_rows) if codes is None else codes
    is_usable = bool(schema.columns and table.n_rows)
    read = schema.match(table.select(schema.sources)) if is_usable else None
    findings = find(read, schema, labels) if read else ()
    checks = _check_columns(table, schema, problems, findings, is_labelled=label is not None)
    too_few: dict[str, UserError] = {}
    with noting(too_few, ""):
        check_enough(labels)
    ids = np.arange(table.n_rows) if read is None else read.ids()
    return TableCheck(
        table.n_rows,
        table.n_rows - len(np.unique(ids)),
        tuple(checks),
        notes_on(findings, with_found=False),
        found,
        rough_seconds(table.n_rows, len(schema.columns)),
        _declarations(declared, checks, findings, problems),
        {n: error.readings for n, error in problems.items() if error.readings},
        str(too_few.get("", "")),
    )


def check_file(
    file: TableFile,
    label: LabelColumn | None,
    columns: Mapping[str, str] | None = None,
    missing: object = None,
) -> TableCheck:
    """Find out what a file holds, and what a fit would make of it."""
    with naming(file.name):
        if label is not None:
            label.check(file.columns)
    rows = file.whole().rows
    with naming(file.name):
        cells = rows[label.name].to_pylist() if label else ()
        features = file.features(label and label.name)
        return check_table(rows.select(features), columns, label, cells, missing)


def rough_seconds(n_rows: int, n_columns: int) -> float:
    """Return roughly how long a default fit takes on two cores: 1.4 s for 5,000 x 20.

    Training takes longer the more columns there are, and no longer from 5,000 rows on; reading
    rows takes longer the more cells there are.
    """
    training = 1.1 * min(n_rows / 5000, 1.0) * (0.5 + n_columns / 40)
    return 0.3 + training + 3.5e-7 * n_rows * n_columns


def _check_labels(label: LabelColumn, cells: Sequence[object]) -> tuple[LabelCheck, Any]:
    """Return what a label column holds, and the codes of its rows if they can be read."""
    reader = LabelReader(label)
    try:
        labels: Labels = reader.read(reader.add(cells))
    except UserError as error:
        return LabelCheck(label.name, reader.counts, {}, (), str(error)), None
    meanings = {word: int((labels.codes == code).sum()) for code, word in WORDS.items()}
    remarks = (*labels.notes, *labels.doubts)
    return LabelCheck(label.name, reader.counts, meanings, remarks), labels.codes


def _check_columns(
    table: Table,
    schema: Schema,
    problems: Mapping[str, UserError],
    findings: Sequence[Finding],
    *,
    is_labelled: bool,
) -> list[ColumnCheck]:
    left_out = {left.name: left.reason for left in schema.left_out}
    checks = []
    for name in dict.fromkeys([*table.names, *problems]):
        cells = table.cells.get(name, np.zeros(0))
        remarks: list[str] = []
        if name in problems:
            kind, why = REFUSED, str(problems[name])
        elif name in left_out:
            kind, why = LEFT_OUT, left_out[name]
        else:
            made = [column for column in schema.columns if column.source == name]
            kind, why, remarks = _describe(made, cells)
            found = [finding.remark for finding in findings if finding.column == name]
            if found and (made[0].is_constant or made[0].is_empty):
                why, remarks = "", []  # which is true of normal rows alone
            remarks += found
            if not is_labelled and name.lower() in _LABEL_NAMES:
                remarks.append("may be the label")
        n_missing = 0 if why == IGNORED else int(missing_cells(cells).sum())  # it was not looked at
        checks.append(ColumnCheck(name, kind, why, n_missing, tuple(remarks)))
    return checks


def _describe(columns: list[Column], cells: Cells) -> tuple[str, str, list[str]]:
    """Return the kind of a user's column, the reason for it, and remarks."""
    column = columns[0]
    if column.date is not None:
        parts = ", ".join(part.date.aspect.value for part in columns if part.date)
        return "date", f"dates written as {column.date.form}; read as {parts}", []
    if column.is_empty:
        return column.description, "no cell has a value", ["a value here will count as odd"]
    values, unread = column.conform(cells)
    why = _why(column, values) + (f", written like {column.form}" if column.form != PLAIN else "")
    remarks = _alike(values) if is_text(values) else []
    if unread is not None:
        remarks.append(f"cells in another form count as missing: {unread.n}, as {unread.text!r}")
    return column.description, why, remarks


def _why(column: Column, values: Cells) -> str:
    if column.is_constant:
        return f"always {column.levels[0]}"
    n_distinct = len(set(values[~missing_cells(values)].tolist()))
    if column.kind is Kind.CATEGORY:
        return f"text with {n_distinct} values"
    if column.hardly_varies:
        return f"nearly always {column.levels[0]}"
    if column.coding is Kind.CATEGORY:
        return f"integers >= 0 with {n_distinct} values, each seen often"
    return _WHY[column.kind]


def _alike(values: Cells) -> list[str]:
    """Say which texts may be one category in two spellings."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for text in Counter(values[~missing_cells(values)]):
        spellings[text.strip().casefold()].append(text)
    several = (texts[:3] for texts in spellings.values() if len(texts) > 1)
    return [f"{' and '.join(map(repr, texts))} may be the same" for texts in several]


def _declarations(
    declared: Mapping[str, str],
    checks: Sequence[ColumnCheck],
    findings: Sequence[Finding],
    problems: Mapping[str, UserError],
) -> dict[str, str]:
    """Return what is declared and fits, and what settles the rest; numbers of rows are left out."""
    found = {f.column: IGNORE for f in findings if f.topic is Topic.NUMBERING}
    found |= {name: said for name, said in declared.items() if name not in problems}
    for check in checks:
        problem = problems.get(check.name)
        if problem and problem.readings:
            found[check.name] = problem.readings[0]
        elif check.kind == LEFT_OUT or (problem and check.name not in declared):
            found[check.name] = IGNORE
    return found
