"""Spark's S3 jars are downloaded once, completely or not at all. A stub takes the place of Java and Ivy."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.errors import LocalCloudError
from local.spark_jars import resolve

_STUB = """#!/bin/sh
echo started >> "{folder}/calls"
mkdir -p jars
touch jars/hadoop-aws-3.4.2.jar jars/s3-2.29.52.jar {third}
exit {code}
"""


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Puts a stub of java first on the PATH; returns a function that sets the stub's behaviour."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def behave(code: int = 0, complete: bool = True) -> None:
        third = "jars/s3-transfer-manager-2.29.52.jar" if complete else ""
        (folder / "java").write_text(_STUB.format(folder=tmp_path, code=code, third=third))
        (folder / "java").chmod(0o755)

    behave()
    return behave


def _calls(tmp_path):
    return (tmp_path / "calls").read_text().count("started")


def test_jars_are_downloaded_once_even_by_concurrent_callers(java, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: resolve(tmp_path / "cache"), range(8)))
    assert {tuple(jar.name for jar in jars) for jars in found} == {
        ("hadoop-aws-3.4.2.jar", "s3-2.29.52.jar", "s3-transfer-manager-2.29.52.jar")
    }
    assert all(jar.is_file() for jar in found[0])
    assert _calls(tmp_path) == 1


@pytest.mark.parametrize("failure", [{"code": 1}, {"complete": False}])
def test_failed_download_is_not_taken_for_a_complete_one(java, tmp_path, failure):
    # Given a download that fails, or that lacks a jar without an error
    java(**failure)
    with pytest.raises(LocalCloudError, match="could not be downloaded"):
        resolve(tmp_path / "cache")
    # When the next download works, then the jars are there
    java()
    assert len(resolve(tmp_path / "cache")) == 3


def test_maven_and_ivy_folders_of_the_user_are_not_used(java, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    resolve(tmp_path / "cache")
    assert not (tmp_path / "home").exists()
