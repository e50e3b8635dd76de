"""The figures of a page, as SVG that takes its colours and fonts from the page."""

import io
import re
import warnings
from importlib.resources import as_file, files

import numpy as np

from fewlier.report.facts import Facts
from fewlier.report.plots import CurveDisplay, PValueDisplay, ReasonDisplay, ScoreDisplay
from fewlier.report.plots.base import Display
from fewlier.report.plots.rates import CurveKind
from fewlier.table.labels import NORMAL

WIDTH, HEIGHT = 5.2, 3.5  # inches of 72 points

ALT = {
    "scores": "Histogram of the anomaly scores, with the threshold.",
    "columns": "Bars: how much each column adds to the score on average, the largest first.",
    "roc": "ROC curve with a 95 % band.",
    "precision_recall": "Precision-recall curve with a 95 % band.",
    "p_values": "Share of rows with a p-value up to each value, compared with the diagonal.",
}
"""What each figure shows, for those who cannot see it."""


def make_displays(facts: Facts) -> dict[str, Display]:
    """Return the figures by name; curves and p-values only where rows have the labels for them."""
    threshold, labels = facts.calibration.threshold, facts.labels
    codes = None if labels is None else labels.codes
    is_above = np.full(len(facts.flagged.score), bool(facts.is_above.any()))
    found: dict[str, Display] = {
        "scores": ScoreDisplay(
            scores=facts.scores, threshold=threshold, unit=facts.summary.unit, labels=codes
        ),
        "columns": ReasonDisplay.from_mean(facts.flagged, is_above),
    }
    normal, what = facts.scores, "all rows"
    if labels is not None:
        what = f"rows {'labelled normal' if labels.has_normals else 'without a label'}"
        normal = facts.scores[labels.compared == NORMAL]
        if facts.has_both_labels:
            kinds: tuple[CurveKind, ...] = ("roc", "precision_recall")
            for kind in kinds:
                found[kind] = CurveDisplay(facts.scores, labels.compared, kind, threshold)
    if len(normal):
        n = len(facts.calibration.normal_scores)
        p_values = facts.calibration.p_value(normal)
        found["p_values"] = PValueDisplay(p_values=p_values, n_held_out=n, what=what)
    return found


def draw(display: Display, name: str) -> str:
    """Return a figure as SVG, in which every id starts with its name."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    file, height = io.StringIO(), HEIGHT
    if isinstance(display, ReasonDisplay):
        height = 0.9 + 0.25 * len(display.names)
    style = files("fewlier.report") / "page.mplstyle"
    with as_file(style) as path, mpl.rc_context(fname=path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has other fonts
        figure = Figure((WIDTH, height), layout="constrained")  # without pyplot's global state
        display.plot(figure.subplots())
        if isinstance(display, ScoreDisplay):  # the page moves this line and shows its value
            display.threshold_line_.set_gid("threshold")
            display.threshold_text_.set_text("threshold")
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _inline(file.getvalue(), name)


def locate_x_axis(display: Display) -> dict[str, float]:
    """Return the limits of the x axis of a drawn figure, and where they are in the drawing."""
    box, (low, high) = display.ax_.get_position(), display.ax_.get_xlim()
    width = 72 * WIDTH
    return {"low": low, "high": high, "left": width * box.x0, "right": width * box.x1}


def _inline(svg: str, name: str) -> str:
    """Return a drawing as part of a page: with its own ids, without styles its policy forbids."""
    (height,) = re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)
    body = re.sub(r"<(metadata|style).*?</\1>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # Text has its angle brackets escaped, so whatever is between two of them is a tag.
    body = re.sub(r"<[^>]+>", lambda tag: _adapt_tag(tag[0], name), body[body.index(">") + 1 :])
    box = f"0 0 {72 * WIDTH:g} {height}"
    return f'<svg viewBox="{box}" role="img" aria-label="{ALT[name]}">{body.strip()}'


def _adapt_tag(tag: str, name: str) -> str:
    tag = re.sub(r' id="', f' id="{name}-', tag)
    tag = re.sub(r'(xlink:)?href="#', f'href="#{name}-', tag)
    tag = tag.replace("url(#", f"url(#{name}-")
    tag = re.sub(r' style="([^"]*)"', lambda style: _as_attributes(style[1]), tag)
    tag = tag.replace("#0000e0", "var(--ink)").replace("#0000e1", "var(--line)")
    return re.sub(r"#0000f(\d)", r"var(--series-\1)", tag)


def _as_attributes(style: str) -> str:
    """Turn the declarations of a style into SVG attributes; the page sets the font."""
    pairs = re.findall(r"([\w-]+):\s*([^;]+)", style)
    return "".join(f' {key}="{value.strip()}"' for key, value in pairs if key != "font-family")
