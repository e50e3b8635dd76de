"""Pages to look at: of plain payments, and of a table whose every text is hostile."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from factories import FEATURES, payments, small

from fewlier.files.reading import RowsInMemory
from fewlier.report.facts import gather
from fewlier.report.page import render
from fewlier.table.label_column import LabelColumn

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "\"'><img src=x onerror=window.hacked=1>",
    "<!-- & -->",
    "{{7*7}}",
    "${7*7}",
    r"$\frac{1}{",
    "javascript:window.hacked=1",
    "שלום עולם",
    "\u202egnp.exe",
    "🦊 fox",
    "a\nb\tc",
    "x" * 5000,
]


def hostile_table(n=120):
    rng = np.random.default_rng(0)
    is_odd = np.arange(n) % 12 == 0
    cells = {name: rng.normal(size=n) + 5 * is_odd for name in HOSTILE}
    cells["<b>category</b>"] = rng.choice(HOSTILE, n)
    cells["id <i>"] = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)]
    return pd.DataFrame(cells).assign(**{"<u>label</u>": is_odd.astype(float)})


def of_table(detector, rows, label=None, name="new.csv", model="fraud.fewlier"):
    """Gather from a table in memory."""
    file = RowsInMemory(pa.Table.from_pandas(rows, preserve_index=False), name)
    column = None if label is None else LabelColumn(label)
    return gather(detector, file, column, source=name, model=model, progress=lambda _: None)


@pytest.fixture(scope="session")
def detector():
    rows = payments()
    return small().fit(rows[FEATURES], rows["fraud"])


@pytest.fixture(scope="session")
def facts(detector):
    return of_table(detector, payments(400, seed=1), "fraud")


@pytest.fixture(scope="session")
def hostile_facts():
    rows = hostile_table()
    detector = small(max_epochs=2).fit(rows.drop(columns=["id <i>", "<u>label</u>"]))
    return of_table(detector, rows, "<u>label</u>", name=HOSTILE[1], model=HOSTILE[2])


@pytest.fixture(scope="session")
def html(facts):
    return render(facts)


@pytest.fixture(scope="session")
def hostile_html(hostile_facts):
    return render(hostile_facts)


@pytest.fixture(scope="session")
def facts_of():
    return of_table


@pytest.fixture(scope="session")
def hostile_texts():
    return HOSTILE
