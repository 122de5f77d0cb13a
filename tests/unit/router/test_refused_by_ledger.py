"""Every function counts that the ledger refused it, as one count of all functions, also when its invocation fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from lake.errors import TerminalError, TransientError
from router.entry import with_product_errors
from router.telemetry import ANY_FUNCTION, Metric

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
    ("handler", "counted"),
    [(denied, [1]), (denied_in_other_words, [1]), (denied_by_s3, [])],
    ids=str,
)
def test_a_refusal_by_the_ledger_is_counted(
    handler: Callable[[], None], counted: list[int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a function with a name of its own
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "settle")
    # When it fails
    with pytest.raises((TransientError, TerminalError)):
        with_product_errors(handler)()
    # Then the metric has no function as its dimension
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if Metric.LEDGER_REFUSALS in line]
    assert [line[Metric.LEDGER_REFUSALS] for line in lines] == [[float(number)] for number in counted]
    for line in lines:
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert (line["service"], directive["Dimensions"]) == (ANY_FUNCTION, [["service"]])
