"""Made-up tables of several kinds, for studies that need any number of fresh rows.

Of `numbers`, `mixed` and `counts` hardly any row is like another; of `few`, whose columns have few
values, most are.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

Make = Callable[[int, np.random.Generator], pd.DataFrame]


def numbers(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return four numbers that follow one another."""
    return pd.DataFrame(rng.normal(size=(n, 4)).cumsum(1)).add_prefix("x")


def mixed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return an amount, a count that follows it, a category, and a number with gaps."""
    amount = rng.lognormal(0, 1, n).round(2)
    city = rng.choice(["Bern", "Oslo", "Rome"], n, p=[0.6, 0.3, 0.1])
    size = pd.Series(rng.normal(size=n).round(2)).mask(rng.random(n) < 0.1)
    visits = rng.poisson(3 * amount).astype(float)
    return pd.DataFrame({"amount": amount, "visits": visits, "city": city, "size": size})


def counts(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return six counts of one cause."""
    rate = rng.gamma(3, 1, size=(n, 1)) * np.array([0.5, 1, 2, 3, 4, 5])
    return pd.DataFrame(rng.poisson(rate).astype(float)).add_prefix("k")


def few(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return three small counts of one cause, and a category: most rows repeat others."""
    rate = rng.gamma(3, 0.3, size=(n, 1)) * np.array([0.5, 1, 1.5])
    table = pd.DataFrame(rng.poisson(rate).astype(float)).add_prefix("k")
    return table.assign(kind=rng.choice(list("abc"), n, p=[0.7, 0.25, 0.05]))


TABLES: dict[str, Make] = {make.__name__: make for make in (numbers, mixed, counts, few)}


def independent(columns: int, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return independent normal numbers."""
    return pd.DataFrame(rng.normal(size=(n, columns))).add_prefix("x")


def levels(columns: int, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return independent categories of six levels."""
    return pd.DataFrame(rng.choice(list("abcdef"), (n, columns))).add_prefix("c")


ALL: dict[str, Make] = TABLES | {"levels_10": partial(levels, 10)}
"""These tables, and wide ones: `normal_30` has 30 columns."""
ALL |= {f"normal_{d}": partial(independent, d) for d in (5, 30, 60, 100)}
