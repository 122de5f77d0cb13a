"""The S3A jars that Spark on this machine needs in addition to its own, downloaded once into the project's cache.

Ivy, which is part of pyspark, gets its own settings and folder: files in the user's ~/.m2 or ~/.ivy2 can neither break
the download nor change. ``spark_jars.sha256`` lists the jars with their SHA-256: others are refused. Later calls need
neither Ivy nor a network.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from local.errors import LocalCloudError

DEFAULT_CACHE = Path(__file__).resolve().parents[1] / ".cache" / "spark-jars"

_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
# Spark has its own Netty and logging; the "bundle" of the SDK would be 600 MB of services that are not used here.
_IVY_MODULE = """<ivy-module version="2.0">
  <info organisation="hybrid-router" module="spark-jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.hadoop" name="hadoop-aws" rev="3.4.2" conf="default->default"/>
    <dependency org="software.amazon.awssdk" name="s3" rev="2.29.52" conf="default->default"/>
    <dependency org="software.amazon.awssdk" name="s3-transfer-manager" rev="2.29.52" conf="default->default"/>
    <exclude org="software.amazon.awssdk" module="bundle"/>
    <exclude org="io.netty"/>
    <exclude org="org.slf4j"/>
    <exclude org="commons-logging"/>
  </dependencies>
</ivy-module>
"""
_HASHES = Path(__file__).with_suffix(".sha256").read_text(encoding="utf-8")
"""One line for each jar, as ``sha256sum`` writes it."""
_MAX_DOWNLOAD_SECONDS = 600


def resolve(
    cache: Path = DEFAULT_CACHE,
    log: Callable[[str], None] = lambda _: None,
    hashes: str = _HASHES,
    module: str = _IVY_MODULE,
) -> tuple[Path, ...]:
    """The jars, sorted by name; downloads them (about 13 MB) if ``cache`` does not have exactly these jars.

    ``module`` is what Ivy resolves.

    Several processes may call it at once. A folder with its final name is always complete and was compared with
    ``hashes``: it is filled under another name and renamed. ``log`` is called before a download. Raises
    ``LocalCloudError``: the download failed (no network, no Java), took more than 10 minutes, or brought other bytes
    than ``hashes`` states; nothing of it is left in ``cache``.
    """
    folder = cache / hashlib.sha256((_IVY_SETTINGS + module + hashes).encode()).hexdigest()[:16]
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                log("downloading Spark's S3 jars (13 MB, only once)")
                work = cache / "ivy"
                try:
                    _download(work, folder, hashes, module)
                finally:
                    shutil.rmtree(work, ignore_errors=True)
    return tuple(sorted(folder.glob("*.jar")))


def _download(work: Path, target: Path, hashes: str, module: str) -> None:
    if work.exists():
        shutil.rmtree(work)
    work.mkdir()
    (work / "settings.xml").write_text(_IVY_SETTINGS)
    (work / "ivy.xml").write_text(module)
    try:
        result = subprocess.run(
            _ivy_command(work), cwd=work, capture_output=True, text=True, timeout=_MAX_DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LocalCloudError(
            f"Spark's S3 jars were not downloaded from Maven Central within {_MAX_DOWNLOAD_SECONDS} seconds: check the "
            "network and try again."
        ) from error
    expected = {name: digest for digest, name in (line.split() for line in hashes.splitlines())}
    # For Ivy, a module without its jar is resolved as well, so its exit code is not enough.
    missing = [name for name in expected if not (work / "jars" / name).is_file()]
    if result.returncode != 0 or missing:
        reason = (result.stdout + result.stderr).strip()[-2000:]
        raise LocalCloudError(
            f"Spark's S3 jars could not be downloaded from Maven Central: check the network and try again.\n{reason}"
        )
    _check_hashes(work / "jars", expected)
    (work / "jars").rename(target)


def _check_hashes(folder: Path, expected: Mapping[str, str]) -> None:
    for jar in sorted(folder.iterdir()):
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        if digest != expected.get(jar.name):
            stated = f"the SHA-256 {expected[jar.name]}" if jar.name in expected else "no such jar"
            raise LocalCloudError(
                f"Maven Central sent {jar.name} with the SHA-256 {digest}, but local/spark_jars.sha256 has {stated}: "
                "all downloaded jars were deleted. Find out who changed the jar, and update that file only if you know."
            )


def java_command() -> str:
    """The Java that Spark takes: of JAVA_HOME, else of PATH. Raises ``LocalCloudError``: there is none."""
    java = shutil.which("java", path=os.pathsep.join([*_java_home_bin(), os.environ.get("PATH", "")]))
    if java is None:
        raise LocalCloudError("Java is missing: install a JRE of version 17 or newer and try again.")
    return java


def _ivy_command(work: Path) -> list[str]:
    options = ["-settings", "settings.xml", "-ivy", "ivy.xml", "-confs", "default", "-cache", str(work / "cache")]
    pattern = f"{work}/jars/[artifact]-[revision].[ext]"
    return [
        java_command(),
        f"-Divy.default.ivy.user.dir={work}",
        "-jar",
        str(_ivy_jar()),
        *options,
        "-retrieve",
        pattern,
        "-warn",
    ]


def _java_home_bin() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    return [str(Path(home) / "bin")] if home else []


def _ivy_jar() -> Path:
    return next((_pyspark_folder() / "jars").glob("ivy-*.jar"))


def _pyspark_folder() -> Path:
    import pyspark  # noqa: PLC0415  (a slow import that few callers need)

    return Path(pyspark.__file__).parent


if __name__ == "__main__":
    try:
        resolve(log=lambda line: print(line, flush=True))
    except LocalCloudError as error:
        sys.exit(str(error))
