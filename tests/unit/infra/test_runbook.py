"""docs/runbook.md: each alarm of the template ends with the link to its entry, and no entry is without an alarm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from infra.plain_alarm import RUNBOOK
from tests.unit.docs.pages import CHECKOUT, Page
from tests.unit.infra.resolved_template import ResolvedTemplate

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

PAGE = Page(CHECKOUT / RUNBOOK)
LINK = re.compile(rf" See {re.escape(RUNBOOK)}#([a-z-]+)")
ENTRY = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
PARTS = ("Meaning", "First look", "Fix")
FAILURES = {
    "A worker was lost",
    "Pointers stay in the inbox",
    "S3 throttles",
    "A job ran out of memory",
    "The ledger throttles",
    "KMS denies",
    "A quota is reached",
    "A deployment in the middle of a night",
}
MAX_DESCRIPTION = 1024
"""Characters (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html)."""


def descriptions(*assemblies: Assembly) -> dict[str, str]:
    """Description of each alarm of the templates, by logical id."""
    return {
        name: body["AlarmDescription"]
        for assembly in assemblies
        for name, body in ResolvedTemplate(assembly.template).of_kind("AWS::CloudWatch::Alarm").items()
    }


def chapter(title: str) -> dict[str, str]:
    """Text of each entry of a chapter, by its heading."""
    (body,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.text, re.MULTILINE | re.DOTALL)
    return dict(ENTRY.findall(body))


def test_every_alarm_ends_with_the_link_to_its_entry(assembly: Assembly, other_assembly: Assembly) -> None:
    found = descriptions(assembly, other_assembly)
    assert [name for name, text in found.items() if not re.search(rf"[^ ]{LINK.pattern}$", text)] == []
    assert {name: len(text) for name, text in found.items() if len(text) > MAX_DESCRIPTION} == {}


def test_alarms_and_entries_are_the_same(assembly: Assembly, other_assembly: Assembly) -> None:
    linked = {LINK.findall(text)[-1] for text in descriptions(assembly, other_assembly).values()}
    assert {heading.lower() for heading in chapter("Alarms")} == linked


def test_an_alarm_links_to_the_entry_of_its_own_name(assembly: Assembly, other_assembly: Assembly) -> None:
    for name, text in descriptions(assembly, other_assembly).items():
        assert name.lower().startswith(f"alarms{LINK.findall(text)[-1]}"), name


def test_the_page_has_the_failures() -> None:
    assert chapter("Failures").keys() == FAILURES


@pytest.mark.parametrize("heading", [heading for heading, _ in ENTRY.findall(PAGE.text)])
def test_every_entry_says_what_it_means_where_to_look_and_what_to_do(heading: str) -> None:
    text = dict(ENTRY.findall(PAGE.text))[heading]
    assert tuple(re.findall(r"^- \*\*(.+?)\*\*: \S", text, re.MULTILINE)) == PARTS
    # Then it has a command to run
    assert re.search(r"`(?:hybrid-router|aws|cdk) [^`]+`", text)


@pytest.mark.parametrize("heading", chapter("Alarms"))
def test_the_first_look_at_an_alarm_begins_with_a_command_of_the_product(heading: str) -> None:
    (look,) = re.findall(r"^- \*\*First look\*\*: (.+)", chapter("Alarms")[heading], re.MULTILINE)
    assert look.startswith("`hybrid-router ")
