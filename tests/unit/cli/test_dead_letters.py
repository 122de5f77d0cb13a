"""``hybrid-router dead-letters``: what is read is shown again to other readers."""

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.change.dead_letters import redrive_dead_letters


class DeadLetterQueue:
    """Letters that cannot be read as events, the oldest visible ones first; each request takes a second."""

    def __init__(self, letters: int, refuses: str = "", attributes: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._visible_from = [0] * letters
        self._refuses = refuses
        self._letter = {
            "Body": "not an event",
            "Attributes": {"SentTimestamp": "0"},
            "MessageAttributes": attributes,
        }
        self._now = 0

    def get_queue_attributes(self, **_: Any) -> Any:
        return {"Attributes": {"ApproximateNumberOfMessages": str(len(self._visible_from))}}

    def receive_message(self, MaxNumberOfMessages: int, VisibilityTimeout: int, **_: Any) -> Any:  # noqa: N803
        self._now += 1
        visible = (number for number, instant in enumerate(self._visible_from) if instant <= self._now)
        found = list(islice(visible, MaxNumberOfMessages))
        for number in found:
            self._visible_from[number] = self._now + VisibilityTimeout
        return {"Messages": [{"MessageId": f"{it}", "ReceiptHandle": f"{it}", **self._letter} for it in found]}

    def change_message_visibility(self, ReceiptHandle: str, **_: Any) -> None:  # noqa: N803
        self._now += 1
        is_shown = self._visible_from[int(ReceiptHandle)] <= self._now
        if code := self._refuses or ("MessageNotInflight" if is_shown else ""):
            raise ClientError({"Error": {"Code": code, "Message": ""}}, "ChangeMessageVisibility")
        self._visible_from[int(ReceiptHandle)] = self._now


def stack_with(queue: DeadLetterQueue) -> Any:
    return SimpleNamespace(
        sqs=queue, outputs=SimpleNamespace(dead_letters="url"), name="hybrid-router-plant", options=""
    )


def test_a_dry_run_counts_each_of_many_letters(capsys: pytest.CaptureFixture[str]) -> None:
    # Given letters that take minutes to read, and longer to show again
    assert redrive_dead_letters(stack_with(DeadLetterQueue(2000)), dry_run=True, as_json=False) == 0
    assert "to be removed: 2,000 dead letters" in capsys.readouterr().out


def test_a_missing_right_to_show_letters_again_is_an_error() -> None:
    # Else the next call would find none of them
    with pytest.raises(ClientError, match="AccessDenied"):
        redrive_dead_letters(stack_with(DeadLetterQueue(1, "AccessDenied")), dry_run=True, as_json=False)


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("arn:aws:states:eu-central-1:111122223333:stateMachine:hybrid-router-plant-overnight", "overnight"),
        ("arn:aws:lambda:eu-central-1:111122223333:function:hybrid-router-plant-RouterplanFunction-1A", "plan"),
        ("arn:aws:lambda:eu-central-1:111122223333:function:hybrid-router-plant-RoutercatalogFunction-1A", None),
    ],
)
def test_a_refused_start_names_the_command_of_its_target(
    target: str, command: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a stage whose name contains that of a function
    attributes = {"TARGET_ARN": {"DataType": "String", "StringValue": target}}
    stack = stack_with(DeadLetterQueue(1, attributes=attributes))
    redrive_dead_letters(stack, dry_run=True, as_json=False)
    advice = "the next start does the work" + (f", or 'hybrid-router {command}' now" if command else "")
    assert f": {advice}\n" in capsys.readouterr().out
