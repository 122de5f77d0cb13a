"""`hybrid-router convert` names files and objects that may not be read, and the next call converts them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from obstore.exceptions import GenericError

from cli.errors import ExitCode
from cli.offline.convert import convert_files
from lake.manifest import ObjectVersion, Partition
from offline.conversion import Conversion
from offline.input_files import InputFile
from offline.output_folder import OutputFolder
from tests.unit.offline.conversions import GOOD, SMALL, answer, request
from transform import source

KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.mark.parametrize("others", [0, 1])
def test_a_file_that_may_not_be_opened_is_converted_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], others: int
) -> None:
    # Given a file without read permission, which does not stop a test that runs as root
    folder, output = tmp_path / "orders", tmp_path / "out"
    folder.mkdir()
    closed = folder / "closed.ndjson"
    for path in (closed, *(folder / f"{number}.ndjson" for number in range(others))):
        path.write_bytes(GOOD)
    opened = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *arguments, **options)

    with monkeypatch.context() as denied:
        denied.setattr(os, "open", refuse)
        # When
        code = convert_files(request(folder, output=output))
    # Then the rest is converted, and the file is named with what to do
    told = answer(capsys)
    assert code == ExitCode.NOT_SO
    assert (told["files"], told["rows"], told["unreadable"]) == (others, 2 * others, {})
    assert told["refused"] == {
        str(closed): "it may not be read (Permission denied): allow it, then run the command again"
    }
    assert [path for path in (output / "quarantine").rglob("*") if path.is_file()] == []
    # And nothing of it is remembered
    assert convert_files(request(folder, output=output)) == ExitCode.FINE
    told = answer(capsys)
    assert (told["files"], told["skipped"], told["rows"]) == (1, others, 2)


@pytest.mark.parametrize(
    "refusal", ["Access Denied", f"User: u is not authorized to perform: kms:Decrypt on resource: {KEY}"]
)
def test_an_object_that_is_denied_is_not_quarantined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: str
) -> None:
    # Given an object whose policy or key refuses the read
    class Refusing:
        def get_object(self, **_: Any) -> Any:
            response: Any = {
                "Error": {"Code": "AccessDenied", "Message": refusal},
                "ResponseMetadata": {"HTTPStatusCode": 403},
            }
            raise ClientError(response, "GetObject")

    def fail(*_: Any, **__: Any) -> Any:
        raise GenericError("403")

    client: Any = Refusing()
    monkeypatch.setattr(source, "s3_client", lambda _: client)
    monkeypatch.setattr(source, "object_store", lambda *_: object())
    monkeypatch.setattr(source.obstore, "get", fail)  # type: ignore[attr-defined]
    file = ObjectVersion("input", "orders/a.ndjson", "e", 8, "2026-03-04T11:59:00+00:00", None)
    item = InputFile(file, Partition("orders", "2026-03-04", 11))
    # When
    with OutputFolder(tmp_path) as output:
        conversion = Conversion(output, SMALL.convert, 1, lambda _: None, "eu-central-1")
        outcomes = list(conversion.run([[item]]))
        # Then
        assert not output.converted.is_done(file)
    [outcome] = outcomes
    assert (outcome.sources, outcome.objects) == ((), ())
    assert list(outcome.denied) == [file]
    assert refusal in outcome.denied[file]
