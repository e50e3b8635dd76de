"""Facts and figures as one HTML file that runs only its own script."""

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import Any

from fewlier import __version__
from fewlier.decision.evaluation import telling
from fewlier.errors import missing_package
from fewlier.files.atomic import PathLike
from fewlier.files.writing import write_bytes
from fewlier.process.escape import number, shown
from fewlier.process.markup import breakable, with_palette
from fewlier.report.facts import Facts, tabulate_thresholds
from fewlier.report.figures import draw, locate_x_axis, make_displays

MAX_TEXT = 120  # characters of a cell or a name
MAX_COLUMNS = 300  # columns that are listed
MAX_KINDS = 50  # kinds of anomalies that are listed
N_CHANGES = 8  # changes since training that are listed
SKETCH = (60, 14)  # width and height of a sketch, in SVG units


def write_report(facts: Facts, path: PathLike) -> None:
    """Write the page, whole or not at all."""
    write_bytes(path, render(facts).encode())


def require_extra() -> None:
    """Raise an error unless the packages that make pages are installed."""
    try:
        import jinja2  # noqa: F401 - only whether it is there
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise missing_package("A report needs matplotlib and jinja2", error, "report") from error


def render(facts: Facts) -> str:
    """Return the page: the same facts give the same page."""
    require_extra()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"count": "{:,}".format, "short": _short, "joined": _joined}
    environment.filters["breakable"] = lambda text: Markup(breakable(text))  # nosec B704 - escaped
    environment.filters["percent"] = lambda share: f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
    template = environment.from_string(_asset("page.html"))
    return template.render(_context(facts))


def _context(facts: Facts) -> dict[str, Any]:
    displays = make_displays(facts)
    figures = {name: draw(display, name) for name, display in displays.items()}
    steps = tabulate_thresholds(facts)
    style, script = with_palette(_asset("page.css")), _asset("page.js")
    changes = facts.drift.found or sorted(facts.drift.changes, key=lambda c: -c.distance)
    return {
        "facts": facts,
        "summary": facts.summary,
        "n_above": int(facts.is_above.sum()),
        "steps": steps,
        "displays": displays,
        "figures": figures,
        "sketch_ids": {name: number for number, name in enumerate(facts.sketches)},
        "sketch_size": SKETCH,
        "columns": list(facts.summary.kinds.items())[:MAX_COLUMNS],
        "by_kind": telling(facts.by_kind)[:MAX_KINDS],
        "changes": changes[:N_CHANGES],
        "impossible": list(facts.n_impossible.items())[:MAX_COLUMNS],
        "data": _json(steps | {"axis": locate_x_axis(displays["scores"])}),
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        "version": __version__,
    }


def _asset(name: str) -> str:
    return (files("fewlier.report") / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _json(values: dict[str, Any]) -> str:
    """Return JSON that cannot end the element it is in."""
    return json.dumps(values, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _short(value: object) -> str:
    text = number(value) if isinstance(value, float) else str(value)
    return shown(text, MAX_TEXT)


def _joined(expectation: str) -> str:
    """Keep a category and its share on one line."""
    return re.sub(r" (?=\(|%)", "\N{NO-BREAK SPACE}", expectation)
