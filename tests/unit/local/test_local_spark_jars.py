"""Spark's jars are downloaded once, with the known bytes, completely or not at all. A folder stands in for Maven."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from local.errors import LocalCloudError
from local.spark_jars import resolve

JARS = ("hadoop-aws-3.4.2.jar", "s3-2.29.52.jar")
HASHES = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  org/{name}\n" for name in JARS)


@pytest.fixture
def maven(tmp_path):
    """The folder with the jars of a repository."""
    folder = tmp_path / "maven" / "org"
    folder.mkdir(parents=True)
    for name in JARS:
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def jars(maven, tmp_path):
    return partial(resolve, HASHES, cache=tmp_path / "cache", repository=maven.parent.as_uri())


def test_jars_are_downloaded_once_even_by_concurrent_callers(jars):
    downloads: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: jars(log=downloads.append), range(8)))
    assert {tuple(jar.name for jar in each) for each in found} == {JARS}
    assert len(downloads) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda jar: jar.unlink(), r"s3-2\.29\.52\.jar could not be downloaded"),
        (lambda jar: jar.write_text("other"), r"s3-2\.29\.52\.jar has not the SHA-256"),
    ],
)
def test_nothing_is_kept_of_a_download_that_is_incomplete_or_has_other_bytes(jars, maven, tmp_path, change, reason):
    # Given
    change(maven / JARS[1])
    # When, Then
    with pytest.raises(LocalCloudError, match=reason):
        jars()
    assert list((tmp_path / "cache").rglob("*.jar")) == []
    # When the repository has the known bytes again
    (maven / JARS[1]).write_text(JARS[1])
    assert len(jars()) == 2
