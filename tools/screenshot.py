"""Picture the labelling page for the guide: `python tools/screenshot.py docs/figures/label.png`.

A made-up table of orders is answered truly, by keys, in Chromium (Debian: chromium and
chromium-driver). The same table and answers give the same page.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from fewlier import Session
from fewlier.labelling.desk import Desk
from fewlier.labelling.page import serving
from fewlier_bench.studies.browser import NEEDED, Screen, chromium, has_chromium, resize

N_ROWS, N_ANSWERS = 2400, 15
NAMES = {1: "stolen card", 2: "guessed password"}


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
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    target = parser.parse_args(words).picture
    if not has_chromium():
        parser.error(NEEDED)
    orders, kind = make_orders()
    with (
        Session(orders, columns={"order": "ignore"}, fit_every=None) as session,
        serving(Desk(session, name="orders.csv")) as address,
        chromium() as browser,
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
        if not browser.save_screenshot(str(target)):
            return 1
    print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
    return 0


def press(browser: object, kind: str | None, named: list[str]) -> None:
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
