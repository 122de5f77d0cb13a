"""Requests to moto's DynamoDB without HTTP: the same handlers and tables, at a fraction of the processor time."""

import json
from types import SimpleNamespace
from typing import Any

from botocore import xform_name
from botocore.model import OperationModel
from moto.core.exceptions import ServiceException
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber
from moto.dynamodb.responses import DynamoHandler
from werkzeug.exceptions import HTTPException

DIRECT = frozenset(
    {
        "CreateTable",
        "GetItem",
        "BatchGetItem",
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "Query",
        "Scan",
        "TransactWriteItems",
        "TransactGetItems",
    }
)
"""The operations on items, and the one that every world begins with."""
METADATA = {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}


def send_directly(client: Any) -> None:
    """Let this client's requests for items reach moto's handlers as a call.

    boto3 checks and serializes the parameters as ever. A request that moto refuses goes the long way too, where it is
    refused again: its error is the one that boto3 makes of a response.
    """

    def answer(model: OperationModel, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if not botocore_stubber.enabled or model.name not in DIRECT:
            return None
        handler = DynamoHandler()
        handler.body = handler.params = json.loads(params["body"])
        handler.current_account, handler.region = DEFAULT_ACCOUNT_ID, client.meta.region_name
        try:
            result = getattr(handler, xform_name(model.name))().result
        except (ServiceException, HTTPException):
            return None
        assert model.output_shape is not None
        body = {name: result[name] for name in model.output_shape.members if result.get(name) is not None}
        return SimpleNamespace(status_code=200), {**body, "ResponseMetadata": dict(METADATA)}

    client.meta.events.register("before-call.dynamodb", answer)
