"""The project's pages as the tests of this folder read them: code, links, headings and tables of Markdown files."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
ARCHITECTURE = CHECKOUT / "docs" / "architecture.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Page:
    """One Markdown file of the checkout."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(CHECKOUT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without its fenced blocks."""
        return _FENCE.sub("", self.text)

    @cached_property
    def code(self) -> list[str]:
        """Inline code, and each line of the shell examples without its comment."""
        shell = [
            line.partition(" #")[0]
            for kind, body in _FENCE.findall(self.text)
            if kind == "sh"
            for line in body.splitlines()
        ]
        return [*_SPAN.findall(self.prose), *shell]

    @cached_property
    def links(self) -> list[str]:
        """Targets inside the checkout, with their anchors."""
        return [link for link in _LINK.findall(self.prose) if "://" not in link]

    @cached_property
    def anchors(self) -> set[str]:
        """Anchors that GitHub derives from the headings."""
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(self.prose)}

    def rows(self, *header: str) -> list[tuple[str, ...]]:
        """Cells of the rows of the table with this header."""
        lines = self.text.splitlines()
        start = lines.index(f"| {' | '.join(header)} |") + 2
        rows = []
        for line in lines[start:]:
            if not line.startswith("|"):
                break
            rows.append(tuple(cell.strip() for cell in _CELL.split(line)[1:-1]))
        return rows


def spans(text: str) -> list[str]:
    """Inline code of a piece of text."""
    return _SPAN.findall(text)


PAGES = [
    *(Page(CHECKOUT / name) for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(Page(path) for path in sorted((CHECKOUT / "docs").rglob("*.md"))),
]
