"""A deployment's uploads: code that is pure Python, complete, and the same every time; wheels of this checkout."""

import ast
import hashlib
import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from infra import assets
from infra.assets import COMPILED_SUFFIXES, JOB_PACKAGES, OWN_PACKAGES, build_job_code, build_lambda_asset
from infra.emr_serverless import RELEASE
from infra.functions import SPECS
from infra.synth import CHECKOUT, synth
from infra.wheels import (
    JOB_LIBRARIES,
    REQUIREMENTS,
    AssetError,
    JobRuntime,
    check_wheels,
    locked_versions,
    missing_libraries,
    unpack,
    write_zip,
)
from lake.engines.emr_serverless import BATCH_LAUNCH
from lake.settings import Settings
from local.engines.emr_serverless import spark_properties
from tests.unit.infra.conftest import Assembly

SETTINGS = Settings(stage="test")
COMPILED_MAGIC = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_functions_code_is_pure_python(assembly: Assembly) -> None:
    files = [path for path in assembly.asset_folder("Routerroute").rglob("*") if path.is_file()]
    assert len(files) > 100
    for file in files:
        assert file.suffix not in COMPILED_SUFFIXES, file
        # By content as well: time zone files have no suffix either, but are data.
        assert not file.read_bytes().startswith(COMPILED_MAGIC), file


