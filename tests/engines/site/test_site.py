"""The site, built as `make docs` builds it, and opened in Chromium."""

import json
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import fewlier
from fewlier import plot
from fewlier_bench.studies.browser import NEEDED, PHONE, Screen, chromium, has_chromium, resize

ROOT = Path(__file__).parents[3]
EXAMPLES = [path.stem for path in sorted((ROOT / "docs" / "examples").glob("*.py"))]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the site, which runs the examples; a link that leads nowhere fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address(site):
    """Serve the site on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    if not has_chromium():
        pytest.fail(NEEDED)
    with chromium() as driver:
        yield driver


def pages(site):
    return [path for path in sorted(site.rglob("*.html")) if "files" not in path.parts]


def asked(browser):
    """Return the addresses that a page has asked for since the last call."""
    events = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"].endswith("WillBeSent")]


def test_every_page_asks_for_nothing_from_elsewhere(site, address, browser):
    found = pages(site)
    assert len(found) > 20
    for path in found:
        browser.get(f"{address}/{path.relative_to(site)}")
        assert len(browser.find_elements(By.TAG_NAME, "h1")) == 1, path
        wrong = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
        assert not wrong, path
        elsewhere = [
            url for url in asked(browser) if not url.startswith((address, "data:", "blob:"))
        ]
        assert not elsewhere, path


@pytest.mark.parametrize("screen", [Screen(), PHONE], ids=["desktop", "phone"])
def test_no_page_is_wider_than_the_screen(screen, site, browser):
    resize(browser, screen)
    for path in pages(site):
        browser.get(path.as_uri())
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width <= screen.width, path


def test_the_search_finds_a_page(address, browser):
    resize(browser, Screen())
    browser.get(f"{address}/index.html")
    field = WebDriverWait(browser, 20).until(
        lambda browser: browser.find_element(
            By.CSS_SELECTOR, "input[data-md-component=search-query]"
        )
    )
    field.click()
    field.send_keys("drift")
    results = (By.CSS_SELECTOR, ".md-search-result__link")
    WebDriverWait(browser, 20).until(lambda browser: browser.find_elements(*results))
    links = [link.get_attribute("href") for link in browser.find_elements(*results)]
    assert any("operate.html" in link for link in links)


def test_the_reference_has_every_public_name_with_an_example(site):
    text = (site / "reference.html").read_text("utf-8")
    parts = re.findall(
        r'<h3 id="[^"]+"><code>fewlier\.([\w.]+)<(.*?)(?=<h3 id=|\Z)', text, re.DOTALL
    )
    entries = dict(parts)
    names = {*fewlier.__all__, *(f"report.plots.{name}" for name in plot.__all__)}
    assert names <= set(entries)
    assert [name for name in names if "&gt;&gt;&gt;" not in entries[name]] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_shows_what_it_prints_and_draws(name, site):
    text = (site / "examples" / f"{name}.html").read_text("utf-8")
    pictures = re.findall(r'<img[^>]+src="([^"]+)"', text)
    assert pictures
    for picture in pictures:
        head = (site / "examples" / picture).read_bytes()[:8]
        assert head == b"\x89PNG\r\n\x1a\n"
    assert "Traceback" not in text
