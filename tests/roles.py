"""A role for the stubs of tests that do not test permissions: every service may assume it, and it may do everything."""

import json
from collections.abc import Mapping

from local.isolation import AwsClient

SERVICES = ("emr-serverless", "glue", "lambda", "scheduler", "states")


def create_unlimited_role(iam: AwsClient, name: str) -> str:
    """Create the role; return its ARN."""
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": [f"{service}.amazonaws.com" for service in SERVICES]},
        "Action": "sts:AssumeRole",
    }
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))["Role"]
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=_document(everything))
    arn: str = role["Arn"]
    return arn


def _document(statement: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
