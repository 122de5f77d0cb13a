"""How many events and starts of schedules were given up."""

from __future__ import annotations

from cli.deployed_stack import DeployedStack


def count_dead_letters(stack: DeployedStack) -> int:
    """About how many messages are in the dead-letter queue. Raises botocore's errors."""
    name = "ApproximateNumberOfMessages"
    answer = stack.sqs.get_queue_attributes(QueueUrl=stack.outputs.dead_letters, AttributeNames=[name])
    return int(answer["Attributes"][name])
