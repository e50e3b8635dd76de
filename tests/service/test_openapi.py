"""What OpenAPI describes is what is answered."""

import re

import pytest

from fewlier.service.app import Service, routes_of
from fewlier.service.limits import Limits
from fewlier.service.openapi import describe
from fewlier.service.shelf import Served
from fewlier.service.told import Settings


@pytest.fixture
def served(detector):
    return Served("NAME", "HASH", detector.model_, {}, counts=None)


def test_every_route_is_described(served, tmp_path):
    service = Service(Settings(tmp_path, tmp_path, Limits(), None, None, 1))
    routes = routes_of(service)
    expected = {
        (route.path.replace("{name}", "NAME"), (route.methods - {"HEAD"}).pop().lower())
        for route in routes
    }
    described = describe([served], Limits(), is_folder=False)["paths"]
    assert {(path, method) for path in described for method in described[path]} == expected


def test_the_parameters_of_a_path_are_described(served):
    for path, methods in describe([served], Limits(), is_folder=False)["paths"].items():
        for about in methods.values():
            named = [one["name"] for one in about.get("parameters", []) if one["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)


def test_what_the_inference_protocol_takes_is_described(served):
    described = describe([served], Limits(), is_folder=True)["paths"]["/v2/models/NAME/infer"]
    schema = described["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert [*schema["properties"]] == ["id", "inputs", "parameters", "outputs"]
    named = schema["properties"]["outputs"]["items"]["properties"]["name"]["enum"]
    assert named == ["anomaly_score", "is_anomaly", "p_value", "reasons"]


def test_a_folder_has_no_route_without_a_name():
    assert "/score" not in describe([], Limits(), is_folder=True)["paths"]
