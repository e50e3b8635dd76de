"""Displays as SVG that takes its colours and fonts from the page."""

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from fewlier.plot import CurveDisplay, LambdaDisplay, PValueDisplay, ReasonDisplay, ScoreDisplay
from fewlier.plot.curves import CurveKind
from fewlier.report.facts import Facts
from fewlier.table.labels import NORMAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WIDTH, HEIGHT = 5.2, 3.5  # inches of 72 points

# Matplotlib needs colours that are none of the page's; each stands for a variable of its style.
_INK, _FAINT = "#0000e0", "#0000e1"
_SERIES = [f"#0000f{i}" for i in range(8)]
_VARIABLES = {_INK: "--ink", _FAINT: "--line"} | {
    colour: f"--series-{i}" for i, colour in enumerate(_SERIES)
}
_STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "fewlier",
    "font.size": 9,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}

Draw: TypeAlias = "Callable[[Axes], object]"


@final
@dataclass(frozen=True)
class Figure:
    """A drawn figure: its SVG, and where its x axis lies in it."""

    svg: str
    x_axis: dict[str, float]


def score_figure(facts: Facts) -> Figure:
    """Draw the histogram of scores; the page moves its threshold, which is named `threshold`."""
    display = ScoreDisplay(
        scores=facts.scores,
        threshold=facts.calibration.threshold,
        unit=facts.summary.unit,
        labels=None if facts.labels is None else facts.labels.codes,
    )

    def draw(ax: "Axes") -> None:
        display.plot(ax).threshold_line_.set_gid("threshold")
        legend = ax.get_legend()
        if legend is not None:
            legend.get_texts()[-1].set_text("threshold")  # its place changes, and the page has it

    return _figure("scores", "Histogram of the anomaly scores, with the threshold.", draw)


def reason_figure(facts: Facts) -> Figure:
    """Draw what columns add to the score of rows above the threshold."""
    chosen = np.full(len(facts.flagged.score), bool(facts.is_above.any()))
    display = ReasonDisplay.of_mean(facts.flagged, chosen)
    alt = "Bars: what each column adds to the score on average, the largest first."
    return _figure("columns", alt, display.plot, height=0.9 + 0.25 * len(display.names))


def curve_figures(facts: Facts) -> list[tuple[CurveDisplay, Figure]]:
    """Draw scores against labels; nothing where not both labels are there."""
    if facts.labels is None or not facts.has_both_labels:
        return []
    names: dict[CurveKind, str] = {
        "roc": "ROC curve",
        "precision_recall": "Precision-recall curve",
    }
    drawn = []
    for kind, name in names.items():
        display = CurveDisplay.from_scores(
            facts.scores, facts.labels.compared, kind=kind, threshold=facts.calibration.threshold
        )
        drawn.append((display, _figure(kind, f"{name} with a band of 95 %.", display.plot)))
    return drawn


def p_value_figure(facts: Facts) -> tuple[PValueDisplay, Figure] | None:
    """Draw p-values of normal rows against what they promise; None where no row is normal."""
    scores, what = facts.scores, "all rows"
    if facts.labels is not None:
        what = f"rows {'labelled normal' if facts.labels.has_normals else 'without a label'}"
        scores = scores[facts.labels.compared == NORMAL]
    if not len(scores):
        return None
    display = PValueDisplay(
        p_values=facts.calibration.p_value(scores),
        n_held_back=len(facts.calibration.normal_scores),
        what=what,
    )
    alt = "Share of rows with a p-value up to each value, beside the diagonal."
    return display, _figure("p-values", alt, display.plot)


def lambda_figure(facts: Facts) -> Figure:
    """Draw the validation curves."""
    summary = facts.summary
    display = LambdaDisplay(
        weights=summary.lambda_weights, curves=summary.curves, criterion=summary.criterion
    )
    return _figure("lambdas", "Validation curves of the members by lambda.", display.plot)


def _figure(name: str, alt: str, draw: Draw, height: float = HEIGHT) -> Figure:
    """Draw on a figure of its own, without pyplot's state."""
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure as Canvas

    file = io.StringIO()
    style: Any = _STYLE | {"axes.prop_cycle": cycler(color=_SERIES)}
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has other fonts
        canvas = Canvas((WIDTH, height), layout="constrained")
        draw(canvas.subplots())
        canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return Figure(_inlined(file.getvalue(), name, alt), _x_axis(canvas))


def _x_axis(canvas: "Canvas") -> dict[str, float]:
    """Return the limits of the x axis, and where they are in the drawing."""
    (ax,) = canvas.axes
    box, (low, high) = ax.get_position(), ax.get_xlim()
    width = 72 * WIDTH
    return {"low": low, "high": high, "left": width * box.x0, "right": width * box.x1}


def _inlined(svg: str, name: str, alt: str) -> str:
    """Return a drawing as part of a page: own ids, no styles that its policy forbids."""
    body = re.sub(r"<(metadata|style).*?</\1>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = body[body.index(">") + 1 :]
    # Text has its angle brackets escaped, so only tags have any.
    body = re.sub(r"<[^>]+>", lambda tag: _tag(tag[0], name), body)
    height = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)
    box = f"0 0 {72 * WIDTH:g} {height[1] if height else 0}"
    return f'<svg viewBox="{box}" role="img" aria-label="{alt}">{body.strip()}'


def _tag(tag: str, name: str) -> str:
    tag = re.sub(r' id="', f' id="{name}-', tag)
    tag = re.sub(r'(xlink:)?href="#', f'href="#{name}-', tag)
    tag = tag.replace("url(#", f"url(#{name}-")
    tag = re.sub(r' style="([^"]*)"', lambda style: _attributes(style[1]), tag)
    return re.sub(r'(?<==")#[0-9a-f]{6}(?=")', lambda colour: _on_page(colour[0]), tag)


def _attributes(style: str) -> str:
    """Turn declarations of a style into attributes of SVG."""
    pairs = [declaration.split(":", 1) for declaration in style.split(";") if declaration.strip()]
    return "".join(
        f' {key.strip()}="{value.strip()}"'
        for key, value in pairs
        if key.strip() != "font-family"  # the page has its own
    )


def _on_page(colour: str) -> str:
    return f"var({_VARIABLES[colour]})" if colour in _VARIABLES else colour
