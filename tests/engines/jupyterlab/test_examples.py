"""The example in the docstring, which needs the packages of this environment."""

import doctest

import fewlier.notebook


def test_the_example_runs():
    failed, attempted = doctest.testmod(fewlier.notebook)
    assert attempted
    assert not failed
