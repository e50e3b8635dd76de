"""Chromium, for what is measured, tested or pictured in a browser (needs selenium)."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

NEEDED = "needs Chromium and its driver (Debian: apt install chromium chromium-driver)"
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
_QUIET = ("--disable-background-networking", "--hide-scrollbars")


class Screen(NamedTuple):
    """What a page is shown on."""

    width: int = 1200
    height: int = 900
    theme: str = "light"
    media: str = "screen"
    is_mobile: bool = False


PHONE = Screen(375, 812, is_mobile=True)


def has_chromium() -> bool:
    """Whether the browser and its driver are installed."""
    return None not in (shutil.which("chromium"), shutil.which("chromedriver"))


@contextmanager
def chromium() -> Iterator["Chrome"]:
    """Start a browser that keeps what is logged to the console and asked of the network."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in _FLAGS + _QUIET:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def resize(browser: "Chrome", screen: Screen) -> None:
    """Show pages as on this screen from now on."""
    size = {"width": screen.width, "height": screen.height}
    metrics = size | {"deviceScaleFactor": 1, "mobile": screen.is_mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": screen.theme}]
    media = {"media": screen.media, "features": features}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
