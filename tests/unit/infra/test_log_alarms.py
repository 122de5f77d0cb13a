"""The alarms that read the jobs' log: the filter finds the jobs' own ALARM lines, and data cannot forge one."""

from __future__ import annotations

import re

import pytest

from lake.ledger import State
from tests.unit.infra.conftest import Assembly
from transform.job_main import print_line
from transform.outcome import HELD, UNKNOWN, ConversionOutcome, format_with_alarm

FILTER = "AWS::Logs::MetricFilter"
ALARM = "AWS::CloudWatch::Alarm"
SECOND_FIELD = re.compile(r'\[\w+, \w+ = "(\w+)", \.\.\.\]')
"""The only kind of pattern that the stack uses: fields separated by spaces, of which the second one is compared."""


def matches(pattern: str, line: str) -> bool:
    """Whether CloudWatch Logs counts the line, for patterns of this one kind."""
    second_field = SECOND_FIELD.fullmatch(pattern)
    assert second_field, f"{pattern} is of another kind: extend this evaluator"
    return line.split(" ", 2)[1] == second_field[1]


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (ConversionOutcome("m", State.FAILED, reason="no attempts are left"), True),
        (ConversionOutcome("m", State.SUPERSEDED, reason="given up after 3 attempts: gone", successors=("a",)), True),
        (ConversionOutcome("m", State.SUPERSEDED, reason="promoted", successors=("a",)), False),
        (ConversionOutcome("m", UNKNOWN), True),
        (ConversionOutcome("m", State.DONE, 3, 1), False),
        (ConversionOutcome("m", HELD, reason="ALARM of a name that looks like one"), False),
        (ConversionOutcome("m", HELD, reason="first line\nALARM second line"), False),
        (ConversionOutcome("m", State.FAILED, reason="first line\r\nALARM second line"), True),
    ],
)
def test_an_outcome_is_counted_once_or_not_at_all(
    assembly: Assembly, capsys: pytest.CaptureFixture[str], outcome: ConversionOutcome, found: bool
) -> None:
    # Given: the pattern of the template, and what a job prints
    pattern = assembly.one(FILTER, "LogAlarms")["FilterPattern"]
    print_line(format_with_alarm(outcome))
    # Then
    lines = capsys.readouterr().out.splitlines()
    assert sum(matches(pattern, line) for line in lines) == int(found)


def test_the_filter_reads_the_log_that_glue_writes(assembly: Assembly) -> None:
    group = assembly.one(FILTER, "LogAlarms")["LogGroupName"]["Ref"]
    name = assembly.resources("AWS::Logs::LogGroup")[group]["LogGroupName"]
    for part in ("JobsBatch", "JobsStream"):
        arguments = assembly.one("AWS::Glue::Job", part)["DefaultArguments"]
        assert f"{arguments['--custom-logGroup-prefix']}/output" == name
        assert not [key for key in arguments if key.startswith("--continuous-log")]
