"""Models to serve, fitted once."""

import pytest
from factories import FEATURES, payments, small


@pytest.fixture(scope="session")
def detector():
    """A detector of payments: two kinds of numbers, and text."""
    rows = payments()
    return small().fit(rows[FEATURES], rows["fraud"])


@pytest.fixture(scope="session")
def other():
    """Another detector of the same columns."""
    rows = payments(seed=5)
    return small(random_state=3).fit(rows[FEATURES], rows["fraud"])


@pytest.fixture(scope="session")
def path(detector, tmp_path_factory):
    """The file of the detector."""
    path = tmp_path_factory.mktemp("model") / "pay.fewlier"
    detector.save(path)
    return path
