import itertools
import math
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small
from torch import nn
from zuko.flows import MAF, NSF

from fewlier import Flow, UserError
from fewlier.density.alternatives import flow as flows
from fewlier.density.rows import Rows
from fewlier.table import Encoder, Table, infer_schema

each_kind = pytest.mark.parametrize("kind", ["maf", "nsf"])


def flow(frame, kind="nsf", n_transforms=3, spread=0.5, hidden=(12,)):
    """A density in float64, away from where training starts, and its encoder."""
    table = Table.of(frame)
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, schema.match(table))
    generator = torch.Generator().manual_seed(0)
    settings = Flow(kind=kind, n_transforms=n_transforms, hidden=hidden)
    density = settings.build(encoder, generator)
    density.reset(generator)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter += spread * torch.randn(parameter.shape, generator=generator)
    return density.double(), encoder


def encode(encoder, frame):
    rows = Rows.of(encoder.encode(encoder.schema.match(Table.of(frame))))
    return rows._replace(inputs=rows.inputs.double(), targets=rows.targets.double())


def reals(n=50, d=2):
    return pd.DataFrame({f"x{j}": np.random.default_rng(j).normal(j, 1 + j, n) for j in range(d)})


class Hyper(nn.Module):
    """One of our networks in the place of zuko's own."""

    def __init__(self, network, masks):
        super().__init__()
        self.network, self.fixed = network, masks

    def forward(self, x):
        return self.network(x.clamp(-5, 5)[None], self.fixed)[0]


@each_kind
@torch.no_grad()
def test_log_p_is_that_of_zukos_own_flow(kind):
    frame = reals(d=4)
    density, encoder = flow(frame, kind)
    rows = encode(encoder, frame)
    own = density.flow
    zuko = {"nsf": NSF, "maf": MAF}[kind](features=4, transforms=3).double()
    for t, transform in enumerate(zuko.transform.transforms):
        transform.hyper = Hyper(own.networks[t], own.masks(t))
        univariate = transform.univariate
        transform.univariate = lambda *phi, f=univariate: (
            f.func(*phi, slope=own.slope) if kind == "nsf" else f(*phi, slope=own.slope)
        )
    scale = 2 * flows.HALF_RANGE
    expected = zuko().log_prob(scale * (rows.targets - 0.5)) + 4 * math.log(scale)
    expected -= float(encoder.log_scale.sum())
    torch.testing.assert_close(density.terms(rows, 0).value.sum(-1), expected)


def line(cells, n):
    """Points around the training range of a column, and the step between them."""
    low, span = cells.min(), np.ptp(cells)
    return np.linspace(low - 0.99 * span, low + 1.99 * span, n, retstep=True)


@each_kind
@pytest.mark.parametrize("n_transforms", [1, 2, 4])
def test_one_real_column_integrates_to_one_in_its_own_units(kind, n_transforms):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(1000, 30, 50)})
    density, encoder = flow(frame, kind, n_transforms, spread=0.2)
    points, step = line(frame["x"], 20_001)
    with torch.no_grad():
        log_p = density.terms(encode(encoder, pd.DataFrame({"x": points})), 0).value[:, 0]
    assert float(log_p.exp().sum()) * step == pytest.approx(1, abs=2e-3)


@pytest.mark.slow
@each_kind
def test_every_pattern_of_gaps_among_real_columns_has_a_proper_density(kind):
    frame = reals(80)
    frame.loc[:9, "x0"] = frame.loc[5:30, "x1"] = np.nan
    density, encoder = flow(frame, kind, spread={"nsf": 0.3, "maf": 0.1}[kind])
    rate = torch.from_numpy(encoder.missing_rate)
    lines = {name: line(frame[name].dropna(), 260) for name in frame}
    mass = {}
    for gone in itertools.product([False, True], repeat=2):
        axes = [
            np.array([np.nan]) if missing else lines[name][0]
            for name, missing in zip(frame, gone, strict=True)
        ]
        steps = [lines[name][1] for name, missing in zip(frame, gone, strict=True) if not missing]
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], 1)
        rows = encode(encoder, pd.DataFrame(grid, columns=frame.columns))
        with torch.no_grad():
            terms = density.terms(rows, 0)
        value = torch.where(rows.observed, terms.value, 0).sum(-1)
        base = torch.where(rows.observed, 1 - rate, rate).log()
        presence = (terms.presence + base).sum(-1)
        # Whether cells are missing does not depend on values that come after it.
        assert float(presence.max() - presence.min()) < 1e-9
        assert float(value.exp().sum()) * math.prod(steps) == pytest.approx(1, abs=0.01)
        mass[gone] = float(presence[0].exp())
    assert sum(mass.values()) == pytest.approx(1)


