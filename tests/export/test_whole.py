"""What becomes an ONNX graph says what the library says, before it becomes one.

What onnxruntime makes of the graph is tested in tests/engines/onnx.
"""

import json
import math
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small, visits
from graphs import MODELS, calls, dates_of, stars, stays, tensors_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special
from torch.utils._python_dispatch import TorchDispatchMode

from fewlier.errors import UserError
from fewlier.export.onnx.check import feed, made_up
from fewlier.export.onnx.columns import NO_CODE, NO_DATE, UNSEEN, Encoding, inputs_of
from fewlier.export.onnx.export import export, facts_of, operations_of, trace
from fewlier.export.onnx.operations import log_gamma, search_sorted
from fewlier.export.onnx.whole import Whole
from fewlier.score.scorer import Scorer
from fewlier.table import Table
from fewlier.table.cells import MISSING

ARRAYS = ("inputs", "targets", "observed", "impossible")


@pytest.fixture(scope="module")
def models():
    """Each model by name, fitted when a test first asks for it."""
    return cache(lambda name: MODELS[name]().model_)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_rows_are_encoded_bit_for_bit(models, name):
    model = models(name)
    table, columns = made_up(model.encoder)
    expected, found = (
        model.encoder.encode(table),
        Encoding(model.encoder)(*tensors_of(model, columns)),
    )
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(found, array).numpy(), getattr(expected, array))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_scores_p_values_and_decisions_are_those_of_the_library(models, name):
    model = models(name)
    table, columns = made_up(model.encoder)
    with torch.no_grad():
        found = Whole(model).eval()(*tensors_of(model, columns))
    scores = model.score(model.encoder.encode(table))
    np.testing.assert_allclose(found.anomaly_score, scores, rtol=2e-5, atol=2e-5)
    again = found.anomaly_score.numpy()
    np.testing.assert_array_equal(found.p_value, model.calibration.p_value(again))
    np.testing.assert_array_equal(found.is_anomaly, again > model.calibration.threshold)
    assert len(np.unique(scores)) > 100


@pytest.mark.slow
def test_where_many_rows_are_as_near_the_graph_takes_the_neighbours_of_the_library(models):
    model, rows = models("stars"), stars(seed=1).mask(np.eye(600, 5) == 1).astype(float)
    matched = model.encoder.schema.match(Table.of(rows))
    with torch.no_grad():
        found = Whole(model).eval()(*tensors_of(model, feed(model.encoder, matched, {})))
    scores = model.score(model.encoder.encode(matched))
    np.testing.assert_allclose(found.anomaly_score, scores, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_dates_are_microseconds_by_the_clock(models):
    model, rows = models("stays"), stays(seed=2, n=60)
    rows.loc[0, "begun"] = pd.Timestamp("1724-05-05 10:00")
    matched = model.encoder.schema.match(Table.of(rows))
    begun = rows["begun"].to_numpy("datetime64[us]").astype(np.int64)
    assert (begun == NO_DATE).any()
    columns = feed(model.encoder, matched, {"begun": begun})
    found = Encoding(model.encoder)(*tensors_of(model, columns))
    expected = model.encoder.encode(matched)
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(found, array).numpy(), getattr(expected, array))
    assert expected.impossible[0].any()


@pytest.mark.slow
def test_zoned_dates_are_in_utc_and_their_clock_is_an_input(models):
    model, rows = models("calls"), calls(seed=2, n=60)
    rows.loc[:1, "begun"] = ["2024-01-08T23:30:00-05:30", "2024-01-08T23:30:00+02:00"]
    moments, offsets = dates_of(rows["begun"])
    matched = model.encoder.schema.match(Table.of(rows))
    columns = feed(model.encoder, matched, {"begun": moments, "begun.offset": offsets})
    found = Encoding(model.encoder)(*tensors_of(model, columns))
    expected = model.encoder.encode(matched)
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(found, array).numpy(), getattr(expected, array))
    in_utc = columns | {"begun.offset": np.zeros_like(offsets)}
    assert not np.array_equal(
        Encoding(model.encoder)(*tensors_of(model, in_utc)).inputs, found.inputs
    )


@pytest.mark.slow
def test_made_up_rows_of_zoned_dates_have_many_offsets(models):
    _, columns = made_up(models("calls").encoder)
    assert len(np.unique(columns["begun.offset"])) > 100


