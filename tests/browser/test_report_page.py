"""The report in a real browser: no error on the console, visible charts, sortable tables, light and dark."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lake.ledger import CostShare
from report.html import CHARTS, STATIC
from report.sections import render_page
from tests.browser.chromium import DARK, LIGHT, Chromium
from tests.browser.pictures import day_of, last_days_page
from tests.unit.infra.npm_packages import install
from tests.unit.report.reporting import cost_row, report_of

PROBE = """<script>
const found = { colors: {} };
for (const canvas of document.querySelectorAll("canvas")) {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) colors.add(data.slice(at, at + 3).join());
  found.colors[canvas.id] = [...colors];
}
const table = [...document.querySelectorAll("table")].find((one) => one.tHead.textContent.startsWith("job run"));
const head = [...table.tHead.rows[0].cells].find((cell) => cell.textContent === "start");
const first = () => table.tBodies[0].rows[0].cells[0].textContent;
found.sorted = [head, head].map((cell) => { cell.querySelector("button").click(); return first(); });
document.body.dataset.found = JSON.stringify(found);
</script></body>"""
INK = {"latency": "31,111,235", "backlog": "179,89,0", "runs": "179,89,0", "rejects": "198,40,40", "cost": "31,111,235"}
"""A color of the light scheme that each chart must have."""


@pytest.fixture
def chromium(tmp_path: Path) -> Chromium:
    return Chromium(tmp_path)


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(day_of(1))


def probed(chromium: Chromium, page: str) -> Any:
    """The result of a script in the page; its policy, which would forbid the script, is removed."""
    open_page = re.sub(r"<meta http-equiv=.*>", "", page).replace("</body>", PROBE)
    document, console = chromium.document(open_page)
    assert console == []
    found = re.search(r'data-found="([^"]*)"', document)
    assert found, document[:2000]
    return json.loads(html.unescape(found[1]))


def test_an_error_of_a_page_is_seen(chromium: Chromium, page: str) -> None:
    # Given a script that the policy of the page forbids, and a script that fails
    for script in ("<script>document.title = 'x';</script>", ""):
        broken = page.replace("</body>", script + "</body>") if script else "<script>nothing();</script>"
        assert chromium.document(broken)[1] != []


def test_charts_are_drawn_and_tables_sort(chromium: Chromium, page: str) -> None:
    found = probed(chromium, page)
    for chart, color in INK.items():
        assert color in found["colors"][chart], chart
    first, last = found["sorted"]
    assert first == "jr_000000000000"
    # The last two begin at once
    assert last in ("jr_00000000000c", "jr_00000000000d")


@pytest.mark.parametrize(
    ("scheme", "background", "red"),
    [(LIGHT, (246, 247, 249), (198, 40, 40)), (DARK, (18, 22, 28), (255, 123, 114))],
)
def test_the_pages_as_they_are_have_no_error_in_either_scheme(
    chromium: Chromium, page: str, tmp_path: Path, scheme: int, background: tuple[int, ...], red: tuple[int, ...]
) -> None:
    picture, colors = tmp_path / "page.png", []
    for shown in (page, last_days_page()):
        assert chromium.picture(shown, picture, scheme=scheme) == []
        image = Image.open(picture).convert("RGB")
        assert image.getpixel((3, 3)) == background
        colors.append({color for _, color in image.getcolors(1 << 24) or []})
    assert red in colors[1]


def test_the_library_belongs_to_the_locked_package() -> None:
    published = install(Path(__file__).parents[1] / "unit" / "report" / "chart_js", f"chart.js/dist/{CHARTS}")
    assert (STATIC / CHARTS).read_bytes() == published.read_bytes()


def test_an_empty_page_has_no_error(chromium: Chromium) -> None:
    assert chromium.document(render_page(report_of(executions=(), alarms=None)))[1] == []


MEASURE = """<script>
const shown = ".badge, .reason, .tiles b, .execution summary, .facts td, .days td, canvas";
const outside = [...document.querySelectorAll(shown)]
  .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 80));
const chart = (name) => Chart.getChart(name);
const labels = (name, axis) => chart(name)?.scales[axis].ticks.map((tick) => tick.label);
document.body.dataset.found = JSON.stringify({
  wide: document.documentElement.scrollWidth > innerWidth,
  outside,
  chartsFrom: document.querySelector("canvas").getBoundingClientRect().top,
  open: [...document.querySelectorAll("details[open] .wide")].length,
  latency: chart("latency")?.data.datasets.map((one) => one.showLine === false ? "dots" : one.fill ? "band" : "line"),
  seconds: labels("latency", "y"),
  lines: labels("rejects", "x"),
  names: labels("cost", "y"),
  cut: labels("cost", "y")?.filter(
    (label) => chart("cost").ctx.measureText(label).width > chart("cost").scales.y.width),
});
</script></body>"""
LONG_NAME = "company_platform_events_checkout_completed_by_returning_users"
FRAME = """<script>
onload = () => { document.body.dataset.found = document.querySelector("iframe").contentDocument.body.dataset.found; };
</script>"""


def measured(chromium: Chromium, page: str, width: int) -> Any:
    """The result of a script in a page on a screen of this width."""
    open_page = re.sub(r"<meta http-equiv=.*>", "", page).replace("</body>", MEASURE)
    outer = f'<body><iframe width="{width}" height="800" srcdoc="{html.escape(open_page)}"></iframe>{FRAME}</body>'
    document, console = chromium.document(outer)
    assert console == []
    found = re.search(r'<body data-found="([^"]*)"', document)
    assert found
    return json.loads(html.unescape(found[1]))


def measured_day(chromium: Chromium, executions: int, width: int) -> Any:
    """The result of ``measured`` on the page about a day with this number of executions; 0 means the last days."""
    return measured(chromium, render_page(day_of(executions)) if executions else last_days_page(), width)


@pytest.mark.parametrize("executions", [0, 1, 5, 200])
@pytest.mark.parametrize("width", [390, 1280])
def test_outcomes_and_reasons_are_on_the_screen(chromium: Chromium, executions: int, width: int) -> None:
    found = measured_day(chromium, executions, width)
    assert (found["wide"], found["outside"]) == (False, [])
    if executions:
        # Then only the table of datasets is open, and the first chart is within three screens of a phone
        assert found["open"] == 1
        assert found["chartsFrom"] < 2400


def test_few_files_are_dots_and_many_are_bands(chromium: Chromium) -> None:
    assert measured_day(chromium, 5, 390)["latency"] == ["dots", "line", "dots", "line"]
    assert measured_day(chromium, 1, 390)["latency"] == ["line", "band", "line", "band"]


@pytest.mark.parametrize(("width", "shown"), [(390, f"{LONG_NAME[:19]}…"), (1280, LONG_NAME)])
def test_a_long_name_of_a_dataset_keeps_its_start(chromium: Chromium, width: int, shown: str) -> None:
    # Given
    run = cost_row(shares=(CostShare(LONG_NAME, 9, 1, 1), CostShare("orders", 1, 1, 1)))
    # When
    found = measured(chromium, render_page(report_of(costs=(run,))), width)
    # Then
    assert (found["names"], found["cut"]) == ([shown, "orders"], [])


def test_axes_have_a_few_round_numbers(chromium: Chromium) -> None:
    found = measured_day(chromium, 5, 390)
    assert found["seconds"] == ["10 s", "20 s", "1 min", "2 min", "5 min"]
    assert found["lines"] == ["0", "1", "2"]
