"""Densities as objects: small estimators that a detector holds, copies and searches through."""

import numpy as np
import pytest
from factories import small
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from fewlier import AnomalyDetector, Autoencoder, Flow, FormatError, Made, UserError, Vae
from fewlier.density.base import skeleton
from fewlier.table import Encoder, Table, infer_schema

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(120, 3)), np.arange(120) < 6


def encoder_of(X):
    table = Table.of(X)
    schema = infer_schema(table)
    return Encoder.fit(schema, schema.match(table))


@pytest.mark.parametrize("settings", [Made(), Vae(), Flow(), Autoencoder()])
def test_a_density_is_shown_copied_and_set_as_an_estimator(settings):
    assert repr(settings) == f"{type(settings).__name__}()"
    detector = clone(AnomalyDetector(density=settings).set_params(density__hidden=(7, 5)))
    assert detector.density.hidden == detector.get_params()["density__hidden"] == (7, 5)
    assert repr(detector.density) == f"{type(settings).__name__}(hidden=(7, 5))"
    with pytest.raises(TypeError):
        type(settings)((7, 5))  # keywords only


def test_a_density_given_by_name_takes_sizes_too():
    detector = AnomalyDetector(density="vae").set_params(density__latent=5)
    assert repr(detector.density) == "Vae(latent=5)"
    detector.set_params(density="flow", density__kind="nsf")
    assert repr(detector.density) == "Flow(kind='nsf')"
    detector.set_params(density="made")
    assert detector.density == "made"


def test_a_size_that_a_density_does_not_have_is_an_error():
    with pytest.raises(ValueError, match="'latent' for estimator Made"):
        AnomalyDetector().set_params(density__latent=5)
    with pytest.raises(TypeError, match="latent"):
        Made(latent=5)
    with pytest.raises(UserError, match=r"'density' must be one of .*; got 'nade'"):
        AnomalyDetector(density="nade").set_params(density__latent=5)


@pytest.mark.parametrize("density", ["vae", Vae(n_samples=2)])
def test_a_search_goes_through_the_sizes_of_a_density(density):
    detector = small(max_epochs=1, lambdas=(0,)).set_params(density=density)
    grid = {"density__latent": [1, 2], "density__hidden": [(4,)]}
    search = GridSearchCV(detector, grid, scoring="roc_auc", cv=2, error_score="raise")
    search.fit(X, Y)
    found = search.best_estimator_.model_.ensemble.density
    assert found.settings.latent in (1, 2)
    assert found.n_noise == found.settings.latent


def test_a_fit_leaves_the_settings_as_they_were_given():
    given = Made().set_params(hidden=[np.int64(6)], n_orderings=np.int8(3))
    detector = small(density=given, max_epochs=1).fit(X, Y)
    assert detector.density is given
    assert given.hidden == [np.int64(6)]
    assert repr(detector.model_.ensemble.density.settings) == "Made(hidden=(6,), n_orderings=3)"


def test_the_published_detector_has_the_settings_of_the_paper():
    detector = AnomalyDetector.as_published()
    training = detector.training
    assert training.lambdas == (0, 0.1, 1, 10, 100, 1000, 10000)
    assert detector.density.get_params() == {
        "hidden": (500,),
        "n_orderings": 10,
        "n_components": 3,
    }
    assert (training.max_epochs, training.patience, training.learning_rate) == (100, None, 1e-3)
    assert (detector.columns, detector.selection) == ("real", "best")
    detector.set_params(density__hidden=(8,), training__max_epochs=2, false_alarm_rate=0.2).fit(
        X, Y
    )
    assert detector.score_unit_ == "nats"
    assert {line.criterion_name for line in detector.history_} == {"auc"}
    np.testing.assert_allclose(detector.score_samples(X), -detector.anomaly_score(X))


@pytest.mark.parametrize(
    "settings",
    [
        Made(hidden=(2**31 - 1,)),
        Made(n_orderings=2**31 - 1),
        Vae(latent=2**31 - 1),
        Flow(hidden=(2**31 - 1,), n_transforms=100),
        Autoencoder(latent=2**31 - 1, hidden=(2**20,) * 100),
    ],
    ids=str,
)
def test_a_skeleton_of_any_size_takes_no_memory(settings):
    density = skeleton(settings.checked(), encoder_of(X), n_numbers=1000)
    assert sum(array.numel() for array in density.state_dict().values()) > 10**6
    assert all(array.is_meta for array in density.state_dict().values())
    assert sum(array.numel() for array in density.buffers() if not array.is_meta) < 1000


@pytest.mark.parametrize(
    "settings",
    [
        Made(n_components=2**31 - 1),
        Made(hidden=(2**31 - 1,) * 100),
        Vae(n_samples=2**31 - 1, latent=2**31 - 1),
    ],
    ids=str,
)
def test_sizes_that_no_file_can_hold_are_refused(settings):
    with pytest.raises(FormatError, match="sizes of its density"):
        skeleton(settings.checked(), encoder_of(X), n_numbers=1000)
