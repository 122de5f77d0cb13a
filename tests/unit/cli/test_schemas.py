"""The schemas in the documents are those of the dataclasses that commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.write_schemas import schemas

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("path", "text"), schemas().items(), ids=lambda item: getattr(item, "stem", ""))
def test_the_schema_is_that_of_the_document(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "write it anew: make schemas"
