"""Clients that answer one operation with an error, and every error that a service models for an operation."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from lake.ledger import Ledger
from tests.unit.lake.world import RESOURCES, clients
from tests.unit.router.conftest import Deployment
from tests.unit.router.glue import glue_client

GENERIC_CODES = (
    "AccessDeniedException",
    "ExpiredTokenException",
    "InternalError",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "ValidationException",
)
"""Any service may answer with these, although botocore models few of them."""
NETWORK_ERRORS = (ConnectTimeoutError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError)
PASSING_CODES = {
    "ConditionalCheckFailedException",
    "ConcurrentModificationException",
    "ExpiredTokenException",
    "FederationSourceRetryableException",
    "InternalError",
    "InternalServerError",
    "InternalServiceException",
    "OperationTimeoutException",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestLimitExceeded",
    "ResourceNotReadyException",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
}
"""What a repetition can overcome, by the pages of each service. The transaction meets another one here, and the failed
condition means that another process has changed the row."""
PASSING_IN_OPERATION = {
    ("glue.start_job_run", "ResourceNumberLimitExceededException"),
    ("glue.start_job_run", "ConcurrentRunsExceededException"),
    ("glue.create_table", "AlreadyExistsException"),
    ("glue.update_table", "AlreadyExistsException"),
    ("glue.get_table", "EntityNotFoundException"),
}
"""A quota of runs has room again when others end. A table that another writer has made or removed is read again."""


@dataclass
class RaisingClients:
    """Records the operations of all clients it wraps, as ``service.operation``; the chosen one raises."""

    operations: set[str] = field(default_factory=set)
    failing: str | None = None
    error: Exception | None = None
    raised: bool = False
    """Whether the chosen operation was called."""

    def install(self, deployment: Deployment) -> None:
        """Put them between the deployment's functions and its services."""
        dynamodb = _Raising("dynamodb", deployment.dynamodb, self)
        deployment.services = replace(
            deployment.services,
            ledger=Ledger.over(dynamodb, RESOURCES.ledger_table, lambda _: None),  # type: ignore[arg-type]
            s3=_Raising("s3", deployment.raw_s3, self),  # type: ignore[arg-type]
            glue=_Raising("glue", deployment.glue, self),  # type: ignore[arg-type]
        )


class _Raising:
    def __init__(self, service: str, client: Any, clients: RaisingClients) -> None:
        self._service, self._client, self._clients = service, client, clients

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if name == "exceptions" or not callable(value):
            return value
        operation = f"{self._service}.{name}"

        def call(**kwargs: Any) -> Any:
            self._clients.operations.add(operation)
            if operation == self._clients.failing and self._clients.error is not None:
                self._clients.raised = True
                raise self._clients.error
            return value(**kwargs)

        return call


def errors_of(operation: str) -> Iterator[tuple[Exception, bool]]:
    """Every error that this operation, as ``service.operation``, can raise; and whether a repetition overcomes it."""
    service, _, method = operation.partition(".")
    s3, dynamodb = clients()
    client = {"s3": s3, "dynamodb": dynamodb, "glue": glue_client()}[service]
    name = client.meta.method_to_api_mapping[method]
    modelled = {shape.error_code for shape in client.meta.service_model.operation_model(name).error_shapes}
    for code in sorted(modelled | set(GENERIC_CODES)):
        answer: Any = {"Error": {"Code": code, "Message": "test"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        if code == "TransactionCanceledException":
            answer["CancellationReasons"] = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        kind: type[ClientError] = client.exceptions.from_code(code)
        yield kind(answer, name), code in PASSING_CODES or (operation, code) in PASSING_IN_OPERATION
    for network_error in NETWORK_ERRORS:
        yield network_error(endpoint_url="https://loopback"), True