def test_every_handler_can_be_imported_from_the_asset_and_boto3_alone(assembly: Assembly) -> None:
    # Given the asset, the standard library and the packages of the Lambda runtime: boto3 and its dependencies.
    runtime = ("boto3", "botocore", "s3transfer", "dateutil", "six", "urllib3", "jmespath")
    program = f"""
import importlib, sys
from importlib.machinery import PathFinder
class Guard:
    def find_spec(self, name, path=None, target=None):
        if path is None and name.split(".")[0] not in {runtime!r} + ("backports",):
            spec = PathFinder.find_spec(name, [entry for entry in sys.path if "site-packages" not in entry])
            if spec is None:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
            return spec
sys.meta_path.insert(2, Guard())
sys.path[:] = [sys.argv[1]] + [entry for entry in sys.path if entry not in ("", sys.argv[2])]
for name in {[spec.module for spec in SPECS]}:
    module = importlib.import_module(f"router.{{name}}")
    assert module.__file__.startswith(sys.argv[1]), module.__file__
    assert callable(module.handler)
import zoneinfo, tzdata
assert tzdata.__file__.startswith(sys.argv[1])
import report.html
assert (report.html.STATIC / report.html.CHARTS).is_file() and str(report.html.STATIC).startswith(sys.argv[1])
assert "pyspark" not in sys.modules and "pyarrow" not in sys.modules
"""
    folder = assembly.asset_folder("Routerroute")
    # When a fresh interpreter imports every handler.
    result = subprocess.run(
        [sys.executable, "-B", "-c", program, str(folder), str(CHECKOUT)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={"POWERTOOLS_SERVICE_NAME": "test", "AWS_DEFAULT_REGION": "us-east-1"},
    )
    assert result.returncode == 0, result.stderr


def test_the_same_checkout_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (build_lambda_asset(CHECKOUT, SETTINGS, tmp_path / name) for name in ("first", "second"))
    assert content_of(first) == content_of(second)


@pytest.mark.parametrize(
    "build", [build_job_code, lambda checkout, folder: build_lambda_asset(checkout, SETTINGS, folder)]
)
def test_an_incomplete_checkout_is_refused(tmp_path: Path, build: Callable[[Path, Path], Path]) -> None:
    with pytest.raises(AssetError, match="deploy from a complete checkout"):
        build(tmp_path, tmp_path / "asset")


def test_caches_and_other_files_are_not_uploaded(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for package in {*OWN_PACKAGES, *JOB_PACKAGES}:
        (checkout / package / "__pycache__").mkdir(parents=True)
        for name in ("__init__.py", "notes.txt", "__pycache__/a.cpython-311.pyc"):
            (checkout / package / name).write_text("")
    for asset in (
        build_lambda_asset(checkout, SETTINGS, tmp_path / "asset"),
        build_job_code(checkout, tmp_path / "jobs"),
    ):
        assert {path.name for path in (asset / "lake").rglob("*") if path.is_file()} == {"__init__.py"}


ARGUMENTS = ("--additional-python-modules", "--python-modules-installer-option", "EmrSparkSubmitParameters")


def imported(package: str) -> set[str]:
    """Top-level modules that a package's files import at run time, not only for type checking."""
    found: set[str] = set()
    for file in (CHECKOUT / package).rglob("*.py"):
        for node in ast.walk(_without_type_checking(ast.parse(file.read_text()))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found


def _without_type_checking(tree: ast.Module) -> ast.Module:
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
    ]
    return tree


def test_everything_that_the_jobs_import_is_in_the_zip_or_on_glue() -> None:
    # Given the modules that are neither of the standard library nor of this project.
    modules = {module for package in JOB_PACKAGES for module in imported(package)}
    third_party = modules - set(sys.stdlib_module_names) - set(JOB_PACKAGES)
    assert {"ndjson_arrow", "obstore", "pyarrow"} <= third_party
    # When their distributions are looked up.
    distributions = packages_distributions()
    libraries = {distributions.get(module, [module])[0].lower().replace("_", "-") for module in third_party}
    # Then each is in the zip or on Glue, and JOB_LIBRARIES is complete.
    runtime = JobRuntime.glue()
    packed = missing_libraries(CHECKOUT, runtime)
    assert libraries <= set(packed) | set(runtime.packages)
    assert libraries - set(runtime.packages) <= set(JOB_LIBRARIES)


def test_the_wheels_are_built_without_the_libraries_of_the_project() -> None:
    # Given the dependency group `wheels`, which has neither the SDK of AWS nor CDK
    program = "import sys; sys.modules.update(dict.fromkeys(['aws_cdk', 'boto3', 'botocore'])); import infra.wheels"
    subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=True)


def test_dependencies_follow_their_markers() -> None:
    # Given a Glue without typing-extensions, which obstore requires before Python 3.13.
    runtime = JobRuntime.glue()
    packages = {name: version for name, version in runtime.packages.items() if name != "typing-extensions"}
    # Then
    older = replace(runtime, python="3.11", packages=packages)
    assert "typing-extensions" in missing_libraries(CHECKOUT, older)
    assert "typing-extensions" not in missing_libraries(CHECKOUT, replace(runtime, packages=packages))


def release(engine: str) -> str:
    """The release that the file of an engine describes."""
    runtime = tomllib.loads((CHECKOUT / "infra" / f"{engine}_runtime.toml").read_text())["runtime"]
    return str(runtime["release"])


def test_on_emr_serverless_the_jobs_contain_everything_except_spark() -> None:
    assert release("emr") == RELEASE
    needed = missing_libraries(CHECKOUT, JobRuntime.emr("arm64"))
    assert {"boto3", "botocore", "ndjson-arrow", "obstore", "pyarrow", "urllib3"} <= needed.keys()
    assert not {"pyspark", "py4j"} & needed.keys()


def test_the_runtime_is_the_one_that_the_jobs_are_deployed_on(assembly: Assembly) -> None:
    runtime = JobRuntime.glue()
    assert {job["GlueVersion"] for job in assembly.resources("AWS::Glue::Job").values()} == {
        release("glue").removeprefix("Glue ")
    }
    # The local cloud runs the same Spark, and Glue's Python is in the project's range.
    assert runtime.packages["pyspark"] == locked_versions(CHECKOUT)["pyspark"]
    assert runtime.packages["py4j"] == locked_versions(CHECKOUT)["py4j"]
    assert runtime.python == "3.13"
    assert tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["requires-python"] == ">=3.11,<3.14"


def test_wheels_change_arguments_and_no_permission(
    tmp_path: Path, other_assembly: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given zips that count as the zips of this checkout.
    wheels, libraries = tmp_path / "made.gluewheels.zip", tmp_path / "libraries.zip"
    for file in (wheels, libraries):
        file.write_bytes(file.name.encode())
    monkeypatch.setattr(assets, "check_wheels", lambda _checkout, _runtime, given=libraries: given)
    monkeypatch.setattr(assets, "unpack", lambda _wheels, _target: libraries)
    # When the stack of ``other_assembly`` is synthesized for a real deployment.
    real = Assembly(synth(other_assembly.settings, tmp_path / "out", wheels=wheels), other_assembly.settings)
    # Then the Glue jobs install exactly that zip, and nothing from an index.
    for job in real.resources("AWS::Glue::Job").values():
        modules = job["DefaultArguments"]["--additional-python-modules"]
        assert modules.startswith("s3://cdk-hnb659fds-assets-")
        assert modules.endswith(".gluewheels.zip")
        assert (real.folder / f"asset.{modules.rsplit('/', 1)[1]}").read_bytes() == wheels.read_bytes()
        assert job["DefaultArguments"]["--python-modules-installer-option"] == "--no-index"
    # And CDK uploads it under exactly that key.
    uploads = json.loads(next(real.folder.glob("*.assets.json")).read_text())["files"]
    keys = {target["objectKey"] for file in uploads.values() for target in file["destinations"].values()}
    assert modules.removeprefix("s3://").partition("/")[2] in keys
    # And the jobs' role may read it.
    assert real.may_read("Jobs", modules)
    # And driver and executors on EMR Serverless get the archive of their processor on their path.
    machine = real.one("AWS::StepFunctions::StateMachine", "MachinesOvernight")
    parameters = machine["DefinitionSubstitutions"]["EmrSparkSubmitParameters"]
    assert len(parameters) < MAX_PARAMETERS
    driver = {"entryPoint": "main.py", "sparkSubmitParameters": parameters}
    properties = spark_properties({"jobDriver": {"sparkSubmit": driver}})
    uri, _, folder = properties["spark.archives"].partition("#")
    assert uri.endswith(".zip")
    assert uri != properties["spark.submit.pyFiles"]
    for name in ("spark.emr-serverless.driverEnv.PYTHONPATH", "spark.executorEnv.PYTHONPATH"):
        assert properties[name] == f"./{folder}"
    assert real.one("AWS::EMRServerless::Application", "Emr")["Architecture"] == "ARM64"
    # And nothing else differs from the template for the local cloud.
    assert _without_wheels(real.template) == _without_wheels(other_assembly.template)
    assert real.template != other_assembly.template


def _without_wheels(template: dict[str, Any]) -> dict[str, Any]:
    for body in template["Resources"].values():
        for arguments in ("DefaultArguments", "DefinitionSubstitutions"):
            for argument in ARGUMENTS:
                body.get("Properties", {}).get(arguments, {}).pop(argument, None)
        body.get("Properties", {}).get("Environment", {}).get("Variables", {}).pop(BATCH_LAUNCH, None)
    return template


MAX_PARAMETERS = 102_400
"""Characters of sparkSubmitParameters (EMR Serverless API Reference, SparkSubmit)."""
OBSTORE = "obstore-1.0.0-py3-none-any.whl"
READER_WHEEL = "ndjson_arrow-0.1.0-py3-none-any.whl"
PINS = {"ndjson-arrow": "0.1.0", "obstore": "1.0.0"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose uv.lock states the hash of a small wheel of obstore."""
    folder = tmp_path / "checkout"
    (folder / "native" / "src").mkdir(parents=True)
    (folder / "native" / "Cargo.toml").write_text('[package]\nversion = "0.1.0"\n')
    (folder / "native" / "src" / "lib.rs").write_text("// the reader\n")
    digest = hashlib.sha256(write_wheel(tmp_path / OBSTORE, {"obstore.py": b"1"}).read_bytes()).hexdigest()
    lock = f"""
[[package]]
name = "obstore"
version = "1.0.0"
wheels = [{{ hash = "sha256:{digest}" }}, {{ hash = "sha256:{"0" * 64}" }}]

[[package]]
name = "ndjson-arrow"

[[package]]
name = "idna"
version = "3.2"
"""
    (folder / "uv.lock").write_text(lock)
    return folder


@pytest.fixture
def made(tmp_path: Path, checkout: Path) -> Path:
    """The files that ``make wheels`` writes for this checkout."""
    target = tmp_path / "made.gluewheels.zip"
    reader = write_wheel(tmp_path / READER_WHEEL, {"ndjson_arrow.py": b"2"})
    write_zip([reader, tmp_path / OBSTORE], PINS, checkout, target)
    return target


def check(zip_file: Path, checkout: Path) -> Path:
    return check_wheels(checkout, JobRuntime.glue(), zip_file)


def rewrite(made: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """A copy of the zip, comment included, with other files in it."""
    with zipfile.ZipFile(made) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        comment = archive.comment
    change(files)
    target = made.with_name("changed.gluewheels.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.comment = comment
    return target


def test_only_the_zip_of_this_checkout_is_accepted(made: Path, checkout: Path) -> None:
    assert check(made, checkout) == made
    assert check(rewrite(made, lambda files: files), checkout)
    (checkout / "native" / "src" / "lib.rs").write_text("// another reader\n")
    with pytest.raises(AssetError, match="another state of native/"):
        check(made, checkout)
    made.write_bytes(b"PK")
    with pytest.raises(AssetError, match="cannot be read"):
        check(made, checkout)
    made.unlink()
    with pytest.raises(AssetError, match="are missing: run `make wheels`"):
        check(made, checkout)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda files: files.update({f"wheels/{OBSTORE}": b"other"}), f"contain wheels/{OBSTORE}, whose SHA-256"),
        (lambda files: files.pop(f"wheels/{OBSTORE}"), "not exactly the ones that the jobs need"),
        (lambda files: files.update({"wheels/idna-3.2-py3-none-any.whl": b""}), "not exactly the ones"),
        (lambda files: files.update({f"wheels/{OBSTORE[:-4]}.exe": b""}), "cannot be read"),
        (lambda files: files.update({REQUIREMENTS: b"ndjson-arrow==0.1.0\nobstore==0.9.0\n"}), "not exactly the ones"),
    ],
)
def test_a_zip_with_other_files_is_refused(
    made: Path, checkout: Path, change: Callable[[dict[str, bytes]], object], reason: str
) -> None:
    with pytest.raises(AssetError, match=reason) as error:
        check(rewrite(made, change), checkout)
    assert "run `make wheels`" in str(error.value)


def test_python_imports_what_spark_unpacks(made: Path, tmp_path: Path) -> None:
    # Given the content of the archive for EMR Serverless, which is the same each time
    folder = unpack(made, tmp_path / "libraries")
    assert content_of(unpack(made, tmp_path / "again")) == content_of(folder)
    # When it is on the path, then the packages can be imported
    environment = {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-S", "-c", "import obstore, ndjson_arrow"]
    subprocess.run(command, env=environment, check=True)


def write_wheel(path: Path, files: dict[str, bytes]) -> Path:
    """Write a wheel with these files and the RECORD that lists them; returns its path."""
    info = f"{path.name.split('-')[0]}-1.dist-info"
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/RECORD", record)
    return path
