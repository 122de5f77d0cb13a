"""What a deployment uploads: the functions' code, the jobs' code and scripts, the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_glue as glue
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets

from infra.allow import allow
from infra.job_asset import build_job_zip, job_script
from infra.lambda_asset import build_lambda_asset
from lake.settings import dump_settings

if TYPE_CHECKING:
    from pathlib import Path

    from aws_cdk import aws_iam as iam
    from constructs import Construct

    from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class Assets:
    """Uploaded by ``cdk deploy`` under the hash of their content."""

    functions: lambda_.Code
    job_code: s3_assets.Asset
    stream_script: s3_assets.Asset
    batch_script: s3_assets.Asset
    settings: s3_assets.Asset

    @classmethod
    def build(cls, scope: Construct, checkout: Path, settings: Settings, workspace: Path) -> Assets:
        """Put the assets together in ``workspace``, a folder that is needed until the stack is built."""
        settings_file = workspace / "settings.json"
        settings_file.write_text(dump_settings(settings), encoding="utf-8")
        return cls(
            functions=lambda_.Code.from_asset(str(build_lambda_asset(checkout, settings, workspace / "lambda"))),
            job_code=_asset(scope, "JobCode", build_job_zip(checkout, workspace / "job_code.zip")),
            stream_script=_asset(scope, "StreamScript", job_script(checkout, "streaming_job")),
            batch_script=_asset(scope, "BatchScript", job_script(checkout, "batch_job")),
            settings=_asset(scope, "Settings", settings_file),
        )

    def grant_read(self, role: iam.Role) -> None:
        """Let a job's role read what the jobs are made of, and nothing else of the bootstrap bucket."""
        assets = (self.job_code, self.stream_script, self.batch_script, self.settings)
        allow(role, ("s3:GetObject",), [item.bucket.arn_for_objects(item.s3_object_key) for item in assets])


def glue_code(asset: s3_assets.Asset) -> glue.Code:
    """The asset as a Glue job takes it."""
    return glue.Code.from_bucket(asset.bucket, asset.s3_object_key)


def _asset(scope: Construct, name: str, path: Path) -> s3_assets.Asset:
    return s3_assets.Asset(scope, name, path=str(path))
