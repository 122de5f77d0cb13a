"""The Glue databases of the lake: one of Hive tables, one of Iceberg tables.

The functions ``catalog`` and ``tables`` create the tables and change them; a deployment leaves both as they are. The
database of Iceberg tables exists also where no dataset asks for one: to delete it is to delete its tables, and settings
that were rolled back must not do that.
"""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_glue as glue
from constructs import Construct

from infra.storage import Storage
from lake.resource_names import ResourceNames


class Catalog(Construct):
    """The databases of the lake's tables."""

    def __init__(self, scope: Construct, name: str, resources: ResourceNames, storage: Storage) -> None:
        super().__init__(scope, name)
        self._storage = storage
        self._add_database("Database", resources.catalog_database, "catalog")
        self._add_database("Tables", resources.tables_database, "tables")
        self.table_arns = self._arns(resources.catalog_database)
        """The resources on which Glue checks the permission to create or update a Hive table."""
        self.iceberg_arns = self._arns(resources.tables_database)
        """ARNs of the catalog, the database and the tables of Iceberg."""

    def _add_database(self, construct: str, database_name: str, function: str) -> None:
        glue.Database(
            self,
            construct,
            database_name=database_name,
            description=f"hybrid-router: one table per dataset, maintained by the function {function}",
            location_uri=self._storage.lake.s3_url_for_object(""),
            # Tables can be rebuilt from the files. A retained database would block the next deployment by its name.
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _arns(self, database_name: str) -> list[str]:
        stack = Stack.of(self)
        return [
            stack.format_arn(service="glue", resource="catalog"),
            stack.format_arn(service="glue", resource="database", resource_name=database_name),
            stack.format_arn(service="glue", resource="table", resource_name=f"{database_name}/*"),
        ]
