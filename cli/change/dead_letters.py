"""``hybrid-router dead-letters``: events and starts of schedules that failed in every attempt."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import typer
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from cli.commands import Answer, DryRun, Json, Limit
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.executions import read_zone
from lake.errors import InvalidInputError
from lake.ledger.table import batches_of
from lake.texts import format_clock, format_count, printable
from lake.time import iso_utc
from router.route.events import parse_events

PAGE = 10
"""Maximum number of messages of one request (SQS API Reference, ReceiveMessage)."""
MAX_CHARACTERS = 500
"""Maximum number of characters shown of a message that is not an event."""
HIDDEN_SECONDS = 300
"""A message that was read is hidden from other readers and the alarm for this time plus the time since the command
began, or until it is shown again. If reading the queue takes longer, some messages are read again, ever more rarely."""
MANUAL_COMMANDS = (("overnight", "overnight"), ("stream-window", "stream start"), ("sweep", "sweep"), ("plan", "plan"))
"""A part of a schedule's target, and the command that does its work."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    message: str
    sent_at: str
    subject: str
    """URIs of the files that an event announces; or the target of a schedule."""
    problem: str
    advice: str
    is_sent: bool
    """Whether ``redrive`` sends it to ``route``, before it is removed."""


def dead_letters_ls_command(stack: DeployedStack, limit: Limit = 100) -> Answer:
    """List the messages, with what redrive does with each; exit code 1 if there are any."""
    with _shown_again(stack) as hidden:
        letters = sorted((letter for letter, _ in _receive(stack, hidden, limit)), key=lambda letter: letter.sent_at)
    is_complete = len(letters) < limit
    document = {"deadLetters": [asdict(letter) for letter in letters], "complete": is_complete}
    code = ExitCode.NEGATIVE if letters else ExitCode.OK
    return Answer(document, lambda: _print(stack, letters, is_complete), code)


def _print(stack: DeployedStack, letters: Sequence[DeadLetter], is_complete: bool) -> None:
    zone, now = read_zone(stack), datetime.now(UTC)
    typer.echo(f"{stack.name}, times in {zone.key}")
    for letter in letters:
        typer.echo(f"{format_clock(letter.sent_at, zone, now)}  {printable(letter.subject)}")
        typer.echo(f"  {printable(letter.problem)}: {letter.advice}")
    if not is_complete:
        typer.echo("there may be more: pass a larger --limit")
    end = f"when the cause is removed, run 'hybrid-router dead-letters redrive{stack.options}'"
    typer.echo(end if letters else "there are no dead letters")


def dead_letters_redrive_command(stack: DeployedStack, *, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Send events of files without an owner to route again, and remove all messages from the queue."""
    # Sending an event twice changes nothing, so an interrupted redrive may be repeated: a message is deleted only after
    # its replacement is sent.
    done = {"removed": 0, "sent": 0}
    with _shown_again(stack) as hidden:
        for letter, message in _receive(stack, hidden):
            if not as_json:
                typer.echo(f"{printable(letter.subject)}: {letter.advice}")
            if not dry_run:
                if letter.is_sent:
                    stack.sqs.send_message(QueueUrl=stack.outputs.arrivals_queue, MessageBody=message["Body"])
                stack.sqs.delete_message(QueueUrl=stack.outputs.dead_letters, ReceiptHandle=message["ReceiptHandle"])
                hidden.remove(message)
            done["removed"] += 1
            done["sent"] += letter.is_sent
    action = "dry run, nothing was done; to be removed" if dry_run else "removed"
    total, sent = format_count(done["removed"], "dead letter"), format_count(done["sent"], "event")
    text = f"{action}: {total}, of which {sent} sent to route again"
    Answer({**done, "dryRun": dry_run}, lambda: typer.echo(text)).print(as_json=as_json)


def _receive(
    stack: DeployedStack, hidden: list[dict[str, Any]], limit: int = sys.maxsize
) -> Iterator[tuple[DeadLetter, dict[str, Any]]]:
    """Yield at most ``limit`` messages, each once, as read and as SQS returns it; ``hidden`` gets all received ones."""
    seen, began = set[str](), monotonic()
    while len(seen) < limit:
        answer = stack.sqs.receive_message(
            QueueUrl=stack.outputs.dead_letters,
            MaxNumberOfMessages=min(PAGE, limit - len(seen)),
            VisibilityTimeout=HIDDEN_SECONDS + int(monotonic() - began),
            # Without a wait SQS asks only some of its servers, and the answer can lack messages.
            WaitTimeSeconds=1,
            MessageAttributeNames=["All"],
            AttributeNames=["SentTimestamp"],
        )
        messages = answer.get("Messages", [])
        if not messages:
            return
        hidden += messages
        for item in (item for item in messages if item["MessageId"] not in seen):
            seen.add(item["MessageId"])
            attributes = {name: value["StringValue"] for name, value in item.get("MessageAttributes", {}).items()}
            read = _refused_start(stack, attributes) if "TARGET_ARN" in attributes else _failed_event(stack, item)
            sent_at = datetime.fromtimestamp(int(item["Attributes"]["SentTimestamp"]) / 1000, UTC)
            yield DeadLetter(item["MessageId"], iso_utc(sent_at), *read), item


@contextmanager
def _shown_again(stack: DeployedStack) -> Iterator[list[dict[str, Any]]]:
    """Show the messages that the block has hidden from other readers, even when it is interrupted.

    If SQS refuses, the message is shown already.
    """
    hidden: list[dict[str, Any]] = []
    try:
        yield hidden
    finally:
        for messages in batches_of(hidden, PAGE):
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
                for number, message in enumerate(messages)
            ]
            stack.sqs.change_message_visibility_batch(QueueUrl=stack.outputs.dead_letters, Entries=entries)


def _refused_start(stack: DeployedStack, attributes: dict[str, str]) -> tuple[str, str, str, bool]:
    """EventBridge Scheduler User Guide, "Configuring a dead-letter queue for EventBridge Scheduler"."""
    target = attributes["TARGET_ARN"]
    error = ": ".join(attributes[name] for name in ("ERROR_CODE", "ERROR_MESSAGE") if name in attributes)
    own_name = target.rpartition(stack.name)[2]
    command = next((command for part, command in MANUAL_COMMANDS if part in own_name), None)
    now = f", or 'hybrid-router {command}{stack.options}' now" if command else ""
    problem = f"its schedule could not start it ({error or 'no reason given'})"
    return target, problem, f"the next start does the work{now}", False


def _failed_event(stack: DeployedStack, item: dict[str, Any]) -> tuple[str, str, str, bool]:
    """Return the files that an event announces, and whether ``route`` must see the event again."""
    try:
        announced = parse_events(SQSRecord({"messageId": item["MessageId"], "body": item["Body"]}))
    except InvalidInputError:
        problem, advice = "not an event of the input bucket", "removed, no file can be read from it"
        return item["Body"][:MAX_CHARACTERS], problem, advice, False
    if not announced:
        return "an event without a new file", "route failed in every attempt", "removed", False
    subject = ", ".join(item.file.uri for item in announced)
    # An event whose version only ``route`` looks up has no row either.
    rows = map(stack.ledger.arrivals.get, (item.file for item in announced))
    if all(row is not None and row.manifest is not None for row in rows):
        return subject, "route failed in every attempt", "removed, because it has an owner by now", False
    return subject, "route failed in every attempt", "sent to route again", True
