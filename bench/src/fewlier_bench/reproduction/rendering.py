"""Tables as Markdown, CSV, LaTeX, and on a terminal."""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from math import ceil

from rich.console import Console
from rich.table import Table as Grid

from fewlier_bench.reproduction.experiments import METHODS
from fewlier_bench.reproduction.published import published_datasets, setting_datasets
from fewlier_bench.reproduction.tables import AVERAGE, Column, Table, Value, auc_table, times_table
from fewlier_bench.runs.results import Result

GAP = "–"
_WIDEST_NAME = len("Cardiotocography")
_WIDEST_CELL = len(".861 +.022")


def to_markdown(table: Table) -> str:
    """Return the table with cells such as ``**0.861** (0.839, +0.022)``, and its notes below."""
    lines = [
        f"**{table.title}**" + (f"; in brackets {table.compared}." if table.reference else ""),
        "",
        _line(["", *(column.heading for column in table.columns)]),
        _line(["---", *["---:"] * len(table.columns)]),
    ]
    for row, name in enumerate(table.rows):
        cells = [_markdown_cell(column, column.values[row]) for column in table.columns]
        lines.append(_line([f"*{name}*" if name == AVERAGE else name, *cells]))
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([*lines, "", *notes] if notes else lines) + "\n"


def to_csv(table: Table) -> str:
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


def to_latex(table: Table) -> str:
    """Return the table for LaTeX with the package booktabs.

    Each row has three lines: the value, the reference, and the difference.
    """
    headings = " & ".join(_latex(column.heading) for column in table.columns)
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{_latex(table.title)}; below it {_latex(table.compared)}. "
        rf"{_latex(' '.join(table.notes))}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        rf" & {headings} \\",
        r"\midrule",
    ]
    for row, name in enumerate(table.rows):
        if name == AVERAGE:
            lines.append(r"\midrule")
        lines += _latex_rows(name, [(column, column.values[row]) for column in table.columns])
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]) + "\n"


def print_tables(
    results: Sequence[Result], ks: Sequence[int], console: Console | None = None
) -> None:
    """Print, for each k, the mean AUC of each method on each table and its difference to the paper.

    Only tables and methods with results are shown.
    """
    console = console or Console()
    found = _datasets(results)
    methods = {row.method for row in results}
    shown = [method for method in METHODS if method in methods]
    for k in ks:
        datasets = [name for name in found if name in setting_datasets(k)]
        if not (datasets and methods):
            continue
        table = auc_table(results, k, f"k_{k}", shown, datasets)
        print_table(table, f"{table.title}, and the difference to the paper:", console)


def print_table(table: Table, title: str, console: Console) -> None:
    """Print a table and its notes; columns that do not fit beside each other come in blocks."""
    console.print(f"\n{title}", highlight=False)
    most = max(1, (console.width - _WIDEST_NAME) // (_WIDEST_CELL + 1))
    n_blocks = ceil(len(table.columns) / most)
    per_block = ceil(len(table.columns) / n_blocks)
    for start in range(0, len(table.columns), per_block):
        console.print(_terminal(table.rows, table.columns[start : start + per_block]))
    for note in table.notes:
        console.print(note, highlight=False, markup=False)


def print_times(times: Sequence[Result], console: Console | None = None) -> None:
    """Print the seconds of one training on each table that has them, and the paper's."""
    console = console or Console()
    table = times_table(times, _datasets(times))
    console.print(f"\n{table.title}; in brackets {table.compared}:", highlight=False)
    console.print(_terminal(table.rows, table.columns))


def _datasets(results: Sequence[Result]) -> list[str]:
    """Return the tables that there are results of, in the paper's order."""
    found = {row.dataset for row in results}
    return [name for name in published_datasets() if name in found]


def _terminal(rows: Sequence[str], columns: Sequence[Column]) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 0, 0, 1))
    grid.add_column("")
    for column in columns:
        grid.add_column(column.heading, justify="right", no_wrap=True)
    for row, name in enumerate(rows):
        grid.add_row(name, *(_terminal_cell(column, column.values[row]) for column in columns))
    return grid


def _terminal_cell(column: Column, value: Value) -> str:
    if value.ours is None:
        return GAP
    if not column.has_difference:
        return _markdown_cell(column, value)
    ours = f"{value.ours:.3f}".removeprefix("0")
    ours = f"[bold]{ours}[/bold]" if value.is_bold else ours
    if value.difference is None:
        return ours
    return f"{ours} {value.difference:+z.3f}".replace("+0.", "+.").replace("-0.", "-.")


def _markdown_cell(column: Column, value: Value) -> str:
    ours, reference, difference = _texts(column, value)
    ours = f"**{ours}**" if value.is_bold else ours
    compared = ", ".join(text for text in (reference, difference) if text)
    return f"{ours} ({compared})" if compared else ours


def _latex_rows(name: str, cells: Sequence[tuple[Column, Value]]) -> Iterator[str]:
    texts = [_texts(column, value) for column, value in cells]
    ours = [
        rf"\textbf{{{text}}}" if value.is_bold else text.replace(GAP, "--")
        for (text, _, _), (_, value) in zip(texts, cells, strict=True)
    ]
    yield rf"{_latex(name)} & {' & '.join(ours)} \\"
    for part in (1, 2):
        line = [rf"\scriptsize {_latex(text[part])}" if text[part] else "" for text in texts]
        if any(line):
            yield rf" & {' & '.join(line)} \\"


def _texts(column: Column, value: Value) -> tuple[str, str, str]:
    """Return the value, the reference and the difference, as they are shown."""
    ours, reference = (
        "" if number is None else f"{number:.{column.digits}f}"
        for number in (value.ours, value.reference)
    )
    difference = value.difference if column.has_difference else None
    signed = "" if difference is None else f"{difference:+z.{column.digits}f}"
    return ours or GAP, reference, signed.replace("-", "−")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(text: str) -> str:
    for plain, escaped in (
        ("\\", r"\textbackslash "),
        *((sign, f"\\{sign}") for sign in "&%$#_{}"),
        ("†", r"$^\dagger$"),
        ("–", "--"),
        ("−", "$-$"),
    ):
        text = text.replace(plain, escaped)
    return text
