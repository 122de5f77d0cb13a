"""A small CDK app with every kind of resource that the product uses: ``python probe_app.py <output folder>``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn

if TYPE_CHECKING:
    from constructs import Construct

HERE = Path(__file__).resolve().parent


class ProbeStack(cdk.Stack):
    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        bucket = s3.Bucket(self, "Input", versioned=True)
        function = lambda_.Function(
            self,
            "Route",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="handler.handle",
            code=lambda_.Code.from_asset(str(HERE / "probe_lambda")),
            timeout=cdk.Duration.seconds(3),
        )
        self._jobs(bucket)
        overnight = self._machine(
            "Overnight", HERE / "probe_overnight.asl.json", {"Job": "probe-batch", "Function": function.function_arn}
        )
        outputs = {
            "Bucket": bucket.bucket_name,
            "Function": function.function_name,
            "Overnight": overnight.state_machine_arn,
        }
        for key, value in outputs.items():
            cdk.CfnOutput(self, f"Out{key}", value=value).override_logical_id(key)

    def _jobs(self, bucket: s3.Bucket) -> None:
        role = iam.Role(self, "JobRole", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
        bucket.grant_read_write(role)
        # The script, its modules, and calls of boto3 that the tests look at.
        role.add_to_policy(iam.PolicyStatement(actions=["*"], resources=["*"]))
        script = glue.Code.from_asset(str(HERE / "probe_job.py"))
        common: dict[str, Any] = {"role": role, "script": script, "glue_version": glue.GlueVersion.V6_0}
        glue.PySparkEtlJob(
            self,
            "Batch",
            job_name="probe-batch",
            max_concurrent_runs=2,
            timeout=cdk.Duration.minutes(240),
            default_arguments={"--task": "succeed"},
            **common,
        )
        glue.PySparkStreamingJob(self, "Stream", job_name="probe-stream", **common)

    def _machine(self, name: str, definition: Path, substitutions: dict[str, str]) -> sfn.StateMachine:
        machine = sfn.StateMachine(
            self,
            name,
            definition_body=sfn.DefinitionBody.from_string(definition.read_text()),
            definition_substitutions=substitutions,
        )
        machine.add_to_role_policy(iam.PolicyStatement(actions=["*"], resources=["*"]))
        return machine


if __name__ == "__main__":
    app = cdk.App(outdir=sys.argv[1], analytics_reporting=False)
    ProbeStack(app, "Probe")
    app.synth()
