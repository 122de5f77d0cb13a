"""Compaction of Iceberg tables by Glue's table optimizer, as ``tables.compaction`` asks for it.

Glue's other optimizers delete files by their own rules, also those of the lake. A catalog may switch them on for every
table that has none, so they are created, and off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.tables.batch import TableCatalog
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.ledger import TableRow
    from router.services import Services

COMPACTION = "compaction"
OTHERS = ("retention", "orphan_file_deletion")
CONFIGURATION = {"icebergConfiguration": {"strategy": "binpack"}}


def follow_setting(services: Services, row: TableRow) -> None:
    """Switch the compaction of the table on or off, once for each change of the setting.

    Raises botocore's errors: the next batch tries it again.
    """
    wanted = services.settings.tables.compaction
    if row.compacts == wanted:
        return
    table = TableCatalog(services, row.dataset).names()
    if wanted:
        for kind in (*OTHERS, COMPACTION):
            _put(services, {**table, "Type": kind})
    else:
        _delete(services, {**table, "Type": COMPACTION})
    services.ledger.tables.note_compaction(row, compacts=wanted)
    logger.info("compaction of a table", dataset=row.dataset, compacts=wanted)


def _put(services: Services, optimizer: dict[str, Any]) -> None:
    glue: Any = services.glue
    enabled = optimizer["Type"] == COMPACTION
    configuration = {"roleArn": services.optimizer_role, "enabled": enabled}
    if enabled:
        configuration["compactionConfiguration"] = CONFIGURATION
    try:
        glue.create_table_optimizer(**optimizer, TableOptimizerConfiguration=configuration)
    except glue.exceptions.AlreadyExistsException:
        glue.update_table_optimizer(**optimizer, TableOptimizerConfiguration=configuration)


def _delete(services: Services, optimizer: dict[str, Any]) -> None:
    glue: Any = services.glue
    try:
        glue.delete_table_optimizer(**optimizer)
    except glue.exceptions.EntityNotFoundException:
        return
