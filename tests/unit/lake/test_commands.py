"""Commands that reasons and messages advise: with the stage, as a person has to run them."""

from __future__ import annotations

import pytest

from lake.texts import advise_reprocess, with_options

LOCAL, AWS = " --stage day --local", " --stage prod --profile ops"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (f"x; {advise_reprocess('m1')}", LOCAL, "'hybrid-router reprocess --manifest m1 --stage day --local'"),
        ("'hybrid-router reprocess --manifest m1 --all'", AWS, f"reprocess --manifest m1 --all{AWS}'"),
        ("run 'hybrid-router nights --stage prod'.", AWS, f"'hybrid-router nights{AWS}'."),
        ("run 'hybrid-router status --stage day --local'", LOCAL, "'hybrid-router status --stage day --local'"),
        ("run 'hybrid-router doctor'", LOCAL, "'hybrid-router doctor --stage day'"),
        ("'hybrid-router local ls' or 'hybrid-router hours'", LOCAL, "local ls' or 'hybrid-router hours --st"),
        ("no command", LOCAL, "no command"),
    ],
)
def test_a_quoted_command_gets_the_options_of_the_stage(text: str, options: str, expected: str) -> None:
    assert expected in with_options(text, options)
