"""The role with which Glue's table optimizer compacts the Iceberg tables, if ``tables.compaction`` asks for it."""

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.allow import allow
from infra.encryption import WRITE_OBJECTS, allow_key
from infra.functions import RouterFunction
from infra.permissions import ANY_KEY, ANY_TABLE
from infra.storage import Catalog, Storage
from lake import layout
from lake.resource_names import OPTIMIZER_ROLE
from lake.settings import Settings

LOG_GROUP = "/aws-glue/iceberg-compaction/logs"
"""Glue's own, for all tables of the account."""
ANY_STREAM = "The streams of the log group are named by Glue."
PASSED = {"StringEquals": {"iam:PassedToService": "glue.amazonaws.com"}}


class Optimizer(Construct):
    """Reads the lake, and writes only into the tables' own folders, where it may delete what it has written itself.

    AWS Glue User Guide, "Table optimization prerequisites", lets it delete everywhere.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        catalog: Catalog,
        storage: Storage,
        function: RouterFunction,
    ) -> None:
        super().__init__(scope, name)
        lake = storage.lake
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
        allow(role, ("s3:GetObject",), [lake.arn_for_objects("*")], ANY_KEY)
        allow(role, ("s3:PutObject",), [lake.arn_for_objects(f"{layout.TABLES}*")], ANY_KEY)
        allow(role, ("s3:DeleteObject",), [lake.arn_for_objects(f"{layout.TABLES}*/data/*")], ANY_KEY)
        allow(role, ("s3:ListBucket",), [lake.bucket_arn])
        allow(role, ("glue:GetTable", "glue:UpdateTable"), catalog.iceberg_arns, ANY_TABLE)
        logs = Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{LOG_GROUP}:*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        allow(role, ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"), [logs], ANY_STREAM)
        if settings.encryption.kms_key:
            allow_key(role, settings.encryption.kms_key, WRITE_OBJECTS)
        actions = ("glue:CreateTableOptimizer", "glue:UpdateTableOptimizer")
        allow(function.role, actions, catalog.iceberg_arns, ANY_TABLE)
        allow(function.role, ("iam:PassRole",), [role.role_arn], conditions=PASSED)
        function.function.add_environment(OPTIMIZER_ROLE, role.role_arn)
