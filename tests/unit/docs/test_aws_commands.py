"""Every command of the AWS CLI that a page names is an operation of the service, with its parameters."""

from __future__ import annotations

import re
from functools import cache

import botocore.session
from botocore import xform_name

from tests.unit.docs.pages import PAGES

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


def test_every_command_of_the_pages_exists() -> None:
    wrong = {page.name: [found for code in page.code for found in unknown(code.strip())] for page in PAGES}
    assert {name: found for name, found in wrong.items() if found} == {}
