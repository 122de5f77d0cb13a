"""The picture of ``status`` in the documents shows what the command prints now."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import click

from tests.unit.cli.status_picture import PICTURE, picture, status_text


def test_the_picture_is_what_the_command_prints() -> None:
    told = "draw it anew: .venv/bin/python -m tests.unit.cli.status_picture"
    assert PICTURE.read_text(encoding="utf-8") == picture(), told


def test_the_picture_shows_every_word_and_needs_no_network() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    words = " ".join("".join(ET.fromstring(drawn).itertext()).split())
    assert [
        word for word in re.findall(r"\S{4,}", click.unstyle(status_text())) if word not in words.replace(" ", "")
    ] == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", drawn) == []
