from __future__ import annotations

import pytest

from transform.job_arguments import parse_arguments
from transform.source import needs_client


def test_glue_arguments_are_pairs_of_words() -> None:
    argv = ["--JOB_NAME", "j", "--run", "s3://c/k=1.json", "--conf", "a=1 --conf b=2", "--flag", "--x=y", "stray"]
    assert parse_arguments(argv) == {
        "JOB_NAME": "j",
        "run": "s3://c/k=1.json",
        "conf": "a=1 --conf b=2",
        "flag": "",
        "x": "y",
    }


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--run", "--settings", "s"], {"run": "", "settings": "s"}),
        (["--run"], {"run": ""}),
        (["--run", ""], {"run": ""}),
        (["--run=", "stray"], {"run": ""}),
        (["--run", "a", "--run", "b"], {"run": "b"}),
        (["--run", "-x"], {"run": "-x"}),
        (["--conf=--conf a=1"], {"conf": "--conf a=1"}),
        (["--", "--run", "u"], {"": "", "run": "u"}),
        (["--python-modules-installer-option", "--no-index"], {"python-modules-installer-option": "", "no-index": ""}),
        (["--sett", "x", "--help"], {"sett": "x", "help": ""}),
    ],
)
def test_every_word_with_two_dashes_is_a_key_and_no_value_is_lost(argv: list[str], expected: dict[str, str]) -> None:
    assert parse_arguments(argv) == expected


@pytest.mark.parametrize(
    ("key", "needed"),
    [
        ("a/b.json", False),
        ("a b+%.json", False),
        ("a//b", True),
        ("/a", True),
        ("a/", True),
        ("a/../b", True),
        ("a\nb", True),
    ],
)
def test_keys_that_obstore_cannot_express_are_read_by_the_client(key: str, needed: bool) -> None:
    assert needs_client(key) is needed
