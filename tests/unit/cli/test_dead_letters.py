"""``hybrid-router dead-letters``: what is read is shown again to other readers."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.change.dead_letters import redrive_dead_letters


def stack_that_refuses(code: str) -> Any:
    """With one letter, which SQS does not show again."""

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "ChangeMessageVisibility")

    letter = {"MessageId": "m", "Body": "not an event", "ReceiptHandle": "r", "Attributes": {"SentTimestamp": "0"}}
    sqs = SimpleNamespace(
        get_queue_attributes=lambda **_: {"Attributes": {"ApproximateNumberOfMessages": "1"}},
        receive_message=lambda **_: {"Messages": [letter]},
        change_message_visibility=refuse,
    )
    return SimpleNamespace(sqs=sqs, outputs=SimpleNamespace(dead_letters="url"))


def test_a_dry_run_of_many_letters_ends_although_the_first_are_shown_again_already(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given letters that take longer to read than SQS hides them
    stack = stack_that_refuses("MessageNotInflight")
    assert redrive_dead_letters(stack, dry_run=True, as_json=False) == 0
    assert "to be removed: 1 dead letter" in capsys.readouterr().out


def test_a_missing_right_to_show_letters_again_is_an_error() -> None:
    # Else the next call would find none of them
    with pytest.raises(ClientError, match="AccessDenied"):
        redrive_dead_letters(stack_that_refuses("AccessDenied"), dry_run=True, as_json=False)
