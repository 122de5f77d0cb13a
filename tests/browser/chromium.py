"""Chromium without a window: a page's final document, its picture, and its console."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CONSOLE = re.compile(r":CONSOLE[:(].*?\] (.*)")
LIGHT, DARK = 1, 0
"""Blink's numbers of the preferred color schemes."""
TIMEOUT_SECONDS = 120


class Chromium:
    """Opens pages; each call has its own process and profile."""

    def __init__(self, folder: Path) -> None:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            pytest.fail("there is no Chromium on this machine: run 'apt-get install chromium' as root, then again")
        self._program, self._folder = program, folder

    def document(self, page: str) -> tuple[str, list[str]]:
        """The document after all scripts have run, and the lines of the console."""
        return self._run(page, "--dump-dom", "--virtual-time-budget=10000")

    def picture(self, page: str, path: Path, size: str = "1100,4000", scheme: int = LIGHT) -> list[str]:
        """A picture of the page as PNG, and the lines of the console; ``size`` is ``width,height`` in pixels."""
        options = (f"--screenshot={path}", f"--window-size={size}", f"--blink-settings=preferredColorScheme={scheme}")
        return self._run(page, *options, "--hide-scrollbars")[1]

    def _run(self, page: str, *options: str) -> tuple[str, list[str]]:
        file = self._folder / "page.html"
        file.write_text(page, encoding="utf-8")
        # Chromium refuses its sandbox to root.
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        command = [self._program, "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
        command += [f"--user-data-dir={self._folder / 'profile'}", *root, *options, file.as_uri()]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)
        assert result.returncode == 0, result.stderr
        return result.stdout, CONSOLE.findall(result.stderr)
