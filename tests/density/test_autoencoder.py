import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from fewlier import Autoencoder
from fewlier.density.rows import Rows
from fewlier.table import Encoder, Table, infer_schema


def autoencoder(frame, latent=20):
    table = Table.of(frame)
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, schema.match(table))
    generator = torch.Generator().manual_seed(0)
    density = Autoencoder(latent=latent, hidden=(12,)).build(encoder, generator)
    density.reset(generator)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return density, Rows.of(encoder.encode(schema.match(table)))


@torch.no_grad()
def outputs(density, rows):
    """Return the parameters of the conditionals, as the decoder gives them."""
    seen = []
    handle = density.decoder.register_forward_hook(lambda *call: seen.append(call[2]))
    terms = density.terms(rows, 0)
    handle.remove()
    return seen[0], terms


def test_a_real_column_has_its_squared_error_in_units_of_one_noise_level():
    x = np.random.default_rng(0).normal(100, 7, 60)
    density, rows = autoencoder(pd.DataFrame({"x": x}))
    phi, terms = outputs(density, rows)
    _, mu, width = phi.T
    assert len(width.unique()) == 1
    sigma = 0.2 * torch.exp(width / (1 + width.abs() / math.log(200)))
    expected = stats.norm.logpdf(rows.targets[:, 0], mu, sigma) - math.log(np.ptp(x))
    np.testing.assert_allclose(terms.value[:, 0], expected, rtol=1e-4, atol=1e-4)


def test_a_binary_column_has_its_cross_entropy():
    frame = pd.DataFrame({"flag": np.random.default_rng(0).integers(0, 2, 50)})
    density, rows = autoencoder(frame)
    phi, terms = outputs(density, rows)
    expected = stats.bernoulli.logpmf(rows.targets[:, 0], torch.sigmoid(phi[:, 0]))
    np.testing.assert_allclose(terms.value[:, 0], expected, rtol=1e-5, atol=1e-6)


def test_only_where_a_distribution_lies_depends_on_the_row():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=80),
            "amount": rng.lognormal(0, 2, 80),
            "n": rng.poisson(3, 80),
            "kind": rng.choice(["a", "b", "c"], 80),
        }
    )
    density, rows = autoencoder(frame)
    phi, _ = outputs(density, rows)
    varies = (phi != phi[0]).any(0)
    assert torch.equal(varies, density.joint.locates)
    fixed = density.joint.owner[~density.joint.locates].tolist()
    assert sorted(fixed) == [0, 0, 1]  # weight and width of one Gaussian, shape of one Gamma


@pytest.mark.parametrize(("n_columns", "latent", "expected"), [(1, 20, 1), (9, 20, 4), (9, 2, 2)])
def test_the_code_is_shorter_than_the_row(n_columns, latent, expected):
    table = np.random.default_rng(0).normal(size=(50, n_columns))
    density, _ = autoencoder(pd.DataFrame(table).rename(columns=str), latent)
    assert density.encoder.weights[-1].shape[-1] == expected
