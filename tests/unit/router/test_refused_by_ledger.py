"""Every function counts that the ledger refused it, for itself and for all, although its invocation fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from lake.errors import TerminalError, TransientError
from router.entry import with_product_errors
from router.telemetry import ANY_FUNCTION, Metric, metrics

if TYPE_CHECKING:
    from collections.abc import Callable

DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem")
OF_S3 = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject")


def denied() -> None:
    raise DENIED


def denied_in_other_words() -> None:
    raise TransientError("invoke it again") from DENIED


def denied_by_s3() -> None:
    raise OF_S3


@pytest.mark.parametrize(
    ("handler", "counted"), [(denied, True), (denied_in_other_words, True), (denied_by_s3, False)], ids=str
)
def test_a_refusal_by_the_ledger_is_counted(
    handler: Callable[[], None], counted: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a function with a name of its own
    monkeypatch.setattr(metrics.provider, "service", "settle")
    # When it fails
    with pytest.raises((TransientError, TerminalError)):
        with_product_errors(handler)()
    # Then it is counted for the function and for all, which is the only dimension
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if Metric.LEDGER_REFUSALS in line]
    assert [line["service"] for line in lines] == (["settle", ANY_FUNCTION] if counted else [])
    for line in lines:
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert (line[Metric.LEDGER_REFUSALS], directive["Dimensions"]) == ([1.0], [["service"]])
