"""`Session`: asks about one row at a time, and learns from every answer."""

import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from numbers import Integral
from typing import final

import numpy as np

from fewlier import __version__
from fewlier.detector import AnomalyDetector
from fewlier.errors import UserError, check_parameter
from fewlier.files.atomic import PathLike
from fewlier.fitting.recipe import MAX_SEED
from fewlier.labelling.answers.answer import Answer, Stack
from fewlier.labelling.answers.journal import now
from fewlier.labelling.answers.ledger import Ledger
from fewlier.labelling.answers.told import with_answers
from fewlier.labelling.asking.choice import BY_HAND, choose
from fewlier.labelling.asking.insight import Insight
from fewlier.labelling.asking.pool import MAX_ROWS, Pool
from fewlier.labelling.asking.remaining import Remaining, estimate_remaining
from fewlier.labelling.asking.worth import Looked, Worth
from fewlier.labelling.fits import Fits
from fewlier.labelling.question import Progress, Question, Ranked
from fewlier.labelling.subject import Subject
from fewlier.labelling.usual import Expected, expected_values
from fewlier.table import Table
from fewlier.table.arrays import Floats, Ints
from fewlier.table.labels import UNLABELLED, Labels


@final
class Session:
    """Asks about one row at a time, and learns from every answer before it asks again.

    Parameters
    ----------
    X : DataFrame, Arrow stream or array
        The table; columns may be mixed, and cells missing. Identifiers, free text and columns
        declared "ignore" are shown but do not affect the score.
    y : sequence, Labels or None
        Labels that are known already, as in `AnomalyDetector.fit`. These rows are not asked about.
    path : path or None
        The file of answers. Each is on disk before `answer` returns. If the file has answers, the
        session continues from them; the table may have more rows by then, in another order.
    columns : mapping or str or None
        As in `AnomalyDetector`.
    detector : AnomalyDetector or None
        What background fits use. If it is fitted, the session starts from it: its score decides
        what is odd, and it is updated.
    fit_every : int or None
        After how many answers a full fit begins in the background, the first with the first
        question; None: only when `detector` is asked for.
    random_state : int
        The same answers to the same table lead to the same questions.

    Notes
    -----
    The next row is the one worth most, and every third time one unlike the anomalies found, so that
    other kinds are found. Questions are chosen among all rows of a table of up to 20,000. From a
    larger one they are chosen among the 15,000 rows worth most and 5,000 others drawn at random; at
    every tenth answer these are chosen anew in the background, with what has been learned.

    Examples
    --------
    Six questions, answered by the truth: the last five rows are odd.

    >>> import numpy as np
    >>> from fewlier import AnomalyDetector, Session
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(6, 1, size=(5, 2))])
    >>> with Session(X, fit_every=None) as session:
    ...     for _ in range(6):
    ...         question = session.next()
    ...         _ = session.answer(question.row, int(question.row >= 300))
    ...     found, labels = session.progress.found, session.labels
    >>> found, int(np.nansum(labels))
    (5, 5)
    >>> detector = AnomalyDetector(random_state=0).fit(X, labels)  # session.detector does this
    >>> detector.predict([[0.0, 0.0], [6.0, 6.0]])
    array([0, 1])
    """

    def __init__(  # noqa: PLR0913 - as scikit-learn's constructors
        self,
        X: object,
        y: object = None,
        *,
        path: PathLike | None = None,
        columns: Mapping[str, str] | str | None = None,
        detector: AnomalyDetector | None = None,
        fit_every: int | None = 10,
        random_state: int = 0,
    ) -> None:
        is_seed = isinstance(random_state, int) and 0 <= random_state <= MAX_SEED
        check_parameter("random_state", random_state, is_seed, "an integer >= 0")
        if detector is not None and columns is not None:
            raise UserError(
                "The 'columns' of a session are those of its 'detector'; got both. Leave one out."
            )
        if detector is None:
            detector = AnomalyDetector(columns=columns, random_state=random_state)
        self._seed, self._guard = random_state, threading.RLock()
        self._subject = subject = Subject.of(X, y, detector, random_state)
        self._ledger = Ledger(subject.table, path)
        self._fits, self._fit_every = Fits(subject, detector), fit_every
        rows = np.random.default_rng(random_state).permutation(subject.n_rows)[:MAX_ROWS]
        measured = subject.encode(np.sort(rows))
        self._worth = Worth.fit(subject.encoder, measured, random_state, subject.model)
        self._threads = ThreadPoolExecutor(1, "fewlier-pool")
        self._renewal: Future[Pool] | None = None
        self._choice: tuple[int, str] | None = None
        self._labels = subject.labels
        self._pool = self._new_pool(np.zeros(len(self._worth.forest.nodes)))
        self._learn()

    def next(self) -> Question | None:
        """Return the next question; None when every row was answered.

        It stays the same until there is another answer.

        Examples
        --------
        >>> import numpy as np
        >>> from fewlier import Session
        >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[6.0, 7.0]], axis=0)
        >>> with Session(X, fit_every=None) as session:
        ...     question = session.next()
        >>> question.row, question.cells, question.chosen
        (99, {'x0': 6.0, 'x1': 7.0}, 'oddest')
        """
        with self._guard:
            self._keep_up()
            choice = choose(self._insight, len(self._answers))
            if choice is None:
                return None
            self._choice = int(self._pool.rows[choice.place]), choice.chosen
            return self.question(self._choice[0])

    def answer(
        self, row: int, label: int | None, *, kind: str | None = None, note: str | None = None
    ) -> Answer:
        """Take an answer: 1 for an anomaly, 0 for a normal row, None to skip it.

        It is on disk when this returns, if the session has a file. A second answer to a row takes
        the place of the first.

        Examples
        --------
        >>> import numpy as np
        >>> from fewlier import Session
        >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[6.0, 7.0]], axis=0)
        >>> with Session(X, fit_every=None) as session:
        ...     answer = session.answer(99, 1, kind="far away", note="seen before")
        >>> answer.word, session.progress.kinds, session.labels.kinds
        ('anomaly', {'far away': 1}, ('far away',))
        """
        with self._guard:
            self._check_row(row)
            before = self._answers.get(row)
            if before is not None:  # then the score knows the answer already
                known_then = before.score, before.p_value, before.chosen
            else:
                score = float(self._look(row).score(self._insight.lesson)[0])
                known_then = score, self._p_value(row), self._chosen(row)
            answer = Answer(
                row,
                self._ledger.key(row),
                label,
                now(),
                self._subject.cells(row),
                kind,
                note,
                *known_then,
                __version__,
            )
            self._ledger.add(answer)
            self._learn()
            if self._fit_every and self._ledger.n_given % self._fit_every == 0:
                self._begin_anew()
            return answer

    def undo(self) -> Answer | None:
        """Take the last answer back, and return it; None where there is none.

        What it replaced stands again.

        Examples
        --------
        >>> import numpy as np
        >>> from fewlier import Session
        >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[6.0, 7.0]], axis=0)
        >>> with Session(X, fit_every=None) as session:
        ...     for label in (0, 1):
        ...         _ = session.answer(99, label)
        ...     undone = session.undo()
        >>> undone.label, float(session.y[99])
        (1, 0.0)
        """
        with self._guard:
            last = self._ledger.take_back()
            if last is not None:
                self._learn()
            return last

    def question(self, row: int) -> Question:
        """Return the question about any row.

        Examples
        --------
        >>> import numpy as np
        >>> from fewlier import Session
        >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[6.0, 7.0]], axis=0)
        >>> with Session(X, fit_every=None) as session:
        ...     question = session.question(3)
        >>> question.row, question.chosen, question.answer
        (3, 'by hand', None)
        """
        with self._guard:
            self._check_row(row)
            rows, looked, insight = np.array([row]), self._look(row), self._insight
            score = float(looked.score(insight.lesson)[0])
            (contributions,) = self._contributions(rows)
            return Question(
                len(self._answers) + 1,
                row,
                self._subject.cells(row),
                score,
                insight.place(score),
                self._chosen(row),
                self._subject.reasons(row, contributions, self._expected(rows)),
                self._p_value(row),
                *insight.nearest(looked.points[0], row),
                self._answers.get(row),
            )

    def ranking(self, n: int = 100) -> tuple[Ranked, ...]:
        """Return the n rows worth most, with the answers that stand.

        Examples
        --------
        >>> import numpy as np
        >>> from fewlier import Session
        >>> X = np.append(np.random.default_rng(0).normal(size=(99, 2)), [[6.0, 7.0]], axis=0)
        >>> with Session(X, fit_every=None) as session:
        ...     _ = session.answer(99, 1)
        ...     first, second = session.ranking(2)
        >>> first.row, first.answer.word, second.answer
        (99, 'anomaly', None)
        """
        with self._guard:
            order = np.argsort(-self._insight.score, kind="stable")[:n]
            rows, scores = self._pool.rows[order], self._insight.score[order]
            lines = zip(rows.tolist(), scores.tolist(), self._contributions(rows), strict=True)
            answers, reasons = self._answers, self._subject.reasons
            return tuple(
                Ranked(row, score, answers.get(row), self._p_value(row), reasons(row, added, {}))
                for row, score, added in lines
            )

    @property
    def history(self) -> Stack:
        """The answers that stand, in order."""
        return tuple(self._answers.values())

    @property
    def progress(self) -> Progress:
        """How far the work is."""
        with self._guard:
            self._fits.collect()
            labels = [answer.label for answer in self.history]
            counts, latest = Counter(labels), self._fits.latest
            return Progress(
                asked=len(labels),
                found=counts[1],
                normal=counts[0],
                skipped=counts[None],
                known=int((self._subject.labels.codes != UNLABELLED).sum()),
                curve=tuple(accumulate(int(label == 1) for label in labels)),
                kinds=dict(Counter(a.kind for a in self.history if a.kind).most_common()),
                remaining=self._remaining(),
                is_fitting=self._fits.is_running,
                has_fit=latest is not None,
                fit_error=self._fits.error,
                scores=self._insight.histogram(),
            )

    @property
    def labels(self) -> Labels:
        """All labels so far, with kinds, as `AnomalyDetector.fit` takes them."""
        return self._labels

    @property
    def y(self) -> Floats:
        """All labels so far: 1, 0, or NaN where nothing is known, shape (n,)."""
        return np.asarray(self._labels, dtype=np.float64)

    @property
    def detector(self) -> AnomalyDetector:
        """A full detector that knows all labels so far; waits for its fit if need be."""
        with self._guard:
            return self._fits.detector(self._labels.codes)

    @property
    def table(self) -> Table:
        """All columns, as the user knows them."""
        return self._subject.table

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self._subject.n_rows

    def _repr_html_(self) -> str:
        """Show how far the work is; `fewlier.labelling.widget.label` also asks."""
        return self.progress._repr_html_()

    def close(self) -> None:
        """Stop what runs in the background, and let others write to the file."""
        self._fits.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ledger.close()

    def __enter__(self) -> "Session":
        """Return the session; the end of the block closes it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the session."""
        self.close()

    def _learn(self) -> None:
        """Learn from the answers that stand."""
        self._answers = {answer.row: answer for answer in self._ledger.standing}
        self._labels = with_answers(self._subject.labels, self.history)
        known = np.flatnonzero(self._subject.labels.codes != UNLABELLED).tolist()
        settled = {*known, *self._answers}
        codes, seed = self._labels.codes, self._seed
        self._insight = Insight.of(self._worth, self._pool, codes, settled, seed)

    def _new_pool(self, lesson: Floats) -> Pool:
        known = np.flatnonzero(self._labels.codes != UNLABELLED)
        return Pool.of(self._subject, self._worth, lesson, known, self._seed)

    def _keep_up(self) -> None:
        """Take what was done in the background, and begin the first fit."""
        self._fits.collect()
        if self._fit_every and self._fits.latest is None and self._fits.error is None:
            self._fits.begin(self._labels.codes)
        if self._renewal is not None and self._renewal.done():
            self._pool, self._renewal = self._renewal.result(), None
            self._learn()

    def _begin_anew(self) -> None:
        """Begin what is done in the background after every tenth answer."""
        self._fits.collect()
        self._fits.begin(self._labels.codes)
        if self._renewal is None and not self._pool.is_whole:
            self._renewal = self._threads.submit(self._new_pool, self._insight.lesson)

    def _contributions(self, rows: Ints) -> Floats:
        encoded, n_at_nodes = self._subject.encode(rows), self._pool.n_at_nodes
        return self._worth.contributions(encoded, self._insight.lesson, n_at_nodes)

    def _chosen(self, row: int) -> str:
        """Say how a row was chosen."""
        is_next = self._choice is not None and self._choice[0] == row
        return self._choice[1] if self._choice is not None and is_next else BY_HAND

    def _look(self, row: int) -> Looked:
        """Look at one row, which may be outside of the pool."""
        places = self._pool.places(np.array([row]))
        if len(places):
            return self._pool.looked.take(places)
        return self._worth.look(self._subject.encode(np.array([row])))

    def _p_value(self, row: int) -> float | None:
        latest = self._fits.latest
        if latest is None:
            return None
        if row in latest.p_values:
            return latest.p_values[row]
        return float(latest.detector.p_value(self._subject.take(np.array([row])))[0])

    def _expected(self, rows: Ints) -> dict[str, Expected]:
        latest = self._fits.latest
        return {} if latest is None else expected_values(latest.detector, self._subject.take(rows))

    def _remaining(self) -> Remaining | None:
        asked = [a for a in self.history if a.label is not None and a.score is not None]
        if not asked:
            return None
        score = np.array([a.score for a in asked])
        is_anomaly = np.array([a.label == 1 for a in asked])
        insight = self._insight
        is_left = insight.codes == UNLABELLED
        others = insight.score[is_left], self._pool.stands_for[is_left]
        return estimate_remaining(score, is_anomaly, others, self._seed)

    def _check_row(self, row: int) -> None:
        if not isinstance(row, Integral) or not 0 <= row < self.n_rows:
            raise UserError(f"A row must be a number from 0 to {self.n_rows - 1}; got {row!r}.")
