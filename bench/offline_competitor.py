"""``hybrid-router convert``: the same tasks without Spark, in processes that are started for each call."""

from __future__ import annotations

from pathlib import Path

from bench.input_files import InputFiles
from lake.settings import parse_settings
from offline.conversion import Conversion
from offline.input_files import Destination, Search, groups
from offline.output_folder import OutputFolder


def convert_offline(files: InputFiles, output: Path, cores: int) -> None:
    """What the command does from the search for the files to the last published one."""
    settings = parse_settings({"stage": "bench"})
    found = Search([files.location], settings, Destination("bench"), "").find(output, _refuse, lambda _: None)
    with OutputFolder(output) as folder:
        for outcome in Conversion(folder, settings.convert, cores, lambda _: None).run(groups(found)):
            if outcome.denied or any(source.failed or any(source.rejects.values()) for source in outcome.sources):
                raise ValueError("a file or a line was rejected: every generated line is valid")


def _refuse(path: Path, reason: str) -> None:
    raise ValueError(f"{path}: {reason}")
