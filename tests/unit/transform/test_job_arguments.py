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
def test_keys_that_obstore_cannot_spell_go_through_the_client(key: str, needed: bool) -> None:
    assert needs_client(key) is needed
