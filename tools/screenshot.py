"""Picture pages for the documents: `python tools/screenshot.py docs/figures`.

label.png is the labelling page: a made-up table of orders is answered truly, by keys. report.png is
the report on the built-in table of tumours. Both are opened in Chromium (Debian: chromium and
chromium-driver); the same rows and answers give the same pages.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from fewlier import Session
from fewlier.labelling.page.api import PageApi
from fewlier.labelling.page.app import serving
from fewlier_bench.studies.browser import NEEDED, Screen, chromium, has_chromium, resize

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

N_ROWS, N_ANSWERS = 2400, 15
NAMES = {1: "stolen card", 2: "guessed password"}
REPORT = (
    "demo --tables .",
    "fit train.csv --label malignant --false-alarm-rate 0.05 -o tumours.fewlier",
    "report test.csv -m tumours.fewlier --label malignant -o report.html",
)


def make_orders() -> tuple[pd.DataFrame, np.ndarray]:
    """Return orders of a shop, and which kind of fraud each is; 0: none."""
    rng = np.random.default_rng(0)
    kind = np.zeros(N_ROWS, dtype=np.int64)
    odd = rng.permutation(N_ROWS)
    kind[odd[:18]], kind[odd[18:30]] = 1, 2
    amount = rng.lognormal(3.6, 0.5, N_ROWS) * np.where(kind == 1, 6, 1)
    logins = rng.poisson(0.2, N_ROWS) + np.where(kind == 2, 6, 0)
    seconds = np.sort(rng.integers(0, 90 * 86_400, N_ROWS))
    placed = pd.Timestamp("2026-03-01") + pd.to_timedelta(seconds, unit="s")
    orders = pd.DataFrame(
        {
            "order": [f"A-{number:05d}" for number in range(N_ROWS)],
            "placed": placed.strftime("%Y-%m-%d %H:%M"),
            "amount": amount.round(2),
            "items": rng.poisson(3, N_ROWS) + 1,
            "country": rng.choice(
                ["AT", "CH", "DE", "FR", "IT"], N_ROWS, p=[0.1, 0.4, 0.3, 0.1, 0.1]
            ),
            "account age": rng.gamma(2, 300, N_ROWS).round(),
            "failed logins": logins,
        }
    )
    return orders, kind


def main(words: Sequence[str]) -> int:
    """Write the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(words).folder
    if not has_chromium():
        parser.error(NEEDED)
    for picture in (picture_label, picture_report):
        with chromium() as browser:
            target = picture(browser, folder)
        print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
    return 0


def picture_label(browser: "Chrome", folder: Path) -> Path:
    """Picture the labelling page after some answers."""
    orders, kind = make_orders()
    target = folder / "label.png"
    with (
        Session(orders, columns={"order": "ignore"}, fit_every=None) as session,
        serving(PageApi(session, name="orders.csv")) as address,
    ):
        fitted = session.detector  # now questions have p-values
        print(f"{len(orders)} orders, threshold {fitted.threshold_:.3f}")
        resize(browser, Screen(1180, 860))
        browser.get(address)
        wait = WebDriverWait(browser, 60, poll_frequency=0.02)
        heading = "return document.querySelector('main h2')?.textContent"
        wait.until(lambda browser: browser.execute_script(heading))
        for _ in range(N_ANSWERS):
            shown = browser.execute_script(heading)
            named = [one.kind for one in session.history if one.kind is not None]
            press(browser, NAMES.get(kind[session.next().row]), list(dict.fromkeys(named)))
            wait.until(lambda browser, was=shown: browser.execute_script(heading) != was)
        browser.save_screenshot(str(target))
    return target


def picture_report(browser: "Chrome", folder: Path) -> Path:
    """Picture the top of the report that README makes."""
    target = folder / "report.png"
    with tempfile.TemporaryDirectory() as place:
        for command in REPORT:
            subprocess.run(
                [sys.executable, "-m", "fewlier", *command.split()], cwd=place, check=True
            )
        resize(browser, Screen(1180, 1290))
        browser.get((Path(place) / "report.html").as_uri())
        browser.save_screenshot(str(target))
    return target


def press(browser: "Chrome", kind: str | None, named: list[str]) -> None:
    """Answer the row that is shown: normal, or fraud of a kind, which is named the first time."""
    keys = ["n"]
    if kind in named:
        keys = [str(named.index(kind) + 1)]
    elif kind is not None:
        keys = [str(len(named) + 1), kind, Keys.ENTER]
    for key in keys:
        ActionChains(browser).send_keys(key).perform()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
