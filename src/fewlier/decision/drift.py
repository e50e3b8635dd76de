"""Whether rows as a whole still look like the training normals: two-sample tests of the columns."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy import stats

from fewlier.decision.reference import Reference
from fewlier.process import markup
from fewlier.process.escape import shown
from fewlier.table.arrays import Floats, Ints
from fewlier.table.columns import Column
from fewlier.table.date_parts import Aspect

LEVEL = 0.01
"""Chance of reporting drift for rows from the distribution of the training normals."""
MIN_DISTANCE = 0.1
"""Smallest change that counts, however certain: a file may be huge, and hold some anomalies."""
MAX_NAMED = 6
"""Most changes that the sentence names; a table may have thousands of columns."""
Counts: TypeAlias = npt.NDArray[Any]
"""Rows by bin, or what they count in a test."""
Test: TypeAlias = Callable[[Counts, Counts], tuple[float, float]]
"""Compares counts by bin: distance and p-value."""

# Levels expected less often than this in either sample are merged.
_MIN_EXPECTED = 5


class Change(NamedTuple):
    """How far rows are from the training normals in one property.

    `what` are the "values" of a column that has some, how often it is "missing", or, without a
    column, the "scores"; of a calendar date it is "time", which is expected to pass. `distance` is
    the largest difference in share: Kolmogorov and Smirnov's statistic of numbers, and of scores as
    far as they are higher; the total variation of levels. `p_value` is corrected for all tests.
    """

    column: str | None
    what: Literal["values", "missing", "scores", "time"]
    distance: float
    p_value: float

    @property
    def is_drift(self) -> bool:
        """Whether it is both significant and large, and not to be expected."""
        is_change = self.p_value <= LEVEL and self.distance >= MIN_DISTANCE
        return is_change and self.what != "time"

    def __str__(self) -> str:
        """Return it in words."""
        where = f" of {shown(self.column)}" if self.column is not None else ""
        gaps = "gaps" if self.what == "missing" else self.what
        return f"{gaps}{where} ({self.distance:.2f})"


@final
@dataclass(frozen=True)
class Drift:
    """How a batch of rows differs from the training normals; `str()` says it in a sentence.

    Attributes
    ----------
    n_rows : int
        Rows of the batch.
    changes : tuple of Change
        One for the scores, and two for each column.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = AnomalyDetector(random_state=0).fit(X)
    >>> print(detector.drift(X))
    300 rows look like the training normals.
    >>> drift = detector.drift(X + [0.0, 3.0])
    >>> drift.columns
    ('x1',)
    >>> [change.what for change in drift.found]
    ['values', 'scores']
    """

    n_rows: int
    changes: tuple[Change, ...]

    @property
    def found(self) -> tuple[Change, ...]:
        """The changes that count, the largest first."""
        drifted = (change for change in self.changes if change.is_drift)
        return tuple(sorted(drifted, key=lambda change: -change.distance))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that have drifted, the farthest first."""
        return tuple(dict.fromkeys(c.column for c in self.found if c.column is not None))

    def __str__(self) -> str:
        """Return what has changed, with distances."""
        if not self.found:
            return f"{self.n_rows} rows look like the training normals."
        named, n_more = map(str, self.found[:MAX_NAMED]), len(self.found) - MAX_NAMED
        more = f" and {n_more} more" if n_more > 0 else ""
        return (
            f"{self.n_rows} rows no longer look like the training normals: "
            f"{', '.join(named)}{more}. Check the data, or fit again."
        )

    def _repr_html_(self) -> str:
        """Show what has changed, or else what comes nearest to a change."""
        nearest = sorted(self.changes, key=lambda change: -change.distance)
        changes = self.found or nearest[:MAX_NAMED]
        lines = [
            (
                "gaps" if change.what == "missing" else change.what,
                change.column or "",
                markup.Bar(f"{change.distance:.2f}", change.distance),
                f"{change.p_value:.3g}",
                "yes" if change.is_drift else "no",
            )
            for change in changes
        ]
        header = ("what", "column", "distance", "p-value", "drift")
        return markup.fragment(str(self), [markup.table(header, lines)])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "drifted": bool(self.found),
            "columns": list(self.columns),
            "level": LEVEL,
            "least_distance": MIN_DISTANCE,
            "changes": [c._asdict() | {"is_drift": c.is_drift} for c in self.changes],
        }


