"""docs/runbook.md: each alarm of the template ends with the link to its entry, and no entry is without an alarm."""

from __future__ import annotations

import re

from infra.plain_alarm import RUNBOOK
from tests.unit.docs.pages import CHECKOUT, Page
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ResolvedTemplate

PAGE = Page(CHECKOUT / RUNBOOK)
LINK = re.compile(rf" See {re.escape(RUNBOOK)}#([a-z-]+)")
ENTRY = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
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
