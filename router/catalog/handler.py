"""Lambda function ``catalog``: one Glue table per dataset, with comments, and the columns that conversions found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lake.errors import TransientError
from router.catalog.glue_table import extended_table, is_own_table, new_table
from router.entry import with_product_errors
from router.services import Services, container_services
from router.telemetry import logger

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from lake.ledger import DatasetRow

MAX_TRIES = 5
"""Maximum number of tries per table, because another writer may update it between the read and the write."""
TIME_PER_CALL = timedelta(minutes=4)
"""No table is begun after it. Shorter than the timeout of the function, 5 minutes."""
MAX_NAMES = 100
"""Maximum number of names in each list of the answer: it passes through a state of ``overnight`` (256 KiB)."""


@with_product_errors
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{}`` -> ``{"tables": n, "created": [...], "extended": [...], "foreign": [...]}``."""
    return catalog(container_services())


def catalog(services: Services) -> dict[str, Any]:
    """Create and extend tables so that they have all columns that the ledger knows and say what they are; idempotent.

    No table is begun after ``TIME_PER_CALL``. The next invocation continues after the last table of this one, and
    from the beginning after the last of all. A dataset with an Iceberg table has no other one. A table that cannot
    be brought up to date holds back no other. An uploader can choose the name of a dataset, so a table or view of
    somebody else under that name is only reported.

    Returns
    -------
    ``tables`` is the number of tables looked at; ``created``, ``extended`` and ``foreign``, which are not ours, are the
    first ``MAX_NAMES`` names.

    Raises
    ------
    Exception
        The first error of a table, after all the others were tried; the log names each table.
    """
    datasets, stop_at = services.ledger.datasets, services.clock() + TIME_PER_CALL
    changed: dict[str, list[str]] = {"created": [], "extended": [], "foreign": []}
    errors: list[Exception] = []
    number, position = 0, ""
    for dataset in datasets.following(datasets.catalog_position()):
        if services.clock() >= stop_at:
            break
        number, position = number + 1, dataset.name
        if services.settings.has_table(dataset.name):
            continue
        try:
            kind = _bring_up_to_date(services, dataset)
        except Exception as error:
            logger.exception("table not brought up to date: the next round tries it again", table=dataset.name)
            errors.append(error)
        else:
            if kind is not None:
                changed[kind].append(dataset.name)
    else:
        position = ""
    datasets.record_catalog_position(position)
    counts = {kind: len(names) for kind, names in changed.items()}
    logger.info("catalog", tables=number, counts=counts, errors=len(errors), continues_after=position)
    if errors:
        raise errors[0]
    return {"tables": number, **{kind: names[:MAX_NAMES] for kind, names in changed.items()}}


def _bring_up_to_date(services: Services, dataset: DatasetRow) -> str | None:
    glue, resources, database = services.glue, services.resources, services.resources.catalog_database
    wanted = new_table(dataset, services.settings.convert, resources.lake_bucket, resources.quarantine_bucket)
    for number in range(MAX_TRIES):
        table = _current_table(services, dataset.name)
        try:
            if table is None:
                glue.create_table(DatabaseName=database, TableInput=wanted)  # type: ignore[arg-type]
                return "created"
            if not is_own_table(table, wanted):
                logger.warning("a table of others has the name of a dataset: rename one of them", table=dataset.name)
                return "foreign"
            extended = extended_table(table, wanted)
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
