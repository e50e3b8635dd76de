"""The example in the docstring, which needs the packages of this environment."""

import doctest

import fewlier.labelling.widget


def test_the_example_runs():
    failed, attempted = doctest.testmod(fewlier.labelling.widget)
    assert attempted
    assert not failed
