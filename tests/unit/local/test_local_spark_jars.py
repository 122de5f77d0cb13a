"""Spark's S3 jars are downloaded once, with the known bytes, completely or not at all. A stub stands in for Ivy."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.errors import LocalCloudError
from local.spark_jars import resolve

_STUB = """#!/bin/sh
echo started >> "{folder}/calls"
mkdir -p jars
for jar in {jars}; do printf '%s' "bytes of $jar" > "jars/$jar"; done
printf '%s' "{change}" >> jars/s3-2.29.52.jar
exit {code}
"""
_JARS = ("hadoop-aws-3.4.2.jar", "s3-2.29.52.jar", "s3-transfer-manager-2.29.52.jar")
_HASHES = "".join(f"{hashlib.sha256(f'bytes of {name}'.encode()).hexdigest()}  {name}\n" for name in _JARS)


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Puts a stub of java first on the PATH; returns a function that sets the stub's behaviour."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def behave(code: int = 0, jars: tuple[str, ...] = _JARS, change: str = "") -> None:
        stub = _STUB.format(folder=tmp_path, code=code, jars=" ".join(jars), change=change)
        (folder / "java").write_text(stub)
        (folder / "java").chmod(0o755)

    behave()
    return behave


def _calls(tmp_path):
    return (tmp_path / "calls").read_text().count("started")


def test_jars_are_downloaded_once_even_by_concurrent_callers(java, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: resolve(tmp_path / "cache", hashes=_HASHES), range(8)))
    assert {tuple(jar.name for jar in jars) for jars in found} == {_JARS}
    assert all(jar.is_file() for jar in found[0])
    assert _calls(tmp_path) == 1


@pytest.mark.parametrize("failure", [{"code": 1}, {"jars": _JARS[:2]}])
def test_failed_download_is_not_taken_for_a_complete_one(java, tmp_path, failure):
    # Given a download that fails, or that lacks a jar without an error
    java(**failure)
    with pytest.raises(LocalCloudError, match="could not be downloaded"):
        resolve(tmp_path / "cache", hashes=_HASHES)
    # When the next download works, then the jars are there
    java()
    assert len(resolve(tmp_path / "cache", hashes=_HASHES)) == 3


@pytest.mark.parametrize(
    ("difference", "reason"),
    [
        (
            {"change": "!"},
            r"sent s3-2\.29\.52\.jar with the SHA-256 \w{64}, but local/spark_jars\.sha256 has the ",
        ),
        ({"jars": (*_JARS, "added-1.jar")}, r"sent added-1\.jar with the SHA-256 \w{64}, but .* has no such jar"),
    ],
)
def test_jar_with_other_bytes_is_refused_and_not_kept(java, tmp_path, difference, reason):
    # Given a repository that sends a jar with one more byte, or one more jar
    java(**difference)
    # When the jars are downloaded, then the message names the jar
    with pytest.raises(LocalCloudError, match=reason):
        resolve(tmp_path / "cache", hashes=_HASHES)
    # And nothing of the download is left
    assert list((tmp_path / "cache").rglob("*.jar")) == []
    # When the repository sends the known bytes again, then the jars are there
    java()
    assert len(resolve(tmp_path / "cache", hashes=_HASHES)) == 3


def test_jars_with_other_known_hashes_are_downloaded_again(java, tmp_path):
    # Given jars in the cache
    resolve(tmp_path / "cache", hashes=_HASHES)
    # When the list of known hashes has changed, then the cached jars are not taken for the listed ones
    with pytest.raises(LocalCloudError, match=r"sent hadoop-aws-3\.4\.2\.jar"):
        resolve(tmp_path / "cache", hashes=_HASHES.replace(_HASHES[:64], "0" * 64))
    assert _calls(tmp_path) == 2


def test_maven_and_ivy_folders_of_the_user_are_not_used(java, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    resolve(tmp_path / "cache", hashes=_HASHES)
    assert not (tmp_path / "home").exists()
