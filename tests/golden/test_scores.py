import pytest
from golden.scores import CASES, differences, expected, observe

# Other processors round otherwise; on the machine that wrote the file, see scores.py.
TOLERANCE = 1e-4


@pytest.mark.parametrize("name", CASES)
def test_a_fit_scores_as_it_did(name):
    assert list(differences(observe(name), expected()[name], TOLERANCE)) == []
