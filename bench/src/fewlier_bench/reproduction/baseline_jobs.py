"""Measures the paper's comparison methods that scikit-learn has."""

import time
from collections.abc import Sequence

from fewlier_bench.data import make_paper_split
from fewlier_bench.methods.baselines import BASELINES, FittedBaseline, choose, fit_candidates
from fewlier_bench.reproduction.protocol import PaperProtocol
from fewlier_bench.runs.jobs import Measurement, describe_machine
from fewlier_bench.runs.measuring import Source, add_accuracy
from fewlier_bench.runs.results import Cell


def measure_baseline(
    source: Source, protocol: PaperProtocol, cells: Sequence[Cell]
) -> list[tuple[Cell, Measurement]]:
    """Fit a method on one split, for the numbers of labelled anomalies of the cells.

    A method without labels has the same training rows whatever that number is: its fits are
    shared, and so are their seconds.
    """
    X, y = source.load()
    baseline, number = BASELINES[cells[0].method], cells[0].split
    n_sharing = 1 if baseline.uses_labels else len(cells)
    candidates: list[FittedBaseline] = []
    found = []
    for cell in cells:
        split = make_paper_split(y, number, cell.k, protocol.splits)
        started = time.perf_counter()
        if baseline.uses_labels or not candidates:
            rows = split.training
            candidates = fit_candidates(cell.method, X[rows], y[rows], protocol.seed_of(number))
            fitting = (time.perf_counter() - started) / n_sharing
        started = time.perf_counter()
        chosen = choose(candidates, X[split.validation], y[split.validation])
        choosing = time.perf_counter() - started
        facts = Measurement(
            parameter=baseline.parameter,
            value=f"{chosen.value:g}",
            validation_auc=chosen.validation_auc,
            seconds=fitting + choosing,
            machine=describe_machine(),
        )
        scores = chosen.anomaly_score(X[split.test])
        found.append((cell, add_accuracy(facts, y[split.test], scores)))
    return found
