"""The Dockerfile: what can be known of it without building it."""

import json
import re
import tomllib
from pathlib import Path

from typer.main import get_command

from fewlier.cli.app import app

ROOT = Path(__file__).parents[1]
LINES = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PAGE = (ROOT / "docs" / "OPERATE.md").read_text("utf-8")


def arguments(instruction):
    """Return what follows an instruction, in each of its lines."""
    return [line.split(maxsplit=1)[1] for line in LINES if line.startswith(f"{instruction} ")]


def test_what_is_copied_is_in_the_repository_and_in_the_sdist():
    sdist = BUILD["tool"]["hatch"]["build"]["targets"]["sdist"]
    shipped = {*sdist["include"], "/pyproject.toml", "/LICENSE"}
    sources = [source for line in arguments("COPY") for source in line.split()[:-1]]
    assert "src" in sources
    for source in sources:
        assert (ROOT / source).exists()
        assert f"/{source}" in shipped


def test_the_service_starts_with_options_that_there_are():
    (line,) = arguments("CMD")
    program, name, *words = json.loads(line)
    assert program == "fewlier"
    command = get_command(app).commands[name]
    options = command.make_context(name, words).params
    assert options["model"] == Path("/models/fraud.fewlier")
    assert (options["host"], options["port"]) == ("0.0.0.0", 8000)
    assert arguments("EXPOSE") == ["8000"]
    for path in (options["model"].parent, options["token_file"]):
        assert f":{path}:ro" in PAGE


def test_it_does_not_run_as_root():
    assert [int(user) for user in arguments("USER")] == [10001]
    assert [line.split()[0] for line in LINES if line][-1] == "CMD"


def test_whether_it_is_well_is_asked_where_no_token_is_needed():
    (line,) = arguments("HEALTHCHECK")
    *_, code = json.loads(line.split("CMD ")[1])
    compile(code, "HEALTHCHECK", "exec")
    assert "http://127.0.0.1:8000/health/ready" in code


def test_what_a_service_needs_is_installed():
    assert "serve" in BUILD["project"]["optional-dependencies"]
    assert "pip install --no-cache-dir '.[serve]'" in arguments("RUN")
