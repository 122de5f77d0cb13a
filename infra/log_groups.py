"""Log groups of the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs

if TYPE_CHECKING:
    from constructs import Construct


def add_log_group(scope: Construct, construct_id: str, name: str | None = None) -> logs.LogGroup:
    """A log group that keeps events for 30 days and is deleted with the stack; None: CloudFormation names it."""
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        retention=logs.RetentionDays.ONE_MONTH,
        removal_policy=RemovalPolicy.DESTROY,
    )
