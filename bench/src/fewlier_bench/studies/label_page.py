"""How long it takes from a key to the next row on the labelling page, in a real browser.

    fewlier-bench label-page --rows 12000 --columns 20 --keys 60

Chromium presses a key, and a clock in the page stops when the next row has been drawn. The server
is this process, on a session that writes its answers to disk and fits in the background, as
`fewlier label` does. Needs Chromium, and pip install selenium 'fewlier[label]'.
"""

import statistics
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fewlier import Session
from fewlier.errors import UserError
from fewlier.labelling.page.api import PageApi
from fewlier.labelling.page.app import serving
from fewlier_bench.studies.browser import NEEDED, chromium, has_chromium
from fewlier_bench.studies.study import Study, option

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

N_ODD = 40  # rows that are anomalies, the first of the table
_AIM = 300  # milliseconds
# From a key to the frame after the one in which the heading names another row.
_TIMED = """
const [key, done] = arguments, heading = () => document.querySelector("main h2")?.textContent;
const before = heading(), start = performance.now();
const drawn = () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
const watch = new MutationObserver(() => {
  if (heading() === before) return;
  watch.disconnect();
  drawn();
});
watch.observe(document.querySelector("main"), { childList: true, subtree: true });
document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
"""


def make_rows(n_rows: int, n_columns: int) -> np.ndarray:
    """Return rows of which the first are anomalies of two kinds."""
    rows = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    rows[:N_ODD, 0] += 5
    rows[: N_ODD // 2, 1] -= 5
    return rows


@contextmanager
def opened(rows: np.ndarray) -> Iterator["Chrome"]:
    """Open the page of a session about these rows."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Session(rows, path=Path(folder) / "labels.jsonl") as session,
        serving(PageApi(session)) as address,
        chromium() as browser,
    ):
        browser.set_script_timeout(60)
        browser.get(address)
        shown = "const done = arguments[0]; const look = () => document.querySelector('main h2') ? done() : setTimeout(look, 20); look();"  # noqa: E501 - JavaScript
        browser.execute_async_script(shown)
        yield browser


def time_keys(browser: "Chrome", n_keys: int) -> list[float]:
    """Answer truly, and return the milliseconds from each key to the next row."""
    found = []
    for _ in range(n_keys):
        heading = browser.execute_script("return document.querySelector('main h2').textContent")
        row = int(heading.removeprefix("Row ").replace(",", ""))
        found.append(browser.execute_async_script(_TIMED, "a" if row < N_ODD else "n"))
    return found


def run(chosen: Namespace) -> None:
    """Press keys and print how long the next rows took."""
    if not has_chromium():
        raise UserError(f"fewlier-bench label-page {NEEDED}.")
    with opened(make_rows(chosen.rows, chosen.columns)) as browser:
        times = time_keys(browser, chosen.keys)
    middle, ninth = statistics.median(times), np.quantile(times, 0.9)
    print(
        f"{chosen.rows} x {chosen.columns}, {chosen.keys} keys to the next row: median "
        f"{middle:.0f} ms, 90 % within {ninth:.0f} ms, longest {max(times):.0f} ms "
        f"(aim: {_AIM} ms)"
    )


STUDY = Study.of(
    run,
    option("--rows", type=int, default=12_000),
    option("--columns", type=int, default=20),
    option("--keys", type=int, default=60),
)
