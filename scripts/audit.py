"""``make audit``: known vulnerabilities of the locked Python packages, crates and npm packages.

Each tool asks a database on the network. A lock whose database did not answer is not audited: that is a failure with
an exit code of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.node import node_binary, node_folder, node_trust

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHECKOUT = Path(__file__).parents[1]
VULNERABLE, NOT_AUDITED = 1, 3
"""Exit codes; 2 is that of make and of wrong arguments."""
CARGO_AUDIT = "0.22.2"
"""The tested version of https://crates.io/crates/cargo-audit."""


class NotAuditedError(Exception):
    """A tool is missing or its database did not answer; the message says which and what to do."""


def audit_python(uv: str, *options: str) -> list[str]:
    """The vulnerabilities of ``uv.lock`` by https://osv.dev, one line each; ``options`` are for ``uv audit``.

    Raises
    ------
    NotAuditedError
        The database did not answer.
    """
    command = [uv, "audit", "--frozen", "--quiet", "--preview-features=audit", "--output-format=json", *options]
    report = _report(command, "https://osv.dev", CHECKOUT)
    found = [
        f"{item['dependency']['name']} {item['dependency']['version']}: {item['id']} {item['summary']}"
        for item in report["vulnerabilities"]
    ]
    return found + [f"{item['name']}: {item['status']}" for item in report["adverse_statuses"]]


def audit_rust(lock: Path) -> list[str]:
    """The vulnerabilities of a Cargo.lock by https://rustsec.org, one line each.

    Raises
    ------
    NotAuditedError
        cargo-audit is missing, or the database did not answer.
    """
    tool = shutil.which("cargo-audit")
    if tool is None:
        install = f"cargo install --locked cargo-audit --version {CARGO_AUDIT}"
        raise NotAuditedError(f"cargo-audit is missing: run `{install}`, then `make audit` again")
    report = _report([tool, "audit", "--json", "--file", str(lock)], "https://github.com/RustSec/advisory-db", CHECKOUT)
    return [
        f"{item['package']['name']} {item['package']['version']}: {item['advisory']['id']} {item['advisory']['title']}"
        for item in report["vulnerabilities"]["list"]
    ]


def audit_npm(lock: Path) -> list[str]:
    """The vulnerabilities of a package-lock.json by the npm registry, one line for each package.

    Raises
    ------
    NotAuditedError
        The registry did not answer, or does not offer audits.
    """
    npm = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node_binary()), str(npm), "audit", "--json", "--package-lock-only"]
    report = _report(command, "the audit of the npm registry", lock.parent, node_trust())
    return [
        f"{name}: {item['severity']}, "
        + ", ".join(cause if isinstance(cause, str) else f"{cause['url']} {cause['title']}" for cause in item["via"])
        for name, item in sorted(report["vulnerabilities"].items())
    ]


def _report(
    command: Sequence[str], database: str, folder: Path, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """What the tool prints; a tool whose database is out of reach prints no report, or one without vulnerabilities."""
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    try:
        report: dict[str, Any] = json.loads(result.stdout)
    except ValueError:
        report = {}
    if "vulnerabilities" not in report:
        reason = report.get("message") or " ".join(result.stderr.split())[:300] or "it gave no reason"
        raise NotAuditedError(f"{database} did not answer ({reason}): run `make audit` on a machine that reaches it")
    return report


def main(audits: dict[str, Callable[[], list[str]]]) -> int:
    """Run the audits by the name of their lock and print what they find; returns the exit code."""
    vulnerable, not_audited = False, False
    for lock, audit in audits.items():
        try:
            found = audit()
        except NotAuditedError as error:
            not_audited = True
            sys.stderr.write(f"{lock} was not audited: {error}\n")
            continue
        vulnerable = vulnerable or bool(found)
        sys.stdout.write("".join(f"{lock}: {line}\n" for line in found) or f"{lock}: no known vulnerability\n")
    return VULNERABLE if vulnerable else NOT_AUDITED if not_audited else 0


def project_audits() -> dict[str, Callable[[], list[str]]]:
    """An audit for each lock of the checkout; ``uv run`` sets UV to its own path."""
    npm_locks = sorted(CHECKOUT.glob("tests/**/package-lock.json"))
    return {
        "uv.lock": lambda: audit_python(os.environ["UV"]),
        "native/Cargo.lock": lambda: audit_rust(CHECKOUT / "native" / "Cargo.lock"),
        **{str(lock.relative_to(CHECKOUT)): lambda lock=lock: audit_npm(lock) for lock in npm_locks},  # type: ignore[misc]
    }


if __name__ == "__main__":
    sys.exit(main(project_audits()))
