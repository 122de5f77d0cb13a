"""The pages that are made from declarations are current."""

from scripts.write_reference import reference


def test_the_reference_is_current() -> None:
    stale = [path.name for path, text in reference().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "write them anew: make reference"
