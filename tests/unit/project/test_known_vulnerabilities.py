"""``make audit`` finds vulnerabilities in each lock; a database that does not answer is not a clean lock."""

from __future__ import annotations

import json
import os
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.audit import (
    CARGO_AUDIT,
    NOT_AUDITED,
    VULNERABLE,
    NotAuditedError,
    audit_npm,
    audit_python,
    audit_rust,
    main,
    project_audits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT = Path(__file__).parents[3]
NPM_LOCK = CHECKOUT / "tests" / "unit" / "infra" / "asl_validator" / "package-lock.json"
CARGO_LOCK = CHECKOUT / "native" / "Cargo.lock"


@pytest.fixture
def database() -> Iterator[Callable[[dict[str, Any]], str]]:
    """Starts a service on loopback that answers by path; returns its address. Unknown paths are 405."""
    servers = []

    def start(answers: dict[str, Any]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def do_GET(self) -> None:
                answer = answers.get(self.path)
                body = json.dumps(answer).encode()
                self.send_response(405 if answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def uv() -> str:
    """The uv of the set-up."""
    own = CHECKOUT / ".cache" / "uv" / "bin" / "uv"
    return str(own) if own.is_file() else shutil.which("uv") or "uv"


def test_python_lock(uv: str, database: Callable[[dict[str, Any]], str]) -> None:
    # Given a database that knows a vulnerability of the first package that it is asked for.
    advisory = {"id": "OSV-1", "modified": "2026-01-01T00:00:00Z"}
    found = {"/v1/querybatch": {"results": [{"vulns": [advisory]}]}, "/v1/vulns/OSV-1": {**advisory, "summary": "bad"}}
    # Then it is reported with its package; a database without an answer is not a clean lock.
    (line,) = audit_python(uv, f"--service-url={database(found)}/")
    assert line.endswith(": OSV-1 bad")
    with pytest.raises(NotAuditedError, match=r"osv\.dev did not answer \(.+\): run `make audit` on a machine"):
        audit_python(uv, f"--service-url={database({})}/")


def test_clean_python_lock(uv: str, database: Callable[[dict[str, Any]], str]) -> None:
    assert audit_python(uv, f"--service-url={database({'/v1/querybatch': {'results': []}})}/") == []


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ({}, []),
        (
            {"asl-validator": [{"id": 1, "url": "u", "title": "t", "severity": "high", "vulnerable_versions": "<9"}]},
            ["asl-validator: high, u t"],
        ),
    ],
)
def test_npm_lock(
    database: Callable[[dict[str, Any]], str], monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], lines: list[str]
) -> None:
    registry = database({"/-/npm/v1/security/advisories/bulk": answer})
    monkeypatch.setenv("npm_config_registry", registry)
    assert audit_npm(NPM_LOCK) == lines


def test_npm_registry_without_audits(
    database: Callable[[dict[str, Any]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", database({}))
    with pytest.raises(NotAuditedError, match=r"npm registry did not answer \(405 "):
        audit_npm(NPM_LOCK)


@pytest.fixture
def cargo_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Puts a program with this output and exit code in the place of cargo-audit."""

    def behave(output: str, code: int) -> None:
        (tmp_path / "report").write_text(output)
        (tmp_path / "cargo-audit").write_text(f"#!/bin/sh\ncat {tmp_path}/report\necho no network >&2\nexit {code}\n")
        (tmp_path / "cargo-audit").chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return behave


def test_rust_lock(cargo_audit: Callable[[str, int], None]) -> None:
    crate = {"package": {"name": "zip", "version": "1.0.0"}, "advisory": {"id": "RUSTSEC-1", "title": "bad"}}
    cargo_audit(json.dumps({"vulnerabilities": {"found": True, "count": 1, "list": [crate]}}), 1)
    assert audit_rust(CARGO_LOCK) == ["zip 1.0.0: RUSTSEC-1 bad"]
    cargo_audit(json.dumps({"vulnerabilities": {"found": False, "count": 0, "list": []}}), 0)
    assert audit_rust(CARGO_LOCK) == []
    cargo_audit("", 1)
    with pytest.raises(NotAuditedError, match=r"advisory-db did not answer \(no network\)"):
        audit_rust(CARGO_LOCK)


def test_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotAuditedError, match="cargo-audit is missing: run `cargo install --locked cargo-audit"):
        audit_rust(CARGO_LOCK)


def unreachable() -> list[str]:
    raise NotAuditedError("the database did not answer")


@pytest.mark.parametrize(
    ("audits", "code"),
    [
        ({"a": list, "b": list}, 0),
        ({"a": list, "b": unreachable}, NOT_AUDITED),
        ({"a": unreachable, "b": lambda: ["idna 1: bad"]}, VULNERABLE),
    ],
)
def test_exit_code(audits: dict[str, Callable[[], list[str]]], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(audits) == code
    printed = capsys.readouterr()
    assert len(printed.out.splitlines() + printed.err.splitlines()) == 2
    assert ("was not audited: the database did not answer" in printed.err) == (unreachable in audits.values())


def test_every_lock_is_audited() -> None:
    locks = {
        path.relative_to(CHECKOUT).as_posix()
        for name in ("uv.lock", "Cargo.lock", "package-lock.json")
        for top in (".", "native", "tests")
        for path in (CHECKOUT / top).glob(name if top == "." else f"**/{name}")
    }
    assert set(project_audits()) == locks
    assert len(locks) == 5


def test_the_scheduled_audit_runs_the_tested_tool() -> None:
    workflow = (CHECKOUT / ".github" / "workflows" / "supply-chain.yml").read_text(encoding="utf-8")
    assert f"cargo install --locked cargo-audit --version {CARGO_AUDIT}\n" in workflow