@pytest.mark.slow
def test_an_input_for_offsets_makes_room_for_a_column_of_that_name():
    rows = calls(n=60).assign(**{"begun.offset": np.arange(60.0)})
    encoder = small(max_epochs=1).fit(rows).model_.encoder
    assert [one.name for one in inputs_of(encoder)][-2:] == ["begun.offset", "begun.offset_"]


@pytest.mark.slow
def test_columns_with_the_name_of_an_output_are_refused():
    rows = visits().rename(columns={"age": "p_value"})
    model = small(max_epochs=1).fit(rows).model_
    with pytest.raises(UserError, match="found p_value"):
        trace(model)


@pytest.mark.slow
def test_a_model_on_a_gpu_is_refused(models, tmp_path):
    model = models("visits")
    with (
        patch.object(Scorer, "device", torch.device("cuda")),
        pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES= fewlier export"),
    ):
        export(model, tmp_path / "m.onnx", is_checked=False)
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["stays", "calls", "best", "flow, splines"])
def test_no_number_of_a_formula_is_rounded(models, name):
    """torch.onnx writes plain numbers as float32, also beside tensors of float64."""
    rounded = set()
    for node in operations_of(models(name)).graph.nodes:
        tensors = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
        if torch.float64 in [getattr(one, "dtype", None) for one in tensors]:
            plain = [value for value in node.args if isinstance(value, float)]
            rounded |= {v for v in plain if abs(v) < 1e30 and abs(float(np.float32(v)) - v) > 1e-12}
    assert not rounded


class Largest(TorchDispatchMode):
    """Keeps the size of the largest tensor that is computed inside the block."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.size = max(self.size, found.numel())
        return found


@pytest.mark.slow
def test_p_values_by_many_normals_take_little_memory(models):
    model = models("payments")
    table, columns = made_up(model.encoder)
    scores = model.score(model.encoder.encode(table))
    many = np.linspace(scores.min(), scores.max(), 100_000)
    model = replace(model, calibration=replace(model.calibration, normal_scores=many))
    whole, n = Whole(model).eval(), table.n_rows
    with torch.no_grad(), Largest() as largest:
        found = whole(*tensors_of(model, columns))
    assert largest.size < n * len(many) / 50
    expected = model.calibration.p_value(found.anomaly_score.numpy())
    np.testing.assert_array_equal(found.p_value, expected)


@given(
    arrays(np.float32, (3, 7), elements=st.integers(-4, 4)),
    arrays(np.float32, (3, 5), elements=st.integers(-9, 9)),
    st.integers(1, 7),
)
def test_a_search_finds_what_torch_finds(values, x, m):
    values = torch.from_numpy(np.sort(values[:, :m], axis=1))
    x = torch.from_numpy(x) / 2
    assert torch.equal(search_sorted(values, x), torch.searchsorted(values, x))


@pytest.mark.slow
def test_categories_are_codes(models):
    model = models("payments")
    rows = pd.DataFrame({"amount": 50.0, "visits": 6.0, "city": ["Bern", None, "Rom"]})
    columns = feed(model.encoder, model.encoder.schema.match(Table.of(rows)), {})
    codes = next(one.codes for one in inputs_of(model.encoder) if one.name == "city")
    assert columns["city"].tolist() == [codes["Bern"], NO_CODE, UNSEEN]


@pytest.mark.slow
def test_metadata_say_which_texts_the_library_takes_for_missing(models):
    model = models("payments")
    facts = json.loads(json.dumps(facts_of(model)))
    codes = next(one["codes"] for one in facts["inputs"] if one["name"] == "city")
    cities = ["Bern", "Rom", "bern", "none", "-", "Na", *(f"{a}{b}" for a in MISSING for b in " x")]
    rows = pd.DataFrame({"amount": 50.0, "visits": 6.0, "city": [*cities, *MISSING]})
    by_library = feed(model.encoder, model.encoder.schema.match(Table.of(rows)), {})["city"]
    by_metadata = [
        NO_CODE if city.strip() in facts["missing"] else codes.get(city, UNSEEN)
        for city in rows["city"]
    ]
    assert by_metadata == by_library.tolist()
    assert {NO_CODE, UNSEEN} < set(by_metadata)


@given(st.floats(1e-3, 1e9))
def test_log_gamma_is_that_of_scipy(x):
    found = float(log_gamma(torch.tensor([x], dtype=torch.float64)))
    assert math.isclose(found, special.gammaln(x), rel_tol=1e-11, abs_tol=1e-10)
