"""Measures detectors: all splits, k and lambdas of a table as one stack, or one fit alone."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from fewlier import AnomalyDetector
from fewlier.errors import FewlierWarning
from fewlier.fitting.recipe import read_seed
from fewlier.score.model import FittedModel
from fewlier.table import Table
from fewlier.training.history import MemberHistory
from fewlier_bench.data import make_paper_split
from fewlier_bench.reproduction.experiments import EXTRA, lambda_name
from fewlier_bench.reproduction.protocol import PaperProtocol
from fewlier_bench.runs.jobs import Measurement, describe_machine
from fewlier_bench.runs.measuring import Labels, Source, add_accuracy
from fewlier_bench.runs.results import Cell
from fewlier_bench.runs.stacks import GivenRows, SplitStack

Kind = Literal["Proposed", "VAE", "fewlier"]
"""What is trained as a stack.

Proposed has MADE and every lambda in it. VAE has no labels but those that choose its epoch. fewlier
is the default detector, which is given training and validation rows to split as it likes.
"""

ByMethod: TypeAlias = dict[str, tuple[FittedModel | None, Measurement]]
"""What a fit gives for each method in it: a model, or None if it diverged, and what is known."""

DIVERGED = "its likelihoods ceased to be finite"


def measure_stack(
    source: Source, protocol: PaperProtocol, kind: Kind, device: str, cells: Sequence[Cell]
) -> list[tuple[Cell, Measurement]]:
    """Fit a kind of detector on every split and k of the cells, as one stack."""
    settings = {"Proposed": protocol.proposed(), "VAE": protocol.vae(), EXTRA: {}}[kind]
    if {cell.method for cell in cells} == {"MADE"}:
        settings = protocol.single(0.0)
    X, y = source.load()
    stack = SplitStack.of_table(Table.of(X), {**settings, "device": device})
    fits = _FitsOfTable(kind, protocol, stack, y)
    keys = sorted({(cell.split, cell.k) for cell in cells})
    found = []
    for key, by_method in zip(keys, fits.fit(keys), strict=True):
        for cell in (cell for cell in cells if (cell.split, cell.k) == key):
            found.append((cell, fits.test(key, *by_method[cell.method])))
    stack.free_memory()
    return found


@final
@dataclass(frozen=True, eq=False)
class _FitsOfTable:
    """How a kind of detector is fitted on the splits of a table, and tested."""

    kind: Kind
    protocol: PaperProtocol
    stack: SplitStack
    y: Labels

    def fit(self, keys: Sequence[tuple[int, int]]) -> list[ByMethod]:
        """Fit pairs of a split and k, in one stack whose seconds they share."""
        started = time.perf_counter()
        splits = [self._given(*key) for key in keys]
        if self.kind == EXTRA:
            averages = self.stack.fit(splits)
            seconds = (time.perf_counter() - started) / len(splits)
            return [self._average(model, history, seconds) for model, history in averages]
        fits = self.stack.fit_each_lambda(splits)
        seconds = (time.perf_counter() - started) / len(splits)
        return [self._each(models, history, seconds) for models, history in fits]

    def _given(self, number: int, k: int) -> GivenRows:
        split = make_paper_split(self.y, number, k, self.protocol.splits)
        seed = read_seed(self.protocol.seed_of(number))  # as a detector reads `random_state`
        if self.kind == EXTRA:
            rows = np.concatenate([split.training, split.validation])
            return GivenRows(rows, self.y[rows], seed)
        validation = split.validation, self.y[split.validation]
        return GivenRows(split.training, self.y[split.training], seed, validation)

    def _average(
        self, model: FittedModel, history: Sequence[MemberHistory], seconds: float
    ) -> ByMethod:
        n_kept = sum(line.status == "kept" for line in history)
        return {self.kind: (model, self._facts("members", n_kept, None, seconds))}

    def _each(
        self, models: dict[float, FittedModel], history: Sequence[MemberHistory], seconds: float
    ) -> ByMethod:
        """Name the models of single lambdas, and the one that is chosen, which needs them all."""
        found: ByMethod = {self.kind: (None, self._facts("lambda", "", None, seconds))}
        for line in history:
            share = seconds / len(history)
            single = self._facts("epoch", line.best_epoch, line.criterion, share)
            model = models.get(line.lam)
            found[lambda_name(line.lam)] = model, single
            if line.lam == 0:
                found["MADE"] = model, single
            if line.weight:
                chosen = self._facts("lambda", f"{line.lam:g}", line.criterion, seconds)
                found[self.kind] = model, chosen if self.kind == "Proposed" else single
        return found

    def _facts(
        self, parameter: str, value: object, validation_auc: float | None, seconds: float
    ) -> Measurement:
        return Measurement(
            parameter=parameter,
            value=str(value),
            validation_auc=validation_auc,
            seconds=seconds,
            machine=describe_machine(self.stack.gpu),
        )

    def test(
        self, key: tuple[int, int], model: FittedModel | None, facts: Measurement
    ) -> Measurement:
        """Score the test rows of a split."""
        if model is None:
            return Measurement(reason=DIVERGED, machine=facts.machine)
        rows = make_paper_split(self.y, *key, self.protocol.splits).test
        return add_accuracy(facts, self.y[rows], self.stack.score(model, rows))


def measure_alone(
    source: Source, protocol: PaperProtocol, lambdas: dict[Cell, float], cells: Sequence[Cell]
) -> list[tuple[Cell, Measurement]]:
    """Fit Proposed on the CPU with a single lambda for each cell, as a user would, and time it."""
    X, y = source.load()
    found = []
    for cell in cells:
        lam, seed = lambdas[cell], protocol.seed_of(cell.split)
        split = make_paper_split(y, cell.split, cell.k, protocol.splits)
        settings = protocol.single(lam) | {"device": "cpu", "keep_rows": False}
        detector = AnomalyDetector(**settings, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewlierWarning)  # of thresholds, which nobody asks for
            started = time.perf_counter()
            detector.fit(
                X[split.training],
                y[split.training],
                validation=(X[split.validation], y[split.validation]),
            )
            seconds = time.perf_counter() - started
        facts = Measurement(
            parameter="lambda",
            value=f"{lam:g}",
            validation_auc=detector.history_[0].criterion,
            seconds=seconds,
            machine=describe_machine(),
        )
        scores = detector.anomaly_score(X[split.test])
        found.append((cell, add_accuracy(facts, y[split.test], scores)))
    return found
