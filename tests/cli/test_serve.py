"""What `fewlier serve` refuses before it serves; tests/service has the service itself."""

import sys

import pytest
from processes import run


def test_a_service_for_others_needs_a_token(model, fewlier, tmp_path):
    for words, message in (
        (["--host", "0.0.0.0"], "must ask for a token"),
        (["--host", "0.0.0.0", "--no-token"], "by which names it is asked"),
        (["--token-file", tmp_path / "none"], "--token-file must name a file"),
    ):
        done = fewlier("serve", model, *words)
        assert (done.code, message in done.err) == (2, True)
    short = tmp_path / "short"
    short.write_text("abc")
    done = fewlier("serve", model, "--token-file", short)
    assert "at least 16" in done.err
    assert "abc" not in done.err


def test_a_file_that_is_no_model_is_refused_before_it_is_served(fewlier, tmp_path):
    (tmp_path / "a.fewlier").write_bytes(b"garbage")
    for path, message in (
        (tmp_path / "a.fewlier", "not one that fewlier has written"),
        (tmp_path / "none.fewlier", "cannot be read"),
        (tmp_path, "Is a directory"),
    ):
        done = fewlier("serve", path, "--port", 0)
        assert (done.code, message in done.err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["fastapi", "prometheus_client", "uvicorn"])
def test_a_package_that_is_not_installed_is_named(model, package):
    code = f"""
import sys
sys.modules["{package}"] = None
from fewlier.cli import run
run()
"""
    done = run("serve", model, "--port", "0", command=(sys.executable, "-c", code))
    assert (done.returncode, f"{package} is not installed" in done.stderr) == (2, True)
    assert "fewlier[serve]" in done.stderr
