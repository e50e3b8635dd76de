import math

import numpy as np
import pandas as pd
import pytest
import torch
from factories import small

from fewlier import AnomalyDetector, Vae
from fewlier.density.base import mean_over_passes
from fewlier.density.rows import Rows
from fewlier.table import Encoder, Table, infer_schema


def rows_and_encoder(n=40):
    rng = np.random.default_rng(0)
    x = rng.normal(5, 2, n)
    frame = pd.DataFrame(
        {"x": x, "y": x + rng.normal(0, 0.3, n), "kind": rng.choice(["a", "b"], n)}
    )
    table = Table.of(frame)
    schema = infer_schema(table)
    encoder = Encoder.fit(schema, table)
    rows = Rows.of(encoder.encode(table))
    return rows._replace(inputs=rows.inputs.double(), targets=rows.targets.double()), encoder


def vae(encoder, n_samples, latent, eps_seed=0):
    """A density in float64, away from where training starts; only its samples vary by the seed."""
    settings = Vae(latent=latent, n_samples=n_samples, hidden=(12,), n_components=2)
    density = settings.build(encoder, torch.Generator().manual_seed(eps_seed))
    generator = torch.Generator().manual_seed(1)
    density.reset(generator)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return density.double()


@torch.no_grad()
def log_weights(density, rows):
    """Return log p(x, z_s) - log q(z_s | x) of every row and sample, shape (n, s).

    In one go, with the samples kept for scoring given as noise.
    """
    s, n = density.n_passes, len(rows.targets)
    terms = density.terms(
        rows.take(torch.arange(n).expand(s, n))._replace(
            noise=density.eps[:, None].expand(s, n, -1)
        ),
        0,
    )
    return (terms.value.sum(-1) + terms.rest).T


def test_noise_works_as_the_samples_kept_for_scoring_do():
    rows, encoder = rows_and_encoder(7)
    density = vae(encoder, 5, 3)
    with torch.no_grad():
        passes = [density.terms(rows, s) for s in range(5)]
    expected = torch.stack([terms.value.sum(-1) + terms.rest for terms in passes], -1)
    torch.testing.assert_close(log_weights(density, rows), expected)


@torch.no_grad()
def integrated_log_p(density, rows, latent):
    """Return log of the integral of p(z) p(x | z) over a grid of codes."""
    axis = torch.linspace(-6, 6, 241 if latent == 2 else 4001, dtype=torch.float64)
    z = torch.cartesian_prod(*[axis] * latent).reshape(-1, latent)
    log_prior = -0.5 * (z * z).sum(-1) - 0.5 * latent * math.log(2 * math.pi)
    phi = density.decoder(z)
    step = latent * math.log(float(axis[1] - axis[0]))
    found = []
    for i in range(len(rows.targets)):
        one = rows.take(torch.full((len(z),), i))
        joint = density.joint.terms(phi, one).value.sum(-1) + log_prior
        found.append(torch.logsumexp(joint, 0) + step)
    return torch.stack(found)


@pytest.mark.slow
@pytest.mark.parametrize("latent", [1, 2])
def test_many_importance_samples_come_close_to_the_integral_over_codes(latent):
    rows, encoder = rows_and_encoder(6)
    density = vae(encoder, 40_000, latent)
    found = mean_over_passes(log_weights(density, rows))
    expected = integrated_log_p(density, rows, latent)
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("latent", [1, 2])
def test_the_bound_is_a_bound_and_gets_tighter_with_more_samples(latent):
    rows, encoder = rows_and_encoder(8)
    exact = integrated_log_p(vae(encoder, 1, latent), rows, latent)
    # From one long list of samples, bounds of 2, 8 and 32 samples, each many times over.
    weights = log_weights(vae(encoder, 64_000, latent), rows)
    means = [
        mean_over_passes(weights.unflatten(-1, (-1, size))).mean(-1) for size in (2, 8, 32, 320)
    ]
    gaps = [float((exact - mean).mean()) for mean in means]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] > -0.01


@pytest.mark.slow
def test_the_mean_over_passes_of_the_logs_is_the_evidence_bound():
    rows, encoder = rows_and_encoder(10)
    density = vae(encoder, 1000, 3)
    with torch.no_grad():
        mu, log_sigma = density.encoder(rows.inputs).chunk(2, -1)
        log_sigma = log_sigma / (1 + log_sigma.abs() / 7)
        rests = torch.stack([density.terms(rows, s).rest for s in range(density.n_passes)])
    divergence = 0.5 * (mu**2 + (2 * log_sigma).exp() - 1 - 2 * log_sigma).sum(-1)
    spread = rests.std(0) / math.sqrt(density.n_passes)
    assert ((rests.mean(0) + divergence).abs() < 5 * spread + 1e-9).all()


@pytest.mark.slow
def test_more_samples_tighten_the_score_of_a_fitted_model():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 6))
    settings = {"density": "vae", "selection": "best", "latent": 2, "max_epochs": 20}
    bounds = [
        small(n_samples=n, **settings).fit(table).score_samples(table).mean() for n in (1, 4, 64)
    ]
    assert bounds[0] < bounds[1] < bounds[2]


def test_the_papers_autoencoder_is_a_setting():
    table = np.random.default_rng(0).normal(size=(100, 3))
    detector = AnomalyDetector.as_published()
    detector.set_params(density=Vae(n_components=1), training__lambdas=(0,), training__max_epochs=2)
    detector.set_params(false_alarm_rate=0.2, random_state=0).fit(table)
    density = detector.model_.ensemble.density
    assert [tuple(w.shape) for w in density.encoder.weights] == [(3, 100), (100, 40)]
    assert [tuple(w.shape) for w in density.decoder.weights] == [(20, 100), (100, 9)]
    assert density.joint.n_components == 1
