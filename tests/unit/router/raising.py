"""Clients that answer one operation with an error, and every error that a service models for an operation."""

from dataclasses import dataclass, field, replace
from typing import Any

from lake.ledger import Ledger
from tests.unit.lake.world import RESOURCES
from tests.unit.router.conftest import Deployment


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
