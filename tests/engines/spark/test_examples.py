"""The examples in docstrings, which need the packages of this environment."""

import doctest

import pytest

import fewlier.engines.spark


@pytest.mark.usefixtures("spark")
def test_the_examples_run():
    failed, attempted = doctest.testmod(fewlier.engines.spark)
    assert attempted
    assert not failed
