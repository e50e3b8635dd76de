"""What a fit did, in words and numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from fewlier.decision.calibration import Calibration
from fewlier.decision.ranking import Ranking
from fewlier.decision.threshold import Threshold
from fewlier.modelfile.state import State, is_count, is_number, is_text
from fewlier.process import markup
from fewlier.process.escape import shown
from fewlier.table.columns import Column
from fewlier.table.label_column import listed_counts
from fewlier.table.labels import RowCounts
from fewlier.table.numbers import PLAIN
from fewlier.table.schema import LEFT_OUT, Schema
from fewlier.training.history import MemberHistory

if TYPE_CHECKING:  # so that a model file is inspected without torch
    from fewlier.score.model import FittedModel
    from fewlier.training.plan import Plan

TOO_GOOD = 0.99
"""A validation above it may come from a column that was written after the label."""
NO_ANOMALY = "none: no anomaly is labelled"
_COUNTS = ("n_normal", "n_anomaly", "n_unlabelled", "passes_per_row", "n_compared")


@final
@dataclass(frozen=True)
class Summary:
    """What a fit did; `str()` gives it in readable lines.

    Attributes
    ----------
    n_normal, n_anomaly, n_unlabelled : int
        Rows of each label.
    kinds : dict of str to str
        The kind of each column, with the way it is scored, or written, where that is special;
        `LEFT_OUT` of a column that is not learned from.
    lambda_weights : dict of float to float
        Total weight of the members of each lambda in the score.
    validation : Ranking or None
        How well the score ranks labelled anomalies that were held out; None where none was.
    criterion : str
        Name of the criterion that chose the members' epochs.
    decision, unit : Threshold, str
        Scores above the threshold are anomalies; what it stands for, and the unit of scores.
    passes_per_row, n_compared : int
        Network evaluations that scoring a row takes, and how many rows it is compared with.
    seconds : float
        How long the fit took.
    notes : tuple of str
        What the fit decided or could not do.
    labelled_kinds : dict of str to int
        Labelled anomalies of each kind, where the labels name kinds.
    history : tuple of MemberHistory
        How every member fared.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> summary = AnomalyDetector(random_state=0).fit(X).summary_
    >>> summary.n_unlabelled, summary.kinds, summary.rule
    (200, {'x0': 'real', 'x1': 'real'}, 'false-alarm rate 1 %')
    >>> print(str(summary).splitlines()[0])
    rows        0 normal, 0 anomalous, 200 unlabelled
    """

    n_normal: int
    n_anomaly: int
    n_unlabelled: int
    kinds: dict[str, str]
    lambda_weights: dict[float, float]
    validation: Ranking | None
    criterion: str
    decision: Threshold
    unit: str
    passes_per_row: int
    seconds: float
    notes: tuple[str, ...]
    history: tuple[MemberHistory, ...]
    n_compared: int
    labelled_kinds: dict[str, int]

    def __str__(self) -> str:
        """Return one line per fact."""
        return _lines(self._facts())

    @property
    def workings(self) -> str:
        """How rows are scored, one line per fact: weights of lambdas, and what a row costs."""
        weights = ", ".join(f"{lam:g}: {w:.2f}" for lam, w in self.lambda_weights.items() if w)
        compared = f", compared with {self.n_compared} rows" if self.n_compared else ""
        cost = f"{self.passes_per_row} network passes per row{compared}"
        return _lines([("lambda", f"{weights} (weight in the density)"), ("cost", cost)])

    def _facts(self) -> list[tuple[str, str]]:
        """Return what it says, as names and texts."""
        meaning = self.decision.meaning
        rows = f"{self.n_normal} normal, {self.n_anomaly} anomalous, {self.n_unlabelled} unlabelled"
        return [
            ("rows", rows),
            *([("kinds", listed_counts(self.labelled_kinds))] * bool(self.labelled_kinds)),
            ("columns", _by_kind(self.kinds)),
            ("validation", self.validation_text),
            ("threshold", f"{self.threshold:.4g} {self.unit}{f' ({meaning})' if meaning else ''}"),
            *self.decision.facts,
            ("time", f"{self.seconds:.1f} s"),
            *(("note", note) for note in self.notes),
        ]

    @property
    def validation_text(self) -> str:
        """How well held-out anomalies rank, in words; or that none was held out."""
        if self.validation:
            return self.validation.meaning
        if self.n_anomaly == 1:
            return "none: the only labelled anomaly trains, so none was held out"
        return "none: no labelled anomaly was held out" if self.n_anomaly else NO_ANOMALY

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return markup.fragment("What the fit did", self.to_markup())

    def to_markup(self) -> list[markup.Html]:
        """Return what a notebook shows of a fit: facts, and on a click columns and members."""
        columns = markup.table(("column", "kind"), self.kinds.items())
        header = ("lambda", "fold", self.criterion.replace("_", " "), "best epoch", "weight")
        members = markup.table(header, map(_member_cells, self.history))
        return [
            markup.facts(self._facts()),
            markup.folded(f"{len(self.kinds):,} columns", columns),
            markup.folded(f"{len(self.history)} members of the density", members),
        ]

    @property
    def threshold(self) -> float:
        """Scores above it are anomalies."""
        return self.decision.value

    @property
    def rule(self) -> str:
        """What the threshold stands for."""
        return self.decision.rule

    @property
    def counts(self) -> RowCounts:
        """How many rows have each label, and each kind."""
        rows = self.n_normal, self.n_anomaly, self.n_unlabelled
        return RowCounts(*rows, self.labelled_kinds)

    def to_json(self) -> dict[str, Any]:
        """Return what it says as JSON values."""
        validation = self.validation and self.validation.to_json()
        return self.state().flat()[0] | {"validation": validation} | self.decision.to_json()

    def state(self) -> State:
        """Return what a model file holds of it: all but what the calibration says.

        The weights are pairs, because lambdas are numbers.
        """
        told = "decision", "validation"
        own = {name: value for name, value in vars(self).items() if name not in told}
        own["lambda_weights"] = [list(pair) for pair in self.lambda_weights.items()]
        own["history"] = [member.state() for member in self.history]
        return State(own | {"notes": list(self.notes)})

    @classmethod
    def from_state(cls, state: State, calibration: Calibration) -> "Summary":
        """Inverse of `state`, checked."""
        return cls(
            decision=calibration.decision,
            validation=calibration.ranking,
            kinds=state.mapping("kinds", is_text, "of texts"),
            lambda_weights=dict(state.items("lambda_weights", _is_pair, "of pairs of numbers")),
            criterion=state.text("criterion"),
            unit=state.text("unit"),
            seconds=state.number("seconds"),
            notes=tuple(state.texts("notes")),
            history=tuple(map(MemberHistory.from_state, state.parts("history"))),
            labelled_kinds=state.mapping("labelled_kinds", lambda n: is_count(n, 1), "of counts"),
            **{name: state.count(name) for name in _COUNTS},
        )


def _lines(facts: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name:<12}{text}" for name, text in facts)


def _member_cells(member: MemberHistory) -> tuple[str | markup.Bar, ...]:
    """Return the cells of one member's line."""
    criterion = "diverged" if member.criterion is None else f"{member.criterion:.3f}"
    weight = markup.Bar(f"{member.weight:.2f}", member.weight)
    return f"{member.lam:g}", str(member.fold), criterion, str(member.best_epoch), weight


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _by_kind(kinds: dict[str, str], most: int = 6) -> str:
    """List the columns of each kind, at most a few by name."""
    names: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        names.setdefault(kind, []).append(shown(name))
    return "; ".join(
        f"{len(group)} {kind} ({', '.join(group[:most])}{', ...' if len(group) > most else ''})"
        for kind, group in names.items()
    )


