"""Commands that errors and reasons advise. The stage is left out: what fails does not know it, a person does."""

from __future__ import annotations

import shlex


def advise_reprocess(manifest: str) -> str:
    """What to do with a FAILED manifest; completes a sentence after a semicolon."""
    return f"when the cause is removed, run 'hybrid-router reprocess --manifest {manifest}'"


def reprocess_file_command(uri: str) -> str:
    """The command that converts the manifest of a file again, quoted for a shell."""
    return f"hybrid-router reprocess {shlex.quote(uri)}"


def explain_command(uri: str) -> str:
    """The command that shows what happened to every version of a file, quoted for a shell."""
    return f"hybrid-router explain {shlex.quote(uri)}"
