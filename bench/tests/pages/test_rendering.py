import csv
import io

from rich.console import Console

from fewlier_bench.pages.printed import AVERAGE, PrintedColumn, PrintedTable, Value
from fewlier_bench.pages.rendering import fold, print_table, to_csv, to_folded, to_markdown

SMALL = PrintedTable(
    "small",
    "A title",
    "the paper",
    ("A_B", AVERAGE),
    (
        PrintedColumn("one", (Value(0.8614, 0.839, is_bold=True), Value(0.5, 0.6))),
        PrintedColumn("two †", (Value(None, 0.7), Value(0.12344, 0.12349))),
    ),
    ("50 % & more",),
)


def test_markdown():
    assert to_markdown(SMALL) == (
        "**A title**; in brackets the paper's, and the difference.\n\n"
        "|  | one | two † |\n"
        "| --- | ---: | ---: |\n"
        "| A_B | **0.861** (0.839, +0.022) | – (0.700) |\n"
        "| *average* | 0.500 (0.600, −0.100) | 0.123 (0.123, +0.000) |\n\n"
        "- 50 % & more\n"
    )


def test_a_folded_table_has_its_title_as_the_summary():
    body = to_markdown(SMALL).split("\n\n", 1)[1]
    summary = "A title; in brackets the paper's, and the difference."
    assert to_folded(SMALL) == fold(summary, body)
    assert fold("p < 0.05", "- one\n") == (
        '<details markdown="1">\n<summary>p &lt; 0.05</summary>\n\n- one\n\n</details>\n'
    )


def test_csv_has_one_line_per_cell():
    rows = list(csv.DictReader(io.StringIO(to_csv(SMALL))))
    assert len(rows) == 4
    assert rows[0] == {
        "row": "A_B",
        "column": "one",
        "value": "0.8614",
        "bold": "1",
        "the paper": "0.839",
        "difference": "0.0224",
    }
    assert rows[1]["value"] == rows[1]["difference"] == ""


def test_a_terminal_shows_bold_values_as_such_and_headings_as_they_are():
    file = io.StringIO()
    print_table(
        SMALL, "Title [bold]", Console(file=file, width=80, markup=False, force_terminal=True)
    )
    assert "\x1b[1m.861\x1b[0m +.022" in file.getvalue()
    assert "Title [bold]" in file.getvalue()
