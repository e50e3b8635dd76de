"""Printed tables as Markdown, as CSV, and on a terminal."""

import csv
from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from math import ceil

from rich.console import Console
from rich.table import Table as TextTable
from rich.text import Text

from fewlier_bench.pages.printed import AVERAGE, PrintedColumn, PrintedTable, Value

GAP = "–"
_WIDEST_NAME = len("Cardiotocography")
_WIDEST_CELL = len(".861 +.022")


def to_markdown(table: PrintedTable) -> str:
    """Return the title, the table with cells such as ``**0.861** (0.839, +0.022)``, and notes."""
    return f"**{table.title}**{_compared(table)}\n\n{_body(table)}"


def to_folded(table: PrintedTable) -> str:
    """Return the same behind its title, for readers who want it."""
    return fold(f"{table.title}{_compared(table)}", _body(table))


def fold(summary: str, content: str) -> str:
    """Return Markdown that shows only its summary until a reader opens it."""
    opening = f'<details markdown="1">\n<summary>{escape(summary, quote=False)}</summary>'
    return f"{opening}\n\n{content.strip()}\n\n</details>\n"


def _compared(table: PrintedTable) -> str:
    return f"; in brackets {table.compared}." if table.reference else ""


def _body(table: PrintedTable) -> str:
    lines = [
        _line(["", *(column.heading for column in table.columns)]),
        _line(["---", *["---:"] * len(table.columns)]),
    ]
    for row, name in enumerate(table.rows):
        cells = [_markdown_cell(column, column.values[row]) for column in table.columns]
        lines.append(_line([f"*{name}*" if name == AVERAGE else name, *cells]))
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([*lines, "", *notes] if notes else lines) + "\n"


def to_csv(table: PrintedTable) -> str:
    """Return one line per cell: row, column, value, whether it is bold, reference, difference."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("row", "column", "value", "bold", table.reference, "difference"))
    for row, name in enumerate(table.rows):
        for column in table.columns:
            value = column.values[row]
            numbers = (value.ours, value.reference, value.difference)
            ours, reference, difference = ("" if n is None else f"{n:.6g}" for n in numbers)
            is_bold = int(value.is_bold)
            writer.writerow((name, column.heading, ours, is_bold, reference, difference))
    return file.getvalue()


def to_list(lines: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "".join(f"- {line}\n" for line in lines)


def print_table(table: PrintedTable, title: str, console: Console) -> None:
    """Print a table and its notes; columns that do not fit side by side are printed in blocks."""
    console.print(f"\n{title}", highlight=False)
    most = max(1, (console.width - _WIDEST_NAME) // (_WIDEST_CELL + 1))
    n_blocks = ceil(len(table.columns) / most)
    per_block = ceil(len(table.columns) / n_blocks)
    for start in range(0, len(table.columns), per_block):
        console.print(_terminal(table.rows, table.columns[start : start + per_block]))
    for note in table.notes:
        console.print(note, highlight=False, markup=False)


def _terminal(rows: Sequence[str], columns: Sequence[PrintedColumn]) -> TextTable:
    grid = TextTable(box=None, pad_edge=False, padding=(0, 0, 0, 1))
    grid.add_column("")
    for column in columns:
        grid.add_column(column.heading, justify="right", no_wrap=True)
    for row, name in enumerate(rows):
        grid.add_row(name, *(_terminal_cell(column, column.values[row]) for column in columns))
    return grid


def _terminal_cell(column: PrintedColumn, value: Value) -> Text:
    if value.ours is None:
        return Text(GAP)
    if not column.has_difference:
        return Text(_markdown_cell(column, value))
    ours = f"{value.ours:.3f}".removeprefix("0")
    difference = "" if value.difference is None else f" {value.difference:+z.3f}"
    short = difference.replace("+0.", "+.").replace("-0.", "-.")
    return Text.assemble((ours, "bold" if value.is_bold else ""), short)


def _markdown_cell(column: PrintedColumn, value: Value) -> str:
    ours, reference, difference = _texts(column, value)
    ours = f"**{ours}**" if value.is_bold else ours
    compared = ", ".join(text for text in (reference, difference) if text)
    return f"{ours} ({compared})" if compared else ours


def _texts(column: PrintedColumn, value: Value) -> tuple[str, str, str]:
    """Return the value, the reference and the difference, as they are shown."""
    ours, reference = (
        "" if number is None else f"{number:z.{column.digits}f}"
        for number in (value.ours, value.reference)
    )
    difference = value.difference if column.has_difference else None
    signed = "" if difference is None else f"{difference:+z.{column.digits}f}"
    return ours or GAP, reference, signed.replace("-", "−")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