def compare(
    columns: Sequence[Column],
    normals: tuple[Ints, Sequence[Ints]],
    rows: tuple[Ints, Sequence[Ints]],
    reference: Reference,
) -> Drift:
    """Test whether rows come from where the training normals came from.

    Numbers by the Kolmogorov-Smirnov test, evaluated at the edges of the bins, which only makes it
    more cautious; scores by its one-sided form, since only higher scores are odd (rows that look
    like training rows score lower than held-out ones); levels by the likelihood-ratio test of
    homogeneity, rare levels merged; gaps by Fisher's exact test. p-values are corrected by Holm's
    (1979) method, so that the chance of any false alarm is `LEVEL`.

    Parameters
    ----------
    columns : sequence of Column
        What they are.
    normals, rows : pairs of counts
        Scores by rank (see `Calibration.counts`), and cells by bin (see `Reference.count`).
    reference : Reference
        Where the bins are, and what each normal counts.
    """
    found: list[tuple[str | None, Any, float, float]]
    found = [(None, "scores", *_test(_risen, normals[0], rows[0]))]
    cells = [reference.share * counts for counts in normals[1]], rows[1]
    for column, edges, old, new in zip(columns, reference.edges, *cells, strict=True):
        test = _kolmogorov_smirnov if len(edges) else _levels
        is_date = column.date is not None and column.date.aspect is Aspect.DATE
        what = "time" if is_date else "values"
        found.append((column.name, what, *_test(test, old[:-1], new[:-1])))
        found.append((column.name, "missing", *_gaps(old, new)))
    corrected = _holm(np.array([p for *_, p in found]))
    changes = (Change(*one[:3], p) for one, p in zip(found, corrected.tolist(), strict=True))
    return Drift(int(rows[0].sum()), tuple(changes))


def _test(test: Test, old: Counts, new: Counts) -> tuple[float, float]:
    """Return distance and p-value; where either has no rows, nothing has changed."""
    return test(old, new) if old.any() and new.any() else (0.0, 1.0)


def _risen(old: Counts, new: Counts) -> tuple[float, float]:
    """Test whether new counts lie in higher bins than old ones."""
    n, m = float(old.sum()), float(new.sum())
    distance = float((np.cumsum(old) / n - np.cumsum(new) / m).max(initial=0))
    return distance, math.exp(-2 * distance**2 * n * m / (n + m))


def _kolmogorov_smirnov(old: Counts, new: Counts) -> tuple[float, float]:
    n, m = float(old.sum()), float(new.sum())
    # In the last bin both distributions have reached 1.
    distance = float(np.abs(np.cumsum(old)[:-1] / n - np.cumsum(new)[:-1] / m).max(initial=0))
    return distance, float(stats.kstwobign.sf(distance * np.sqrt(n * m / (n + m))))


def _levels(old: Counts, new: Counts) -> tuple[float, float]:
    n, m = float(old.sum()), float(new.sum())
    distance = float(np.abs(old / n - new / m).sum() / 2)
    table = np.array(list(_merge_rare(np.stack([old, new], 1), min(n, m) / (n + m)))).T
    if table.shape[1] < 2:
        return distance, 1.0
    return distance, float(stats.chi2_contingency(table, False, "log-likelihood").pvalue)


def _merge_rare(levels: Counts, share: float) -> Iterator[Counts]:
    """Yield the counts of levels; rare levels are merged until they are not rare."""
    rest = np.zeros(2)
    for pair in levels[np.argsort(levels.sum(1), kind="stable")]:
        rest = rest + pair
        if rest.sum() * share >= _MIN_EXPECTED:
            yield rest
            rest = np.zeros(2)
    if rest.any():  # only if all levels are rare: the commonest comes last
        yield rest


def _gaps(old: Counts, new: Counts) -> tuple[float, float]:
    table = [[round(counts[-1]), round(counts[:-1].sum())] for counts in (old, new)]
    shares = [gaps / (gaps + others) if gaps + others else 0.0 for gaps, others in table]
    if not any(gaps for gaps, _ in table):
        return 0.0, 1.0
    return abs(shares[0] - shares[1]), float(stats.fisher_exact(table).pvalue)


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(np.arange(len(p), 0, -1) * p[order]), 1)
    return corrected
