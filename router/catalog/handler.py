"""Lambda function ``catalog``: one Glue table per dataset, extended by columns that conversions found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.errors import TransientError
from router.catalog.glue_table import column_names, extended_table, new_table
from router.entry import with_product_errors
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.ledger import DatasetRow

MAX_TRIES = 5
"""Maximum number of tries per table, because another writer may update it between the read and the write."""


@with_product_errors
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{}`` -> ``{"tables": n, "created": [...], "extended": [...]}``."""
    return catalog(container_services())


def catalog(services: Services) -> dict[str, Any]:
    """Create and extend tables so that they have all columns that the ledger knows; idempotent."""
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
    for number in range(MAX_TRIES):
        table = _current_table(services, dataset.name)
        try:
            if table is None:
                body = new_table(dataset, services.settings.convert, services.resources.lake_bucket)
                glue.create_table(DatabaseName=database, TableInput=body)  # type: ignore[arg-type]
                return "created"
            names = column_names(dataset, services.settings.convert)
            extended = extended_table(table, names)
            if extended is None:
                return None
            version = {"VersionId": table["VersionId"]} if "VersionId" in table else {}
            glue.update_table(DatabaseName=database, TableInput=extended, SkipArchive=True, **version)  # type: ignore[arg-type]
        except (glue.exceptions.AlreadyExistsException, glue.exceptions.ConcurrentModificationException) as error:
            if number == MAX_TRIES - 1:
                raise TransientError(
                    f"other writers changed the table {dataset.name} during {MAX_TRIES} tries: invoke catalog again"
                ) from error
        else:
            return "extended"
    return None


def _current_table(services: Services, name: str) -> Mapping[str, Any] | None:
    try:
        return services.glue.get_table(DatabaseName=services.resources.catalog_database, Name=name)["Table"]
    except services.glue.exceptions.EntityNotFoundException:
        return None
