"""How results look in a notebook: HTML without scripts, in the colours of what surrounds it.

All text is escaped here and nowhere else. Text and lines take the colour of the notebook's text,
and nothing has a background, so a fragment can be read in a light theme as in a dark one.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple, NewType

from fewlier.process.escape import shown

Html = NewType("Html", str)
"""A piece of HTML, as opposed to text."""

MAX_TEXT = 120
"""Most characters of a cell or a name."""
MAX_LINES = 300
"""Most lines of a table."""

# The blue of bars stands out from white as it does from black, by a contrast of 4 to 1 or more.
# Notebooks and sites have looks of their own for tables; these must weigh more than theirs.
_STYLE = """\
.fewlier-html { font-size: 0.8125rem; line-height: 1.45; overflow-x: auto; }
.fewlier-html p, .fewlier-html summary { margin: 0.4em 0; }
.fewlier-html .title { font-weight: 600; }
.fewlier-html table.fewlier-table { border-collapse: collapse; margin: 0.4em 0 0.8em; }
.fewlier-html table.fewlier-table tr { background: none !important; }
.fewlier-html table.fewlier-table :is(th, td) { border: 0; padding: 0.15em 1.2em 0.15em 0;
  text-align: left; vertical-align: top; max-width: 40em; overflow-wrap: break-word;
  white-space: normal; }
.fewlier-html table.fewlier-table thead th { border-bottom: 1px solid; white-space: nowrap; }
.fewlier-html table.fewlier-table tbody th { font-weight: 400; opacity: 0.75; }
.fewlier-html table.fewlier-table :is(td.short, td.number) { white-space: nowrap; }
.fewlier-html table.fewlier-table td.long { min-width: 7em; }
.fewlier-html table.fewlier-table td.whole { padding-top: 0.6em; font-weight: 600; }
.fewlier-html td.number { font-variant-numeric: tabular-nums; }
.fewlier-html td.number .figure { display: inline-block; text-align: right; }
.fewlier-html .bar { display: inline-block; height: 0.7em; margin-left: 0.6em;
  background: #3a7fc4; }
"""
_BAR = 5  # length of the longest bar, in ems
_SHORT = 12  # characters of a cell that stay on one line, however narrow the page
# Where a name may be broken over lines: between its words, and after 24 letters of one.
_BREAK = re.compile(r"(?<=[_/.])(?=[^\W\d_])|(?<=\w{24})(?=\w)")


class Bar(NamedTuple):
    """A number as text, and a bar after it, as a share of the longest one."""

    text: str
    share: float


def fragment(title: str, parts: Iterable[Html]) -> Html:
    """Return what a notebook shows: a title, and parts below it."""
    heading = f'<p class="title">{_text(title, 10 * MAX_TEXT)}</p>'
    body = "\n".join([f"<style>{_STYLE}</style>", heading, *parts])
    return Html(f'<div class="fewlier-html">\n{body}\n</div>')


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return lines of a name and what there is to say of it."""
    lines = (
        f"<tr><th>{_text(name)}</th><td>{breakable(shown(text, 10 * MAX_TEXT))}</td></tr>"
        for name, text in pairs
    )
    return _table(lines)


def table(header: Sequence[str], lines: Iterable[Sequence[str | Bar]]) -> Html:
    """Return lines of cells below a header; of very many the first, and how many more there are.

    A line of one cell stands above those that follow, over the whole width.
    """
    found = list(lines)
    figures = (cell.text for line in found[:MAX_LINES] for cell in line if isinstance(cell, Bar))
    longest = max(map(len, figures), default=0)  # bars begin at the same place
    whole = f'<td class="whole" colspan="{len(header)}">'
    rows = [
        f"{whole}{breakable(shown(str(line[0]), MAX_TEXT))}</td>"
        if len(line) < len(header)
        else "".join(_cell(cell, longest) for cell in line)
        for line in found[:MAX_LINES]
    ]
    if len(found) > MAX_LINES:
        rows.append(f"{whole}and {len(found) - MAX_LINES:,} more</td>")
    heading = "".join(f"<th>{_text(name)}</th>" for name in header)
    return _table((f"<tr>{row}</tr>" for row in rows), f"<thead><tr>{heading}</tr></thead>")


def folded(title: str, part: Html) -> Html:
    """Return a part that is shown when its title is clicked."""
    return Html(f"<details><summary>{_text(title)}</summary>\n{part}\n</details>")


def with_palette(style: str) -> str:
    """Put the colours that pages share into a style sheet, in place of ``/* palette */``."""
    colours = (files("fewlier.process") / "palette.css").read_text("utf-8")
    return style.replace("/* palette */", colours.strip())


def breakable(text: str) -> Html:
    """Return text that may be broken over lines between the words of a name."""
    return Html(_BREAK.sub("<wbr/>", escape(text)))


def _table(lines: Iterable[str], heading: str = "") -> Html:
    body = "\n".join(lines)
    # The class keeps away the looks that sites give to tables without one.
    return Html(f'<table class="fewlier-table">{heading}<tbody>\n{body}\n</tbody></table>')


def _cell(cell: str | Bar, longest: int) -> str:
    if isinstance(cell, str):
        length = "short" if len(cell) <= _SHORT else "long"
        return f'<td class="{length}">{breakable(shown(cell, MAX_TEXT))}</td>'
    figure = f'<span class="figure" style="min-width: {min(longest, MAX_TEXT)}ch">'
    width = f"{_BAR * min(max(cell.share, 0.0), 1.0):.2f}em"
    bar = f'<span class="bar" style="width: {width}"></span>'
    return f'<td class="number">{figure}{_text(cell.text)}</span>{bar}</td>'


def _text(text: str, most: int = MAX_TEXT) -> str:
    return escape(shown(text, most))
