"""Facts and figures as one HTML file that runs nothing but its own script."""

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import Any

from fewlier import __version__
from fewlier.atomic import PathLike
from fewlier.decision.drift import Change, Drift
from fewlier.errors import UserError
from fewlier.report.facts import Facts, RowFacts
from fewlier.report.figures import (
    curve_figures,
    lambda_figure,
    p_value_figure,
    reason_figure,
    score_figure,
)
from fewlier.report.thresholds import thresholds
from fewlier.shown import shown
from fewlier.table.writing import write_bytes

MAX_TEXT = 120
"""Characters of a cell or a name that are shown."""
MAX_COLUMNS = 300
"""Columns that the page lists with their kinds."""
MAX_KINDS = 50
"""Kinds of anomalies that the page lists."""
N_CHANGES = 8
"""Changes since training that the page lists."""
SKETCH = (60, 14)
"""Width and height of a sketch, in units of its drawing."""


def write_report(facts: Facts, path: PathLike) -> None:
    """Write the page, whole or not at all."""
    write_bytes(path, render(facts).encode())


def require_extra() -> None:
    """Refuse to go on without the packages that pages are made with."""
    try:
        import jinja2  # noqa: F401 - only whether it is there
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"A report must have matplotlib and jinja2 to be made with; {error.name} is not "
            "installed. Run: pip install 'fewlier[report]'"
        ) from error


def render(facts: Facts) -> str:
    """Return the page: the same facts give the same page."""
    require_extra()
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"count": _count, "percent": _percent, "short": _short}
    template = environment.from_string(_asset("page.html"))
    return template.render(_context(facts))


def _context(facts: Facts) -> dict[str, Any]:
    scores = score_figure(facts)
    lambdas, p_values = lambda_figure(facts), p_value_figure(facts)
    steps = thresholds(facts)
    style, script = _asset("page.css"), _asset("page.js")
    sketched = list(dict.fromkeys(reason.column for row in facts.rows for reason in row.reasons))
    return {
        "facts": facts,
        "summary": facts.summary,
        "n_above": int(facts.is_above.sum()),
        "steps": steps,
        "rows": [_row(row, sketched) for row in facts.rows],
        "sketches": [facts.sketches[name].path(*SKETCH) for name in sketched],
        "kinds": list(facts.summary.kinds.items())[:MAX_COLUMNS],
        "score_svg": scores.svg,
        "reason_svg": reason_figure(facts).svg,
        "curves": [(display, figure.svg) for display, figure in curve_figures(facts)],
        "p_values": p_values and (p_values[0], p_values[1].svg),
        "max_kinds": MAX_KINDS,
        "changes": _changes(facts.drift),
        "impossible": list(facts.n_impossible.items())[:MAX_COLUMNS],
        "lambda_svg": lambdas.svg,
        "data": _json(steps | {"axis": scores.x_axis}),
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        "version": __version__,
    }


def _changes(drift: Drift) -> list[Change]:
    """Return what has changed since training, or what has most where nothing did."""
    return list(drift.found or sorted(drift.changes, key=lambda change: -change.distance))[
        :N_CHANGES
    ]


def _row(row: RowFacts, sketched: list[str]) -> dict[str, Any]:
    largest = max(*(reason.contribution for reason in row.reasons), 1e-9)
    reasons = [
        {
            "column": reason.column,
            "value": reason.value,
            "is_missing": reason.value is None,
            "expected": re.sub(r" (?=\(|%)", "\N{NO-BREAK SPACE}", reason.expectation),
            "share": round(100 * max(reason.contribution, 0) / largest, 1),
            "adds": f"{reason.contribution:+.1f}".replace("-", "−"),
            "sketch": sketched.index(reason.column),
            "mark": None if place is None else round(SKETCH[0] * place, 1),
        }
        for reason, place in zip(row.reasons, row.places, strict=True)
    ]
    return row._asdict() | {"reasons": reasons}


def _asset(name: str) -> str:
    return (files("fewlier.report") / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _json(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element that holds it."""
    return json.dumps(values, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _count(number: int) -> str:
    return f"{number:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _short(value: object) -> str:
    text = f"{value:.5g}" if isinstance(value, float) else str(value)
    return shown(text, MAX_TEXT)
