"""A report as one HTML page that needs nothing else: no network, no font, no file. Pure."""

import base64
import hashlib
import json
import re
from functools import cache
from html import escape, unescape
from pathlib import Path

from lake.texts import format_instant, with_options
from report.executions import outcomes
from report.html import safe
from report.model import Report
from report.sections import SECTIONS, chart_data, tiles

STATIC = Path(__file__).parent / "static"
CHARTS = "chart.umd.min.js"
"""Chart.js, as npm has it; its version and licence (MIT) are in its first lines."""
SOURCE_MAP = "\n//# sourceMappingURL="
TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
"""What a reader sees between two tags."""


def render_page(report: Report) -> str:
    message = f"<p>{safe(report.message)}</p>" if report.message else ""
    made = f"Stack {safe(report.stack)}; made at {format_instant(report.made_at)}; all times are UTC."
    header = f"""<p class="outcomes">{outcomes(report.executions)}</p>
{message}
<p class="faint">{safe(report.period)} {made}</p>"""
    parts = "".join(f"<section><h2>{safe(name)}</h2>{make(report)}</section>" for name, make in SECTIONS.items())
    main = f"{tiles(report)}\n{parts}"
    return render_document(report.title, report.stack, header, main, chart_data(report), report.options)


def render_document(title: str, stack: str, header: str, main: str, figures: object, options: str) -> str:
    """A page that needs nothing else, from parts that are HTML and the figures of its charts.

    The commands that its texts advise get ``options``, such as `` --stage prod``.

    Its policy for content allows its own script and style by their hashes and nothing else, so a text of others that
    were markup all the same could load and run nothing.
    """
    header, main = (
        TEXT.sub(lambda found: escape(with_options(unescape(found[0]), options)), part) for part in (header, main)
    )
    style, script, library = _static("report.css"), _static("report.js"), _static(CHARTS).partition(SOURCE_MAP)[0]
    policy = f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; style-src {_hash(style)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{safe(f"{title} · {stack}")}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{safe(title)}</h1>
{header}
</header>
<main>
{main}
</main>
<script type="application/json" id="figures">{_embedded(figures)}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""


def _embedded(data: object) -> str:
    """JSON that cannot end the element that holds it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
