"""The files that a deployment uploads: the functions' code, the jobs' code, scripts and wheels, the settings.

Code is pure Python with the same bytes on every machine, for arm64, x86-64 and the local cloud alike. The AWS SDK of
the functions comes from the Lambda runtime.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterable
from importlib.metadata import distribution
from pathlib import Path

from aws_cdk import FileAssetLocation, FileAssetPackaging, IStackSynthesizer, Stack, Stage
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from infra.allow import allow
from infra.wheels import WHEELS_SUFFIX, AssetError, JobRuntime, check_wheels, unpack
from lake.settings import Settings, dump_settings

SETTINGS_FILE = "settings.json"
OWN_PACKAGES = ("lake", "report", "router")
JOB_PACKAGES = ("batch_job", "lake", "streaming_job", "transform", "verify")
LIBRARIES = {
    "aws-lambda-powertools": "aws_lambda_powertools",
    "fastavro": "fastavro",
    "jmespath": "jmespath",
    "typing-extensions": "typing_extensions.py",
    "tzdata": "tzdata",
}
"""Distribution -> the module or package that is copied. zoneinfo needs tzdata: Lambda's image has no time zones."""
SOURCE_SUFFIXES = frozenset({".py", ".typed", ".js", ".css"})
COMPILED_SUFFIXES = frozenset({".so", ".pyd", ".dylib", ".pyc"})
"""Suffixes of files left out: the libraries have Python code for each. A test imports every handler from the asset."""


class Assets:
    """``cdk deploy`` uploads each under the hash of its content."""

    def __init__(
        self,
        scope: Construct,
        checkout: Path,
        settings: Settings,
        workspace: Path,
        wheels: Path | None,
        synthesizer: IStackSynthesizer,
    ) -> None:
        """Build the assets in ``workspace``, an existing folder that must remain until the app is synthesized.

        ``synthesizer`` is the stack's, and bound to it. Raises ``AssetError`` if wheels are missing or belong to
        another checkout, or this checkout lacks a package.
        """
        glue_wheels = None if wheels is None else check_wheels(checkout, JobRuntime.glue(), wheels)
        libraries = None
        if wheels is not None and settings.uses_emr:
            emr_wheels = check_wheels(checkout, JobRuntime.emr(settings.emr.architecture))
            libraries = unpack(emr_wheels, workspace / "libraries")
        settings_file = workspace / "settings.json"
        settings_file.write_text(dump_settings(settings), encoding="utf-8")
        self.functions = lambda_.Code.from_asset(str(build_lambda_asset(checkout, settings, workspace / "lambda")))
        self.job_code = _asset(scope, "JobCode", build_job_code(checkout, workspace / "job_code"))
        self.stream_script = _asset(scope, "StreamScript", checkout / "streaming_job" / "main.py")
        self.batch_script = _asset(scope, "BatchScript", checkout / "batch_job" / "main.py")
        self.settings = _asset(scope, "Settings", settings_file)
        self.wheels = None if glue_wheels is None else _wheels(scope, glue_wheels, synthesizer)
        """None on the local cloud, whose jobs use the libraries of this environment."""
        self.emr_libraries = None if libraries is None else _asset(scope, "EmrLibraries", libraries)
        """None on the local cloud too, and if no run is on EMR Serverless."""

    def grant_read(self, role: iam.Role) -> None:
        """Let a job's role read the assets of every deployment of this stage, and nothing else in the bootstrap bucket.

        A deployment changes the role at once, but a run keeps the arguments of its start: executors that start later
        read the code and wheels of the previous deployment.
        """
        stack = Stack.of(self.job_code)
        objects = self.job_code.bucket.arn_for_objects(f"{asset_prefix(stack.stack_name)}*")
        allow(role, ("s3:GetObject",), [objects], "Each deployment uploads its files under new keys.")


def asset_prefix(stack_name: str) -> str:
    """A stack's folder for assets in the bootstrap bucket, which all stacks of the account and region share."""
    return f"{stack_name}/"


def glue_code(asset: s3_assets.Asset) -> glue.Code:
    return glue.Code.from_bucket(asset.bucket, asset.s3_object_key)


def _asset(scope: Construct, name: str, path: Path) -> s3_assets.Asset:
    return s3_assets.Asset(scope, name, path=str(path))


def _wheels(scope: Construct, zip_file: Path, synthesizer: IStackSynthesizer) -> FileAssetLocation:
    # Glue recognises a zip of wheels by its double suffix. The key of an asset is its hash and the last part of the
    # suffix, so the first part of the suffix goes into the hash.
    stage = Stage.of(scope)
    assert stage is not None, "the stack is in an App"
    middle, last = WHEELS_SUFFIX.rsplit(".", 1)
    name = hashlib.sha256(zip_file.read_bytes()).hexdigest() + middle
    copy = Path(stage.asset_outdir) / f"asset.{name}.{last}"
    shutil.copyfile(zip_file, copy)
    return synthesizer.add_file_asset(
        file_name=copy.name, source_hash=name, packaging=FileAssetPackaging.FILE, display_name="Wheels"
    )


def build_lambda_asset(checkout: Path, settings: Settings, folder: Path) -> Path:
    """Fill ``folder`` with the functions' code, its libraries and the settings, and return it."""
    _copy_packages(checkout, OWN_PACKAGES, SOURCE_SUFFIXES, folder)
    for name, module in LIBRARIES.items():
        for file in distribution(name).files or []:
            if file.parts[0] == module and file.suffix not in COMPILED_SUFFIXES:
                _copy(Path(str(file.locate())), folder / file)
    (folder / SETTINGS_FILE).write_text(dump_settings(settings), encoding="utf-8")
    return folder


def build_job_code(checkout: Path, folder: Path) -> Path:
    """Fill ``folder`` with the packages that both jobs import, and return it."""
    _copy_packages(checkout, JOB_PACKAGES, {".py"}, folder)
    return folder


def _copy_packages(checkout: Path, packages: Iterable[str], suffixes: Collection[str], folder: Path) -> None:
    """Copy the files that are uploaded; caches and others are left out."""
    for package in packages:
        files = [file for file in (checkout / package).rglob("*") if file.suffix in suffixes]
        if not files:
            raise AssetError(f"the package {package} is missing in {checkout}: deploy from a complete checkout")
        for file in files:
            _copy(file, folder / file.relative_to(checkout))


def _copy(file: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)
