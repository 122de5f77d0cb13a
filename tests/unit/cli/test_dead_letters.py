"""``hybrid-router dead-letters``: what is read is shown again to other readers."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.change.dead_letters import redrive_dead_letters


def test_a_dry_run_of_many_letters_ends_although_the_first_are_shown_again_already(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given letters that take longer to read than SQS hides them
    letter = {"MessageId": "m", "Body": "not an event", "ReceiptHandle": "r", "Attributes": {"SentTimestamp": "0"}}
    sqs = SimpleNamespace(
        get_queue_attributes=lambda **_: {"Attributes": {"ApproximateNumberOfMessages": "1"}},
        receive_message=lambda **_: {"Messages": [letter]},
        change_message_visibility=refuse,
    )
    stack: Any = SimpleNamespace(sqs=sqs, outputs=SimpleNamespace(dead_letters="url"))
    assert redrive_dead_letters(stack, dry_run=True, as_json=False) == 0
    assert "to be removed: 1 dead letter" in capsys.readouterr().out


def refuse(**_: Any) -> None:
    raise ClientError({"Error": {"Code": "MessageNotInflight", "Message": ""}}, "ChangeVisibility")
