"""Tables of many columns: what a fit says, or refuses, before it trains."""

import numpy as np
import pytest
import torch
from factories import payments, small

from fewlier import FewlierWarning, Made, UserError
from fewlier.fitting import fit, recipe
from fewlier.table import Encoder, Table, infer_schema
from fewlier.training.stack import bytes_to_train

FEATURES = payments()[["amount", "visits", "city"]]


def never(share):
    raise AssertionError(f"trained {share:.0%}")


def test_more_columns_than_a_model_has_room_for_are_refused(monkeypatch):
    monkeypatch.setattr(recipe, "MAX_COLUMNS", 2)
    with pytest.raises(UserError, match=r"at most 2 columns to learn from; got 3. Leave out"):
        small().fit(FEATURES, progress=never)


def test_a_fit_that_takes_more_memory_than_there_is_is_refused_before_it_starts(monkeypatch):
    monkeypatch.setattr(fit, "memory_of_machine", lambda: 1000)
    with pytest.raises(UserError, match=r"3 columns and . members takes? .*Leave out"):
        small().fit(FEATURES, progress=never)


def test_a_fit_that_takes_much_memory_says_so_before_it_starts(monkeypatch):
    monkeypatch.setattr(fit, "MUCH_MEMORY", 1000)
    with (
        pytest.warns(FewlierWarning, match=r"3 columns and . members takes? about"),
        pytest.raises(AssertionError, match="trained 0%"),
    ):
        small().fit(FEATURES, progress=never)


def test_memory_grows_with_columns_and_with_members_beyond_a_stack():
    def needed(n_columns, n_members):
        table = Table.of(np.random.default_rng(0).normal(size=(50, n_columns)))
        encoder = Encoder.fit(infer_schema(table), table)
        return bytes_to_train(Made(n_orderings=1).build(encoder, torch.Generator()), n_members)

    few, more = needed(100, 10), needed(400, 10)
    assert 3.9 < more / few < 4.1
    assert needed(400, 1000) > 20 * more


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 9 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate"),
    ],
)
def test_a_fit_that_runs_out_of_memory_says_what_to_do(error):
    def fail(*_):
        raise error

    with pytest.raises(UserError, match="ran out of memory"):
        small().fit(FEATURES, progress=fail)


def test_another_error_of_the_same_type_is_left_alone():
    def fail(*_):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        small().fit(FEATURES, progress=fail)