def test_a_table_of_all_kinds_has_total_probability_one():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"kind": ["a", "b", "c"] * 20, "x": rng.normal(3, 2, 60), "flag": rng.integers(0, 2, 60)}
    )
    density, encoder = flow(frame)
    points, step = line(frame["x"], 4001)
    total = 0.0
    for kind, flag in itertools.product("abc", (0, 1)):
        rows = encode(encoder, pd.DataFrame({"kind": kind, "x": points, "flag": flag}))
        with torch.no_grad():
            total += float(density.terms(rows, 0).value.sum(-1).exp().sum()) * step
    assert total == pytest.approx(1, abs=2e-3)


def test_other_columns_depend_on_all_real_ones_and_real_ones_on_no_other():
    rng = np.random.default_rng(0)
    frame = reals(60, 3).assign(kind=rng.choice(["a", "b"], 60))
    density, encoder = flow(frame, hidden=(200,))
    rows = encode(encoder, frame.iloc[:1])
    with torch.no_grad():
        before = density.terms(rows, 0).value[0]
        for j in range(3):
            changed = frame.iloc[:1].copy()
            changed.iloc[0, j] += 0.5
            assert density.terms(encode(encoder, changed), 0).value[0, 3] != before[3]
        kind = "b" if frame["kind"][0] == "a" else "a"
        other = density.terms(encode(encoder, frame.iloc[:1].assign(kind=kind)), 0).value[0]
    assert torch.equal(other[:3], before[:3])


@pytest.mark.slow
def test_whether_a_real_column_is_missing_depends_on_all_gaps_before_it_and_on_no_value():
    frame = reals(d=4)
    for row, name in enumerate(frame):
        frame.loc[row, name] = np.nan
    density, encoder = flow(frame, hidden=(100,))
    rows = encode(encoder, frame)

    def log_odds(inputs):
        return density.phi(rows._replace(inputs=inputs), 0)[:, -4:].sum(0)

    jacobian = torch.autograd.functional.jacobian(log_odds, rows.inputs)  # (gap, row, input)
    values, gaps = jacobian.abs().sum(1).split(4, -1)
    assert not values.any()
    assert torch.equal(gaps > 0, torch.ones(4, 4).tril(-1) > 0)


def test_repeated_values_do_not_reach_any_likelihood():
    table = np.random.default_rng(0).integers(0, 30, (300, 2)).astype(float)
    settings = {"density": "flow", "selection": "best", "columns": "real", "hidden": (32,)}
    detector = small(max_epochs=40, **settings).fit(table)
    # A mixture of Gaussians has at most a density of 400 per range.
    assert detector.score_samples(table).max() < 2 * math.log(400 / 30) + 2


def test_without_zuko_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "zuko", None)
    with pytest.raises(UserError, match=r"pip install 'fewlier\[flow\]'"):
        small(density="flow").fit(reals())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("kind", "rnvp", "one of"),
        ("kind", None, "one of"),
        ("n_transforms", 101, "at most 100"),
        ("n_transforms", 0, "an integer from 1"),
    ],
)
def test_a_flow_that_there_is_not_is_refused(name, value, expected):
    with pytest.raises(UserError, match=f"{name}' must be .*{expected}"):
        small(density="flow", **{name: value}).fit(reals())
