"""A real browser without a window: Debian's chromium, driven by Selenium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
IS_INSTALLED = CHROMIUM is not None and DRIVER is not None
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@contextmanager
def browser(width: int = 1200, height: int = 900) -> Iterator[Any]:
    """Start a browser; its log has the errors of scripts."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    assert CHROMIUM is not None
    options.binary_location = CHROMIUM
    for option in (*_OPTIONS, f"--window-size={width},{height}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def set_dark(driver: Any, *, dark: bool) -> None:
    """Have the browser prefer dark colours, or light ones."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def resize(driver: Any, width: int, height: int) -> None:
    """Show pages in this size, as on a telephone."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def text(driver: Any, selector: str) -> str:
    """Return the text of an element; "None" without one."""
    return str(driver.execute_script(f"return document.querySelector({selector!r})?.textContent"))


def complaints(driver: Any) -> list[str]:
    """Return what the browser complained of since the last call: scripts, missing files."""
    return [each["message"] for each in driver.get_log("browser")]
