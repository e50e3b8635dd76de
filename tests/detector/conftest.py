"""Detectors that several test files look at."""

import pytest
from factories import small
from patients import LABELS, SELECTIONS, patients, with_missing_cells


@pytest.fixture(scope="session", params=SELECTIONS)
def detector(request):
    return small(selection=request.param, columns={"visits": "count"}).fit(patients(), LABELS)


@pytest.fixture(scope="session", params=SELECTIONS)
def detector_of_gaps(request):
    """Fitted to a table with missing cells in every column."""
    return small(selection=request.param).fit(with_missing_cells(patients()), LABELS)
