"""Commands that errors and reasons advise. What fails does not know the stage; ``with_options`` adds it."""

from __future__ import annotations

import re
import shlex

QUOTED_COMMAND = re.compile(r"'hybrid-router ([a-z-]+)([^']*)'")
WITHOUT_STAGE = frozenset({"calibrate", "convert", "demo", "local", "quotas", "settings", "try"})
STAGE_OPTIONS = re.compile(r" --stage \S+| --local\b")


def with_options(text: str, options: str) -> str:
    """The text with these options, such as `` --stage prod``, in each quoted command that is for a stage."""

    def complete(match: re.Match[str]) -> str:
        command, rest = match.groups()
        if command in WITHOUT_STAGE:
            return match[0]
        # The examination of machine and account has no --local.
        place = options.replace(" --local", "") if command == "doctor" else options
        return f"'hybrid-router {command}{STAGE_OPTIONS.sub('', rest)}{place}'"

    return QUOTED_COMMAND.sub(complete, text)


def advise_reprocess(manifest: str) -> str:
    """What to do with a FAILED manifest; completes a sentence after a semicolon."""
    return f"when the cause is removed, run 'hybrid-router reprocess --manifest {manifest}'"


def reprocess_file_command(uri: str) -> str:
    """The command that converts the manifest of a file again, quoted for a shell."""
    return f"hybrid-router reprocess {shlex.quote(uri)}"


def explain_command(uri: str) -> str:
    """The command that shows what happened to every version of a file, quoted for a shell."""
    return f"hybrid-router explain {shlex.quote(uri)}"
