"""Engines that are not installed; tests/engines has those that are."""

import pytest

from fewlier import UserError
from fewlier.engines import ray, spark


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: ray.RayWorkers("m.fewlier"), r"pip install 'fewlier\[ray\]'"),
        (lambda: spark.score(None, "m.fewlier"), r"Java 17.*pip install 'fewlier\[spark\]'"),
    ],
    ids=["ray", "spark"],
)
def test_what_is_not_installed_is_said_with_the_remedy(use, message):
    with pytest.raises(UserError, match=message):
        use()