def summarise(
    model: "FittedModel",
    plan: "Plan",
    history: Sequence[MemberHistory],
    notes: Iterable[str],
    seconds: float,
) -> Summary:
    """Say what a fit of a plan did; `notes` say what it was given."""
    counts, calibration = plan.counts, model.calibration
    weights: dict[float, float] = {}
    for line in history:
        weights[line.lam] = weights.get(line.lam, 0.0) + line.weight
    return Summary(
        n_normal=counts.n_normal,
        n_anomaly=counts.n_anomaly,
        n_unlabelled=counts.n_unlabelled,
        labelled_kinds=dict(counts.kinds),
        kinds=_kinds(model.encoder.schema),
        lambda_weights=weights,
        validation=calibration.ranking,
        criterion=next(line.criterion_name for line in history if line.weight),
        decision=calibration.decision,
        unit=model.ensemble.unit,
        passes_per_row=model.ensemble.passes_per_row,
        n_compared=model.n_compared,
        seconds=seconds,
        notes=(
            *notes,
            *_perfect(calibration.ranking),
            *_doubtful_note(model, plan.n_unlabelled),
            *plan.notes,
            *_diverged(history),
        ),
        history=tuple(history),
    )


def _doubtful_note(model: "FittedModel", n_unlabelled: int) -> list[str]:
    """Say how many of the unlabelled rows count less, where any might."""
    if model.doubtful_rows is None or not n_unlabelled:
        return []
    n_rows, n_untrusted = model.doubtful_rows
    note = f"{n_unlabelled} unlabelled rows train as normal rows, with less weight where they are "
    note += "far less likely than the others"
    if n_unlabelled == 1:
        note = "1 unlabelled row trains as a normal row, with less weight if it is far less likely"
    if not n_untrusted:
        return [f"{note}."]
    count, are = ("counts", "is") if n_untrusted == 1 else ("count", "are")
    excluded = f" and {are} left out of the comparison" if model.n_compared else ""
    return [f"{note}: of {n_rows} examined, {n_untrusted} {count} less than half{excluded}."]


def _perfect(ranking: Ranking | None) -> list[str]:
    """Say what a ranking that is nearly perfect may mean."""
    if ranking is None or ranking.auc <= TOO_GOOD:
        return []
    return [
        f"Validation above {TOO_GOOD:g} means that anomalies are easy to tell, or that a column "
        "leaks the label: look at what adds most to their scores, and whether it was known before "
        "the label."
    ]


def _diverged(history: Sequence[MemberHistory]) -> list[str]:
    lambdas = [f"{line.lam:g}" for line in history if line.status == "diverged"]
    if not lambdas:
        return []
    return [
        f"{len(lambdas)} of {len(history)} members diverged and were left out: "
        f"lambda {', '.join(lambdas)}."
    ]


def _kinds(schema: Schema) -> dict[str, str]:
    kinds = {column.name: _kind(column) for column in schema.columns}
    return kinds | {left.name: LEFT_OUT for left in schema.left_out}


def _kind(column: Column) -> str:
    """Name what a column is: its kind, how it is scored, and written, where that is special."""
    if column.date is not None:
        return f"read from dates written as {column.date.form}"
    if column.is_constant or column.is_empty or column.hardly_varies:
        return column.description
    written = "" if column.form == PLAIN else f", written like {column.form}"
    scored = f", scored by {column.conditional}" if column.conditional else ""
    return column.description + scored + written
