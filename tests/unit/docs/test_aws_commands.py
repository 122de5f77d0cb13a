"""Every command of the AWS CLI that a page names is an operation of the service, with its parameters."""

from __future__ import annotations

import re
from functools import cache

import botocore.session
import pytest
from botocore import xform_name

from tests.unit.docs.pages import PAGES, Page

COMMAND = re.compile(r"^aws ([a-z][a-z0-9-]*) ([a-z][a-z-]*)(.*)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
SAME_FOR_ALL = {"cli-binary-format", "max-items", "output", "profile", "query", "region"}
OWN_COMMANDS = {
    ("logs", "tail"): {"log-stream-names", "since", "filter-pattern", "follow", "format"},
    ("s3", "sync"): {"delete", "dryrun", "exclude", "include"},
}
"""Commands that are no operation of the service, with their options
(https://docs.aws.amazon.com/cli/latest/reference/logs/tail.html, .../s3/sync.html)."""
RENAMED = {("sns", "subscribe"): {"notification-endpoint"}}
"""Options with another name than their parameter (https://docs.aws.amazon.com/cli/latest/reference/sns/subscribe.html).
"""


@cache
def options(service: str, command: str) -> set[str]:
    """Options of the command; empty: there is no such command."""
    if (service, command) in OWN_COMMANDS:
        return OWN_COMMANDS[service, command]
    session = botocore.session.get_session()
    if service not in session.get_available_services():
        return set()
    model = session.get_service_model(service)
    for name in model.operation_names:
        if xform_name(name, "-") == command:
            shape = model.operation_model(name).input_shape
            parameters = {xform_name(member, "-") for member in (shape.members if shape else ())}
            return SAME_FOR_ALL | RENAMED.get((service, command), set()) | parameters
    return set()


def unknown(code: str) -> list[str]:
    """The command, or those of its options that it does not have."""
    found = COMMAND.match(code)
    if found is None:
        return []
    service, command, rest = found.groups()
    known = options(service, command)
    return [option for option in OPTION.findall(rest) if option not in known] if known else [f"{service} {command}"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_exists(page: Page) -> None:
    assert [wrong for code in page.code for wrong in unknown(code.strip())] == []


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("aws sqs receive-message --queue-url <url> --attribute-names All", []),
        ("aws logs tail <group> --since 1h", []),
        ("aws sqs receive-messages --queue-url <url>", ["sqs receive-messages"]),
        ("aws sqz receive-message", ["sqz receive-message"]),
        ("aws sqs receive-message --url <url>", ["url"]),
        ("aws logs tail <group> --filter x", ["filter"]),
        ("/aws/vendedlogs/states", []),
    ],
)
def test_what_does_not_exist_is_found(code: str, wrong: list[str]) -> None:
    assert unknown(code) == wrong
