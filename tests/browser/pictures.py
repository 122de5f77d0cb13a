"""The pictures of the pages: `.venv/bin/python -m tests.browser.pictures` draws them anew from a made-up day."""

import tempfile
from pathlib import Path

from PIL import Image

from report.sections import render_page
from tests.browser.chromium import DARK, LIGHT, Chromium
from tests.browser.samples import day_of, last_days_page

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COLORS = 64
"""Colors of a picture: flat surfaces and thin lines need few, and the file is small."""


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    usual = render_page(day_of(1))
    with tempfile.TemporaryDirectory() as folder:
        chromium = Chromium(Path(folder))
        for name, scheme in (("report.png", LIGHT), ("report-dark.png", DARK)):
            _save(chromium.picture(usual, IMAGES / name, "1000,2450", scheme), IMAGES / name)
        _save(chromium.picture(last_days_page(), IMAGES / "report-days.png", "1100,1000"), IMAGES / "report-days.png")


def _save(console: list[str], path: Path) -> None:
    assert console == []
    Image.open(path).convert("RGB").quantize(COLORS).save(path, optimize=True)


if __name__ == "__main__":
    main()
