"""``hybrid-router dead-letters``: letters that were read become visible to other readers again."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.change.dead_letters import dead_letters_ls_command, dead_letters_redrive_command
from tests.unit.cli.conftest import Answered, Printed
from tests.unit.router.events import s3_record


def event(key: str) -> str:
    return json.dumps({"Records": [s3_record(key)]})


class DeadLetterQueue:
    """Letters with one body, the first visible ones first; a read letter is hidden until it becomes visible again."""

    def __init__(
        self,
        letters: int,
        refuses: str = "",
        attributes: Mapping[str, Any] = MappingProxyType({}),
        body: str = "not an event",
    ) -> None:
        self.visible = set(range(letters))
        self._refuses = refuses
        self._letter = {"Body": body, "Attributes": {"SentTimestamp": "0"}, "MessageAttributes": attributes}

    def receive_message(self, MaxNumberOfMessages: int, **_: Any) -> Any:  # noqa: N803
        found = sorted(self.visible)[:MaxNumberOfMessages]
        self.visible -= set(found)
        return {"Messages": [{"MessageId": f"{it}", "ReceiptHandle": f"{it}", **self._letter} for it in found]}

    def change_message_visibility_batch(self, Entries: Sequence[Any], **_: Any) -> None:  # noqa: N803
        if self._refuses:
            raise ClientError({"Error": {"Code": self._refuses, "Message": ""}}, "ChangeMessageVisibilityBatch")
        self.visible |= {int(entry["ReceiptHandle"]) for entry in Entries}

    def delete_message(self, **_: Any) -> None:
        """The letters that were read are already hidden."""


class SlowQueue(DeadLetterQueue):
    """Each answer takes a second; letters become visible again after their visibility timeout."""

    def __init__(self, letters: int) -> None:
        super().__init__(letters)
        self.now = 0.0
        self._hidden_until: dict[int, float] = {}

    def receive_message(self, MaxNumberOfMessages: int, VisibilityTimeout: int = 0, **_: Any) -> Any:  # noqa: N803
        self.now += 1
        self.visible |= {letter for letter, until in self._hidden_until.items() if until < self.now}
        answer = super().receive_message(MaxNumberOfMessages)
        self._hidden_until |= {int(it["MessageId"]): self.now + VisibilityTimeout for it in answer["Messages"]}
        return answer


def stack_with(queue: DeadLetterQueue) -> Any:
    rows = {name: SimpleNamespace(manifest=manifest) for name, manifest in (("owned", "m1"), ("ignored", None))}
    return SimpleNamespace(
        sqs=queue,
        outputs=SimpleNamespace(dead_letters="url", overnight_schedule="schedule"),
        scheduler=SimpleNamespace(get_schedule=lambda **_: {}),
        name="hybrid-router-plant",
        options="",
        ledger=SimpleNamespace(arrivals=SimpleNamespace(get=lambda file: rows.get(file.key))),
    )


@pytest.mark.parametrize(("limit", "shown"), [(12, 12), (13, 12), (5, 5)])
def test_a_list_that_may_be_truncated_is_marked(limit: int, shown: int, answered: Answered, printed: Printed) -> None:
    stack = stack_with(DeadLetterQueue(12))
    found = answered(dead_letters_ls_command, stack, limit, code=1)
    assert (len(found["deadLetters"]), found["complete"]) == (shown, shown < limit)
    text = printed(dead_letters_ls_command, stack, limit, code=1)
    assert ("there may be more: pass a larger --limit" in text) == (shown == limit)


def test_each_of_many_letters_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given more letters than are read before the first ones become visible again
    queue, letters = SlowQueue(8000), list[str]()
    monkeypatch.setattr("cli.change.dead_letters.monotonic", lambda: queue.now)
    monkeypatch.setattr("cli.change.dead_letters.typer.echo", letters.append)
    # When
    dead_letters_redrive_command(stack_with(queue), dry_run=True, as_json=False)
    # Then
    assert "to be removed: 8,000 dead letters, of which 0 events sent to route again" in letters[-1]
    assert (len(letters) - 1, len(queue.visible), queue.now < 3000) == (8000, 8000, True)


@pytest.mark.parametrize(("dry_run", "left"), [(True, 25), (False, 13)])
def test_an_interrupted_redrive_leaves_no_letter_hidden(
    dry_run: bool, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a reader of the output that ends after twelve letters, in the middle of a page, such as `head`
    queue, printed = DeadLetterQueue(25), iter(range(12))

    def echo(_text: str) -> None:
        if next(printed, None) is None:
            raise BrokenPipeError

    monkeypatch.setattr("cli.change.dead_letters.typer.echo", echo)
    # When, Then the next call finds the letters that were not removed
    with pytest.raises(BrokenPipeError):
        dead_letters_redrive_command(stack_with(queue), dry_run=dry_run, as_json=False)
    assert len(queue.visible) == left


def test_a_missing_right_to_show_letters_again_is_an_error() -> None:
    # Otherwise the next call would find none of them
    with pytest.raises(ClientError, match="AccessDenied"):
        dead_letters_redrive_command(stack_with(DeadLetterQueue(1, "AccessDenied")), dry_run=True, as_json=False)


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("arn:aws:states:eu-central-1:111122223333:stateMachine:hybrid-router-plant-overnight", "overnight"),
        ("arn:aws:lambda:eu-central-1:111122223333:function:hybrid-router-plant-RouterplanFunction-1A", "plan"),
        ("arn:aws:lambda:eu-central-1:111122223333:function:hybrid-router-plant-RoutercatalogFunction-1A", None),
    ],
)
def test_a_refused_start_names_the_command_of_its_target(target: str, command: str | None, printed: Printed) -> None:
    # Given a stage whose name contains the name of a function
    attributes = {"TARGET_ARN": {"DataType": "String", "StringValue": target}}
    stack = stack_with(DeadLetterQueue(1, attributes=attributes))
    advice = "the next start does the work" + (f", or 'hybrid-router {command}' now" if command else "")
    assert f": {advice}\n" in printed(dead_letters_redrive_command, stack, dry_run=True)


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (json.dumps({"Records": []}), "an event without a new file: removed"),
        (json.dumps({"detail-type": "Object Created"}), "removed, no file can be read from it"),
        (event("new"), "s3://input/new: sent to route again"),
        (event("owned"), "s3://input/owned: removed, because it has an owner by now"),
        # A current rule can take it.
        (event("ignored"), "s3://input/ignored: sent to route again"),
    ],
)
def test_only_events_of_files_without_an_owner_are_sent_again(body: str, advice: str, printed: Printed) -> None:
    queue = DeadLetterQueue(1, body=body)
    assert f"{advice}\n" in printed(dead_letters_redrive_command, stack_with(queue), dry_run=True)
