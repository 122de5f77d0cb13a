"""Each service of the stack may make the requests that the template has it make, and no grant is left over."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ACCOUNT, ResolvedTemplate
from tests.unit.infra.service_edges import DELIVERY_STREAM, EDGES, Policies, edges

NO_REQUESTS = {
    "AWS::CloudWatch::Dashboard",
    "AWS::DynamoDB::GlobalTable",
    "AWS::EMRServerless::Application",
    "AWS::Glue::Database",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Logs::LogGroup",
    "AWS::Logs::LogStream",
    "AWS::Logs::MetricFilter",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    # By mail
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
}
"""Types of resources that make no request for which a policy of this template is asked."""


OTHER_ACCOUNT = "444455556666"


@pytest.fixture(scope="module", params=["assembly", "other_assembly"])
def template(request: pytest.FixtureRequest) -> ResolvedTemplate:
    synthesized: Assembly = request.getfixturevalue(request.param)
    return ResolvedTemplate(synthesized.template)


def test_every_type_of_resource_has_its_edges_or_has_none(template: ResolvedTemplate) -> None:
    kinds = {template.kind(name) for name in template.resources}
    assert (kinds | {DELIVERY_STREAM}) - NO_REQUESTS == EDGES.keys()


def test_every_edge_is_allowed(template: ResolvedTemplate) -> None:
    policies = Policies.of(template)
    walked = list(edges(template))
    # Given alarms to the topic, the bucket to its queue, schedules, the queue to route, machines, jobs' code.
    services = {edge.service.partition(".")[0] for edge in walked}
    emr = {"emr-serverless"} if template.of_kind("AWS::EMRServerless::Application") else set()
    firehose = {"firehose"} if template.of_kind(DELIVERY_STREAM) else set()
    assert services == {"cloudwatch", "s3", "scheduler", "lambda", "states", "glue"} | emr | firehose
    # Then the policies of the template allow each of them.
    refused = [f"{edge.source}: {edge.action} on {edge.resource}" for edge in walked if not policies.allow(edge)]
    assert not refused


def test_no_service_acts_for_another_account(template: ResolvedTemplate) -> None:
    # Given the requests of services in their own name: a bucket's name, once free, can belong to another account
    walked = [edge for edge in edges(template) if not edge.role]
    assert {edge.service for edge in walked} == {f"{name}.amazonaws.com" for name in ("cloudwatch", "s3")}
    # Then none is allowed for a resource of another account, in whose ARN the account is, unless it is a bucket
    policies = Policies.of(template)
    elsewhere = [replace(edge, source_arn=edge.source_arn.replace(ACCOUNT, OTHER_ACCOUNT)) for edge in walked]
    assert not [edge for edge in elsewhere if policies.allow(edge, OTHER_ACCOUNT)]


def test_without_any_one_allowing_statement_an_edge_is_refused(template: ResolvedTemplate) -> None:
    walked = list(edges(template))
    policies = Policies.of(template)
    for where, changed in _without_one_statement(policies):
        assert not all(changed.allow(edge) for edge in walked), f"no edge needs the statement {where}"


def test_without_trust_no_role_acts(template: ResolvedTemplate) -> None:
    policies = Policies.of(template)
    for role in {edge.role for edge in edges(template)} - {""}:
        changed = replace(policies, trust={**policies.trust, role: {"Statement": []}})
        assert not all(changed.allow(edge) for edge in edges(template) if edge.role == role)


def _without_one_statement(policies: Policies) -> Iterator[tuple[str, Policies]]:
    """The policies of services without one of their statements, one after the other.

    Functions and jobs are left out: most of their statements serve their own code, which other tests compare.
    """
    for arn, statements in policies.identity.items():
        if any(part in arn for part in ("Machines", "Schedules", "Records")):
            for number, statement in _allowing(statements):
                left = [item for index, item in enumerate(statements) if index != number]
                yield f"{arn} {statement}", replace(policies, identity={**policies.identity, arn: left})
    for arn, document in policies.resource.items():
        for number, statement in _allowing(document["Statement"]):
            changed = copy.deepcopy(document)
            del changed["Statement"][number]
            yield f"{arn} {statement}", replace(policies, resource={**policies.resource, arn: changed})


def _allowing(statements: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((number, item) for number, item in enumerate(statements) if item["Effect"] == "Allow")
