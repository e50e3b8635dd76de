"""tools/audit.py: a vulnerability fails the build, an unreachable database does not."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

AUDIT = Path(__file__).parents[1] / "tools" / "audit.py"


@contextmanager
def advisories(answer, status=200):
    """Serve one answer to every question, as the OSV database would, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def audit(tmp_path, url, pins="jinja2==2.10\n"):
    path = tmp_path / "pins.txt"
    path.write_text(pins)
    command = [sys.executable, AUDIT, path, "-s", "osv", "--osv-url", url, "--timeout", "5"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


VULNERABLE = {
    "vulns": [
        {
            "id": "GHSA-462w-v97r-4m45",
            "summary": "Sandbox escape",
            "affected": [
                {
                    "package": {"name": "jinja2", "ecosystem": "PyPI"},
                    "ranges": [
                        {
                            "type": "ECOSYSTEM",
                            "events": [{"introduced": "0"}, {"fixed": "2.10.1"}],
                        }
                    ],
                }
            ],
        }
    ]
}


def test_a_known_vulnerability_fails(tmp_path):
    with advisories(VULNERABLE) as url:
        done = audit(tmp_path, url)
    assert done.returncode == 1
    assert "jinja2 2.10: GHSA-462w-v97r-4m45, fixed in 2.10.1" in done.stdout


def test_packages_without_advisories_pass(tmp_path):
    with advisories({}) as url:
        done = audit(tmp_path, url)
    assert done.returncode == 0
    assert done.stdout == "audit: no known vulnerability in 1 of 1 packages\n"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_database_that_does_not_answer_is_one_line_and_passes(is_there, tmp_path):
    with advisories({}, status=503) as url:
        done = audit(tmp_path, url if is_there else "http://127.0.0.1:9/v1/query")
    assert done.returncode == 0, done.stdout
    assert done.stdout == "audit: SKIPPED, the advisory database cannot be reached\n"


def test_a_database_that_knows_no_package_is_no_success(monkeypatch):
    monkeypatch.syspath_prepend(AUDIT.parent)
    from audit import verdict

    skipped = {"dependencies": [{"name": "jinja2", "skip_reason": "not found"}]}
    message, code = verdict(json.dumps(skipped), "")
    assert (message, code) == (
        "audit: SKIPPED, the advisory database knows none of the packages",
        0,
    )


def test_pins_that_cannot_be_read_fail(tmp_path):
    done = audit(tmp_path, "http://127.0.0.1:9/v1/query", pins="jinja2>2\n")
    assert done.returncode == 1
    assert "audit: pip-audit failed" in done.stdout


@pytest.mark.parametrize("name", ["ConnectionError", "ProxyError", "SSLError", "ReadTimeout"])
def test_any_way_of_not_being_connected_is_a_skip(name, monkeypatch):
    monkeypatch.syspath_prepend(AUDIT.parent)
    from audit import verdict

    errors = f"Traceback (most recent call last):\n  ...\nrequests.exceptions.{name}: no way there"
    assert verdict("", errors) == (
        "audit: SKIPPED, the advisory database cannot be reached",
        0,
    )
