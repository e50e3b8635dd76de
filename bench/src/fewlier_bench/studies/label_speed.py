"""Time from an answer to the next question, while full fits run in the background.

    fewlier-bench label-speed --rows 12000 200000 --columns 20 --questions 40

Opens a session on a made-up table, answers truthfully, and prints for each number of rows how long
it took to open it, and the median and the longest time from an answer to the next question.
"""

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from fewlier import Session
from fewlier_bench.studies.grid import make_parser


def planted(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal rows, of which one in 200 is shifted in two fifths of its columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = np.arange(n_rows) % 200 == 0
    shift = rng.choice([-4, 4], size=X.shape) * (rng.random(X.shape) < 0.4)
    return X + shift * y[:, None], y


def main(words: Sequence[str]) -> None:
    """Run the command."""
    parser = make_parser(__name__, __doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[12_000, 200_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--questions", type=int, default=40)
    arguments = parser.parse_args(words)
    print("| rows | open, s | median, s | longest, s |\n|---:|---:|---:|---:|")
    for n_rows in arguments.rows:
        X, y = planted(n_rows, arguments.columns)
        started = perf_counter()
        with Session(X) as session:
            question, opened = session.next(), perf_counter() - started
            seconds = []
            for _ in range(arguments.questions):
                if question is None:
                    break
                answered = perf_counter()
                session.answer(question.row, int(y[question.row]))
                question = session.next()
                seconds.append(perf_counter() - answered)
        median, longest = np.median(seconds), max(seconds)
        print(f"| {n_rows} | {opened:.1f} | {median:.3f} | {longest:.3f} |", flush=True)
