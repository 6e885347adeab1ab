"""A page in headless Chromium: opened from disk, without a network, with an eye on its console."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SWITCHES = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --force-device-scale-factor=1"
).split()
_UNTIL_DRAWN = """
const done = arguments[0], began = performance.now();
(function look() {
  const ready = typeof devlint === "object" && devlint.ready;
  if (ready || performance.now() - began > 100000) done(ready); else setTimeout(look, 10);
})();
"""


def why_not() -> str:
    """Why there is no browser here, empty if there is one."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"needs {' and '.join(missing)}" if missing else ""


@contextmanager
def browser(profile: Path, dark: bool = False, width: int = 1280, height: int = 900) -> Iterator[Any]:
    """A browser with a new profile, which must be an empty directory."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for switch in (*SWITCHES, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_page_load_timeout(120)
        driver.set_script_timeout(120)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        yield driver
    finally:
        driver.quit()


def open_page(driver: Any, path: Path) -> None:
    """Load a page and wait until it has drawn itself."""
    driver.get(path.as_uri())
    done = driver.execute_async_script(_UNTIL_DRAWN)
    assert done, complaints(driver)


def complaints(driver: Any) -> list[str]:
    """What the page, or the browser of it, has said in the console."""
    return [entry["message"] for entry in driver.get_log("browser")]
