"""The widget in a real JupyterLab and a real Chromium, answered by real keys.

JupyterLab takes letters for commands: `a` adds a cell, `x` cuts one, `d d` deletes one.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

CELLS = [
    """\
import numpy as np, pandas as pd
import fewlier, fewlier.labelling.widget
rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["<b>amount</b>", "hour", "items"])
table.iloc[:8, 0] += 6
session = fewlier.Session(table, path="labels.jsonl")
fewlier.labelling.widget.label(session)
""",
    "untouched = 1",
    "untouched = 2",
]
TOKEN = "of-the-test"
CELL_COUNT = "document.querySelectorAll('.jp-Notebook .jp-Cell').length"
HEADING = "document.querySelector('.fewlier-label h2')?.textContent"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(notebook, folder / "label.ipynb")
    return folder


@pytest.fixture(scope="module")
def lab(folder):
    """Start JupyterLab on the folder; yields the address of the notebook."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": TOKEN,
        "LabApp.expose_app_in_browser": True,
        "LabApp.news_url": None,
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    words += ["--allow-root"] * (os.geteuid() == 0)
    homes = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    with (folder / "lab.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *words],
            stdout=log,
            stderr=log,
            env=os.environ | homes | {"OMP_NUM_THREADS": "1"},
        )
        address = f"http://127.0.0.1:{port}"
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail((folder / "lab.log").read_text())
        yield f"{address}/lab/tree/label.ipynb?token={TOKEN}"
        server.terminate()
        server.wait(60)


@pytest.fixture(scope="module")
def page(lab, tmp_path_factory):
    """Return a browser that shows the notebook, with its first cell run."""
    paths = shutil.which("chromium"), shutil.which("chromedriver")
    if None in paths:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs Chromium and its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    profile = tmp_path_factory.mktemp("profile")
    flags = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
    for flag in (*flags, "--disable-background-networking", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(paths[1]))
    driver.set_window_size(1400, 1000)
    driver.get(lab)
    until(driver, "return window.jupyterapp?.shell.currentWidget?.context?.isReady")
    until(
        driver,
        "return jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
    )
    driver.execute_script("jupyterapp.commands.execute('notebook:run-all-cells')")
    until(
        driver, "return document.querySelector('.fewlier-label h2')?.textContent.startsWith('Row')"
    )
    yield driver
    driver.quit()


def until(driver, script, seconds=120):
    return WebDriverWait(driver, seconds).until(lambda d: d.execute_script(script))


def press(driver, *keys):
    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def row(driver):
    return driver.execute_script(f"return {HEADING}")


def n_cells(driver):
    return driver.execute_script(f"return {CELL_COUNT}")


def lines(folder):
    records = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    return [record for record in records if "answer" in record or "undo" in record]


def answer(driver, key):
    """Press a key and wait for the next row."""
    before = row(driver)
    press(driver, key)
    until(
        driver, f"return document.querySelector('.fewlier-label h2').textContent !== {before!r}", 20
    )
    return int(before.removeprefix("Row ").replace(",", ""))


def test_keys_reach_the_session_and_leave_the_cells_alone(page, folder):
    page.find_element("css selector", ".fewlier-label h2").click()
    asked = [answer(page, key) for key in ("a", "n", " ", "a", "n", "a")]
    words = ["anomaly", "normal", "skipped", "anomaly", "normal", "anomaly"]
    assert [(line["row"], line["answer"]) for line in lines(folder)] == list(
        zip(asked, words, strict=True)
    )
    press(page, "d", "d", "x", "b", "m", "y", "z", "c", "v", Keys.ENTER)  # cells, to JupyterLab
    assert n_cells(page) == len(CELLS)
    answer(page, Keys.BACKSPACE)
    assert lines(folder)[-1]["row"] == asked[-1]
    assert "undo" in lines(folder)[-1]
    assert row(page) == f"Row {asked[-1]}"
    assert n_cells(page) == len(CELLS)


def test_a_kind_is_typed_in_the_widget_and_not_in_a_cell(page, folder):
    page.find_element("css selector", ".fewlier-label h2").click()
    before = row(page)
    press(page, "1")
    press(page, *"add a x d")
    answer(page, Keys.ENTER)
    assert lines(folder)[-1]["kind"] == "add a x d"
    assert f"Row {lines(folder)[-1]['row']}" == before
    assert n_cells(page) == len(CELLS)


def test_the_style_stays_inside(page):
    """A heading of the notebook looks as it did, and names of columns are text."""
    assert page.execute_script("return document.querySelector('.fewlier-label b')") is None
    assert "<b>amount</b>" in page.execute_script(
        "return document.querySelector('.fewlier-label').textContent"
    )
    foreign = """
      const own = [...document.querySelectorAll("style")].filter((style) => style.textContent.includes(".fewlier-label"));
      const rules = own.flatMap((style) => [...style.sheet.cssRules]);
      const flat = rules.flatMap((rule) => rule.cssRules?.length ? [...rule.cssRules] : [rule]);
      return [own.length, flat.map((rule) => rule.selectorText ?? "").filter((selector) => selector && !selector.includes("fewlier-label"))];
    """  # noqa: E501 - JavaScript
    n_styles, scopes = page.execute_script(foreign)
    assert n_styles
    assert scopes == []


def test_elsewhere_the_same_keys_do_delete_cells(page):
    """Without this, the tests above would not show that keys are kept from JupyterLab."""
    page.execute_script("jupyterapp.commands.execute('notebook:enter-command-mode')")
    cell = page.find_elements("css selector", ".jp-Notebook .jp-Cell .jp-InputPrompt")[-1]
    cell.click()
    press(page, "d", "d")
    until(
        page,
        f"return document.querySelectorAll('.jp-Notebook .jp-Cell').length === {len(CELLS) - 1}",
        20,
    )
