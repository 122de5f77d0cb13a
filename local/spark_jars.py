"""Downloads jars for Spark on this machine once into the project's cache; by default the jars with which it reads S3.

``spark_jars.sha256`` lists the latter with their SHA-256; other bytes are refused. Later calls need no network.
"""

import fcntl
import hashlib
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from local.errors import LocalCloudError

DEFAULT_CACHE = Path(__file__).resolve().parents[1] / ".cache" / "spark-jars"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
_HASHES = Path(__file__).with_suffix(".sha256").read_text(encoding="utf-8")
"""One line for each jar, as ``sha256sum`` writes it in a repository. Spark has its own Netty and logging, and the
"bundle" of the SDK would be 600 MB of services that are not used here."""
_MAX_SILENCE_SECONDS = 60


def resolve(
    hashes: str = _HASHES,
    *,
    cache: Path = DEFAULT_CACHE,
    repository: str = MAVEN_CENTRAL,
    log: Callable[[str], None] = lambda _: None,
) -> tuple[Path, ...]:
    """Return the jars of ``hashes``, sorted by name; downloads them if ``cache`` does not have exactly these jars.

    Several processes may call it at once: a folder with its final name is complete. ``log`` is called before a
    download. Raises ``LocalCloudError`` if a jar could not be downloaded or its bytes do not match ``hashes``; it then
    leaves nothing in ``cache``.
    """
    folder = cache / hashlib.sha256(hashes.encode()).hexdigest()[:16]
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                log("downloading jars of Spark (only once)")
                with tempfile.TemporaryDirectory(dir=cache) as work:
                    jars = Path(work) / "jars"
                    jars.mkdir()
                    for line in hashes.splitlines():
                        digest, path = line.split()
                        (jars / Path(path).name).write_bytes(_download(f"{repository}/{path}", digest))
                    jars.rename(folder)
    return tuple(sorted(folder.glob("*.jar")))


def _download(url: str, digest: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_MAX_SILENCE_SECONDS) as response:  # noqa: S310  (Maven Central)
            content: bytes = response.read()
    except (OSError, HTTPException) as error:
        raise LocalCloudError(f"{url} could not be downloaded ({error}): check the network and try again.") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise LocalCloudError(
            f"{url} does not have the SHA-256 {digest} and was discarded: try again. If it is the same, find out who "
            "changed the jar."
        )
    return content


if __name__ == "__main__":
    from local.spark_iceberg import HASHES

    try:
        for jars in (_HASHES, HASHES):
            resolve(jars, log=lambda line: print(line, flush=True))
    except LocalCloudError as error:
        sys.exit(str(error))
