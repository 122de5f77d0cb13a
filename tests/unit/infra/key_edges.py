"""What the services of an encrypted stack ask of its KMS key: for each edge to an encrypted resource, and for logs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.infra.resolved_template import REGION, ResolvedTemplate
from tests.unit.infra.service_edges import Edge, edges

KEY_ACTIONS = {
    "sqs:SendMessage": ("kms:GenerateDataKey", "kms:Decrypt"),
    "sqs:ReceiveMessage": ("kms:Decrypt",),
    "sns:Publish": ("kms:GenerateDataKey", "kms:Decrypt"),
    "s3:GetObject": ("kms:Decrypt",),
    "s3:PutObject": ("kms:GenerateDataKey", "kms:Decrypt"),
}
"""Action on an encrypted resource -> actions on its key."""
LOG_ACTIONS = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:GenerateDataKey", "kms:DescribeKey")
"""Amazon CloudWatch Logs User Guide, "Encrypt log data in CloudWatch Logs using AWS Key Management Service"."""


def key_edges(template: ResolvedTemplate, key: str) -> Iterator[Edge]:
    """Every request to the key that a service makes, in its own name or in that of a role."""
    encrypted = {
        template.arn(name)
        for kind in ("AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::S3::Bucket")
        for name in template.of_kind(kind)
    }
    for edge in edges(template):
        if edge.resource.partition("/")[0] in encrypted:
            via = {**edge.keys, "kms:viaservice": f"{edge.action.partition(':')[0]}.{REGION}.amazonaws.com"}
            for action in KEY_ACTIONS.get(edge.action, ()):
                yield Edge(edge.source, edge.source_arn, edge.service, action, key, edge.role, via)
    for name in template.of_kind("AWS::Logs::LogGroup"):
        arn = template.arn(name).removesuffix(":*")
        for action in LOG_ACTIONS:
            context = {"kms:encryptioncontext:aws:logs:arn": arn}
            yield Edge(name, arn, f"logs.{REGION}.amazonaws.com", action, key, "", context)
