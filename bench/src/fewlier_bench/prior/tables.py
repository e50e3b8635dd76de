"""Real tables to draw tasks from, all of them in one tensor."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from torch import Tensor

_MAX_CODES = 20
_HELD_OUT = 20
_MIN_COLUMNS_SHARE = 0.7  # of the columns of a task that come from the table itself


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of several tables of equal size, before tasks are made of them.

    Attributes
    ----------
    normals : tensor of shape (batch, rows, columns)
        In no order.
    anomalies : tensor of shape (batch, anomalies, columns)
        In no order; rows repeat from `n_anomalies` on.
    n_anomalies : tensor of shape (batch,)
        How many anomalies differ.
    is_code : tensor of shape (batch, columns)
        Whether the column holds few whole numbers, which may be codes.
    """

    normals: Tensor
    anomalies: Tensor
    n_anomalies: Tensor
    is_code: Tensor


@final
class Tables:
    """All tables of a file: `names`, and X0, y0, X1, y1 … with 1 for an anomaly.

    The first of each twenty is held out, to see how well what the others teach carries over.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        with np.load(path) as file:
            self.names = [str(name) for name in file["names"]]
            tables = [(file[f"X{i}"], file[f"y{i}"]) for i in range(len(self.names))]
        self.sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self._normals, self.n_normals = _pad([X[y == 0] for X, y in tables], device)
        self._anomalies, self.n_anomalies = _pad([X[y == 1] for X, y in tables], device)
        self.n_columns = torch.tensor([X.shape[1] for X, _ in tables], device=device)
        self._is_code = _codes(self._normals)
        self._is_held_out = torch.arange(len(tables), device=device) % _HELD_OUT == 0

    def draw(
        self, n_tables: int, n_columns: int, n_anomalies: int, *, held_out: bool = False
    ) -> Rows:
        """Draw tables, with their columns in a random order.

        Columns that a table lacks are those of another table, and say nothing.
        """
        among = self._is_held_out == held_out
        first = self._choose(n_tables, n_columns, n_anomalies, among)
        second = self._choose(n_tables, 1, n_anomalies, among)
        normals, anomalies, codes = [], [], []
        for tables in (first, second):
            columns = self._columns(tables, n_columns)
            normals.append(
                _take(self._normals, tables, self._shuffle(self.n_normals[tables]), columns)
            )
            rows = self._shuffle(self.n_anomalies[tables], self._anomalies.shape[1])
            anomalies.append(_take(self._anomalies, tables, rows, columns))
            codes.append(self._is_code[tables[:, None], columns])
        other = _take(self._normals, second, self._shuffle(self.n_normals[second]), columns)
        lacking = torch.arange(n_columns, device=first.device) >= self.n_columns[first, None]
        n = anomalies[0].shape[1]
        return Rows(
            torch.where(lacking[:, None], normals[1], normals[0]),
            torch.where(lacking[:, None], other[:, :n], anomalies[0]),
            self.n_anomalies[first],
            torch.where(lacking, codes[1], codes[0]),
        )

    def _choose(self, n: int, n_columns: int, n_anomalies: int, among: Tensor) -> Tensor:
        fits = self.n_columns >= _MIN_COLUMNS_SHARE * n_columns
        fits &= self.n_anomalies >= n_anomalies
        weights = (fits + 1e-6) * among  # any of them, where none fits
        return weights.multinomial(n, replacement=True)

    def _columns(self, tables: Tensor, n_columns: int) -> Tensor:
        """Return numbers of columns in a random order; beyond a table's width any of them."""
        width = self._normals.shape[2]
        keys = torch.rand(len(tables), width, device=tables.device)
        keys[torch.arange(width, device=tables.device) >= self.n_columns[tables, None]] = 2.0
        order = keys.argsort(1)
        place = torch.arange(n_columns, device=tables.device) % self.n_columns[tables, None]
        return order.gather(1, place)

    def _shuffle(self, n_rows: Tensor, n: int | None = None) -> Tensor:
        """Return row numbers in a random order, those of short tables again and again."""
        width = n or self._normals.shape[1]
        keys = torch.rand(len(n_rows), width, device=n_rows.device)
        keys[torch.arange(width, device=n_rows.device) >= n_rows[:, None]] = 2.0
        order = keys.argsort(1)
        return order.gather(1, torch.arange(width, device=n_rows.device) % n_rows[:, None])


def _pad(parts: list[np.ndarray], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return tables as one tensor (tables, rows, columns), NaN beyond each, and their rows."""
    shape = len(parts), max(len(p) for p in parts), max(p.shape[1] for p in parts)
    whole = torch.full(shape, torch.nan)
    for i, part in enumerate(parts):
        whole[i, : len(part), : part.shape[1]] = torch.from_numpy(part.astype(np.float32))
    return whole.to(device), torch.tensor([len(p) for p in parts], device=device)


def _take(whole: Tensor, tables: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return whole[tables[:, None, None], rows[:, :, None], columns[:, None, :]]


def _codes(normals: Tensor) -> Tensor:
    """Return which columns hold at most 20 whole numbers, (tables, columns)."""
    ordered = normals.nan_to_num(torch.inf).sort(1).values
    n_values = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(1)
    whole = ((normals == normals.round()) | normals.isnan()).all(1)
    return whole & (n_values <= _MAX_CODES)
