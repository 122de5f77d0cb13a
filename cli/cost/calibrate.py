"""``hybrid-router calibrate``: what a deployment should assume about a person's own files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from lake.errors import InvalidInputError
from lake.settings import ConvertSettings, InputSettings
from sizing.advice import advise, report_lines, toml_lines
from sizing.measure import measure

STAGE = "dev"
MAX_GOAL_SECONDS = 3600.0
MIN_BYTES = 64 << 10
"""Minimum size of all files together: fewer bytes would be repeated for hours, and say nothing about real ones."""


def calibrate_files(
    paths: Sequence[Path], goal_seconds: float, cores: int, output: Path | None, *, as_json: bool = False
) -> None:
    """Convert the files, print figures and advice, and write the advice as a settings file."""
    if not 0 < goal_seconds <= MAX_GOAL_SECONDS:
        raise InvalidInputError(
            f"--goal-seconds {goal_seconds:g} is not valid: pass a number above 0, at most {MAX_GOAL_SECONDS:g}"
        )
    if cores < 1:
        raise InvalidInputError(f"--cores {cores} is not valid: pass 1 or more")
    files = ndjson_files(paths)
    if (size := sum(path.stat().st_size for path in files)) < MIN_BYTES:
        raise InvalidInputError(f"the files have {size} bytes together, too few to measure: pass {MIN_BYTES} or more")
    settings, busy = ConvertSettings(), os.getloadavg()[0]
    if busy > cores / 2:
        typer.echo(f"load average {busy:.1f}: other processes use this machine, so speeds will be too low", err=True)
    found = measure(files, goal_seconds, settings, cores, lambda text: typer.echo(text, err=True))
    advice = list(advise(found, settings))
    if output is not None:
        output.write_text("\n".join(toml_lines(advice, STAGE)) + "\n", encoding="utf-8")
    if as_json:
        body = {"measured": list(map(asdict, found)), "settings": list(map(asdict, advice))}
        typer.echo(json.dumps(body, indent=1))
        return
    for line in report_lines(found):
        typer.echo(line)
    typer.echo("")
    for item in advice:
        typer.echo(f"set {item.group}.{item.key} = {item.value}: {item.reason}")
    if output is not None:
        typer.echo(f"written: {output}")


def ndjson_files(paths: Sequence[Path]) -> list[Path]:
    """The files with bytes and an NDJSON suffix among these files and folders. Raises ``InvalidInputError``."""
    suffixes = InputSettings()
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InvalidInputError(f"{path} does not exist: pass NDJSON files, or folders that hold some")
        inside = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
        found += [item for item in inside if suffixes.suffix_of(item.name) and item.stat().st_size]
    if not found:
        raise InvalidInputError(
            f"no file has bytes and ends in {', '.join(suffixes.suffixes)}: pass NDJSON files, or folders with some"
        )
    return [path.absolute() for path in found]
