"""The Glue database of the lake.

The function ``catalog`` creates its tables and adds columns to them; a deployment leaves both as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_glue as glue
from constructs import Construct

if TYPE_CHECKING:
    from infra.storage import Storage


class Catalog(Construct):
    """The database of the lake's tables."""

    def __init__(self, scope: Construct, name: str, database_name: str, storage: Storage) -> None:
        super().__init__(scope, name)
        glue.Database(
            self,
            "Database",
            database_name=database_name,
            description="hybrid-router: one table per dataset, maintained by the function catalog",
            location_uri=storage.lake.s3_url_for_object(""),
            # Tables can be rebuilt from the files. A retained database would block the next deployment by its name.
            removal_policy=RemovalPolicy.DESTROY,
        )
        stack = Stack.of(self)
        self.table_arns = [
            stack.format_arn(service="glue", resource="catalog"),
            stack.format_arn(service="glue", resource="database", resource_name=database_name),
            stack.format_arn(service="glue", resource="table", resource_name=f"{database_name}/*"),
        ]
        """The resources on which Glue checks the permission to create or update a table."""
