"""Lambda function ``catalog``: a Glue table per dataset, extended by the columns that conversions have met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.catalog.glue_table import column_names, extended_table, new_table
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.ledger import DatasetRow

ROUNDS = 5
"""Another writer's update between our read and our write is answered by reading again, so often."""


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{}`` -> ``{"tables": n, "created": [...], "extended": [...]}``."""
    return catalog(container_services())


def catalog(services: Services) -> dict[str, Any]:
    """Create and extend tables until they hold all columns that the ledger knows."""
    created, extended = [], []
    datasets = services.ledger.datasets.all()
    for dataset in datasets:
        changed = _bring_up_to_date(services, dataset)
        if changed == "created":
            created.append(dataset.name)
        elif changed == "extended":
            extended.append(dataset.name)
    logger.info("catalog", tables=len(datasets), created_tables=created, extended_tables=extended)
    return {"tables": len(datasets), "created": created, "extended": extended}


def _bring_up_to_date(services: Services, dataset: DatasetRow) -> str | None:
    glue, database = services.glue, services.resources.catalog_database
    for attempt in range(ROUNDS):
        table = _standing(services, dataset.name)
        try:
            if table is None:
                body = new_table(dataset, services.settings.convert, services.resources.lake_bucket)
                glue.create_table(DatabaseName=database, TableInput=body)  # type: ignore[arg-type]
                return "created"
            names = column_names(dataset, services.settings.convert)
            longer = extended_table(table, names)
            if longer is None:
                return None
            version = {"VersionId": table["VersionId"]} if "VersionId" in table else {}
            glue.update_table(DatabaseName=database, TableInput=longer, SkipArchive=True, **version)  # type: ignore[arg-type]
        except (glue.exceptions.AlreadyExistsException, glue.exceptions.ConcurrentModificationException):
            if attempt == ROUNDS - 1:
                raise
        else:
            return "extended"
    return None


def _standing(services: Services, name: str) -> Mapping[str, Any] | None:
    try:
        return services.glue.get_table(DatabaseName=services.resources.catalog_database, Name=name)["Table"]
    except services.glue.exceptions.EntityNotFoundException:
        return None
