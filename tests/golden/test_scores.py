import pytest
from golden.scores import CASES, differences, expected, observe

# Training amplifies rounding: processors that sum in another order come out up to 4e-7 apart, with
# every decision the same. A gradient that hung on a last bit once moved contributions by 1e-4.
TOLERANCE = 1e-5


@pytest.mark.parametrize("name", CASES)
def test_a_fit_scores_as_it_did(name):
    assert list(differences(observe(name), expected()[name], TOLERANCE)) == []
