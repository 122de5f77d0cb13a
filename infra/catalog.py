"""The Glue database. Its tables are made and extended, add-only, by the catalog function: a deploy resets nothing."""

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
            description="hybrid-router: one table per dataset, made by its catalog function",
            location_uri=storage.lake.s3_url_for_object(""),
            # A table says nothing that the files do not; kept under its fixed name it would refuse the next deployment.
            removal_policy=RemovalPolicy.DESTROY,
        )
        stack = Stack.of(self)
        self.arns = [
            stack.format_arn(service="glue", resource="catalog"),
            stack.format_arn(service="glue", resource="database", resource_name=database_name),
            stack.format_arn(service="glue", resource="table", resource_name=f"{database_name}/*"),
        ]
        """What Glue checks for a table's creation or update."""
