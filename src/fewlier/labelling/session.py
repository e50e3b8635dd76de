"""`Session`: asks about one row at a time, and learns from every answer."""

import threading
from collections import Counter
from collections.abc import Mapping
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
from fewlier.labelling.answers.labels import with_answers
from fewlier.labelling.answers.ledger import Ledger
from fewlier.labelling.background import BackgroundFits
from fewlier.labelling.learner import Learner
from fewlier.labelling.question import Progress, Question, Ranked
from fewlier.labelling.session_table import SessionTable
from fewlier.table import Table
from fewlier.table.arrays import Floats
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
    The next row is the oddest, and every third time one unlike the anomalies found, so that
    other kinds are found. Questions are chosen among all rows of a table of up to 20,000. From a
    larger one they are chosen among the 15,000 oddest rows and 5,000 others drawn at random; at
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
        self._guard, self._fit_every = threading.RLock(), fit_every
        self._data = data = SessionTable.of(X, y, detector, random_state)
        self._ledger = Ledger(data.table, path)
        self._fits, self._learner = BackgroundFits(data, detector), Learner(data, random_state)
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
            self._fits.collect()
            if self._fit_every and self._fits.latest is None and self._fits.error is None:
                self._fits.begin(self._labels.codes)
            row = self._learner.choose(len(self._answers))
            return None if row is None else self.question(row)

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
                learner = self._learner
                known_then = learner.score(row), self._fits.p_value(row), learner.chosen(row)
            answer = Answer(
                row,
                self._ledger.key(row),
                label,
                now(),
                self._data.cells(row),
                kind,
                note,
                *known_then,
                __version__,
            )
            self._ledger.add(answer)
            self._learn()
            if self._fit_every and self._ledger.n_given % self._fit_every == 0:
                self._fits.collect()
                self._fits.begin(self._labels.codes)
                self._learner.renew()
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
            learner, score = self._learner, self._learner.score(row)
            (contributions,) = learner.contributions(np.array([row]))
            return Question(
                len(self._answers) + 1,
                row,
                self._data.cells(row),
                score,
                learner.posterior.place(score),
                learner.chosen(row),
                self._data.reasons(row, contributions, self._fits.expected(row)),
                self._fits.p_value(row),
                *learner.posterior.nearest(learner.features(row).points[0], row),
                self._answers.get(row),
            )

    def ranking(self, n: int = 100) -> tuple[Ranked, ...]:
        """Return the n oddest rows, with the answers that stand.

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
            rows, scores = self._learner.ranking(n)
            added = self._learner.contributions(rows)
            answers, reasons, p_value = self._answers, self._data.reasons, self._fits.p_value
            return tuple(
                Ranked(row, score, answers.get(row), p_value(row), reasons(row, own, {}))
                for row, score, own in zip(rows.tolist(), scores.tolist(), added, strict=True)
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
                known=int((self._data.labels.codes != UNLABELLED).sum()),
                curve=tuple(accumulate(int(label == 1) for label in labels)),
                kinds=dict(Counter(a.kind for a in self.history if a.kind).most_common()),
                remaining=self._learner.remaining(self.history),
                is_fitting=self._fits.is_running,
                has_fit=latest is not None,
                fit_error=self._fits.error,
                scores=self._learner.posterior.histogram(),
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
        return self._data.table

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self._data.n_rows

    def _repr_html_(self) -> str:
        """Show how far the work is; `fewlier.labelling.widget.label` also asks."""
        return self.progress._repr_html_()

    def close(self) -> None:
        """Stop what runs in the background, and let others write to the file."""
        self._fits.close()
        self._learner.close()
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
        self._labels = with_answers(self._data.labels, self.history)
        self._learner.learn(self._labels.codes, self._answers)

    def _check_row(self, row: int) -> None:
        if not isinstance(row, Integral) or not 0 <= row < self.n_rows:
            raise UserError(f"A row must be a number from 0 to {self.n_rows - 1}; got {row!r}.")
