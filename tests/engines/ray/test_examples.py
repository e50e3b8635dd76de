"""The example in the docstring, which needs the packages of this environment."""

import doctest

import pytest

import fewlier.engines.ray


@pytest.mark.usefixtures("cluster")
def test_the_example_runs():
    failed, attempted = doctest.testmod(fewlier.engines.ray)
    assert attempted
    assert not failed
