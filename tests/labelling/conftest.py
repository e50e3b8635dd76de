"""A session behind a page, about a table of which much is hostile."""

import numpy as np
import pandas as pd
import pytest
from labelling.tables import mixed

from fewlier import Session
from fewlier.errors import LeftOutWarning
from fewlier.labelling.page.api import PageApi

HOSTILE = "<img src=x onerror=window.hacked=1>"


def shop(n=240):
    """Return a table with columns of every kind, markup in names and cells, and long cells."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(mixed(n, seed=1)).rename(columns={"shop": f"shop {HOSTILE}"})
    table["weight"] = rng.normal(size=n).round(3)
    table.loc[:23, "weight"] += 9
    table.loc[:11, "visits"] += 20
    table["note"] = [
        f"{HOSTILE} {word} " * (1 + 200 * (i == 2)) for i, word in enumerate(table["note"])
    ]
    return table


def open_session(path=None, **changes):
    """Open a session without fits in the background, which would take a core."""
    with pytest.warns(LeftOutWarning):
        return Session(shop(), path=path, **{"fit_every": None} | changes)


@pytest.fixture
def session(tmp_path):
    with open_session(tmp_path / "labels.jsonl") as session:
        yield session


@pytest.fixture
def api(session, tmp_path):
    return PageApi(session, name="shop.csv", model_path=tmp_path / "shop.fewlier")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """Return a api whose session no test may answer."""
    with open_session(tmp_path_factory.mktemp("untouched") / "labels.jsonl") as session:
        api = PageApi(session, name="shop.csv")
        yield api
        assert not session.history
