"""Delivery streams of Amazon Data Firehose: from Kinesis streams and Kafka topics into the input bucket."""

from typing import Any

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.allow import acknowledge_finding, allow, key_pattern
from infra.encryption import allow_key, allow_key_as_used
from infra.log_groups import add_log_group
from infra.names import delivery_stream
from lake.settings import RecordsRule, Settings
from lake.settings.records import BUFFER_MIB, EXTENSION, FAILED_RECORDS

LOG_STREAM = "DestinationDelivery"
SERVICE = "firehose.amazonaws.com"
BUCKET_ACTIONS = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")
OBJECT_ACTIONS = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject")
KINESIS_ACTIONS = ("kinesis:DescribeStream", "kinesis:GetShardIterator", "kinesis:GetRecords", "kinesis:ListShards")
CLUSTER_ACTIONS = (
    "kafka:GetBootstrapBrokers",
    "kafka:DescribeCluster",
    "kafka:DescribeClusterV2",
    "kafka-cluster:Connect",
)
TOPIC_ACTIONS = (
    "kafka-cluster:DescribeTopic",
    "kafka-cluster:DescribeTopicDynamicConfiguration",
    "kafka-cluster:ReadData",
)
GROUP_ACTIONS = ("kafka-cluster:DescribeGroup",)
"""All of these: Amazon Data Firehose Developer Guide, "Controlling access with Amazon Data Firehose"."""
NO_OWN_ENCRYPTION = (
    "Firehose keeps the records of a source in the source, under its encryption; only records that are put directly "
    "can be encrypted by the delivery stream."
)


class Records(Construct):
    """One delivery stream, with its own role and log, for each ``[[records]]``."""

    def __init__(self, scope: Construct, name: str, settings: Settings, stack: str, bucket: s3.IBucket) -> None:
        super().__init__(scope, name)
        self._settings = settings
        self._stack = stack
        self._bucket = bucket
        for record in settings.records:
            self._add(record)

    def _add(self, record: RecordsRule) -> None:
        scope = Construct(self, record.name)
        stream = delivery_stream(self._stack, record.name)
        log = add_log_group(scope, "Log", f"/aws/kinesisfirehose/{stream}")
        errors = logs.LogStream(
            scope, "Errors", log_group=log, log_stream_name=LOG_STREAM, removal_policy=RemovalPolicy.DESTROY
        )
        folder = record.folder(self._settings.datasets)
        assert folder is not None, "the settings are checked"
        role = self._role(scope, record, folder, log)
        delivery = firehose.CfnDeliveryStream(
            scope,
            "Stream",
            delivery_stream_name=stream,
            extended_s3_destination_configuration=self._destination(record, folder, role, log),
            **_source(scope, record, role),
        )
        # Firehose tests the roles when the delivery stream is created: their policies must exist before.
        roles = [item for item in scope.node.children if isinstance(item, iam.Role)]
        delivery.node.add_dependency(errors, *roles)
        acknowledge_finding(delivery, "AwsSolutions-KDF1", NO_OWN_ENCRYPTION)

    def _role(self, scope: Construct, record: RecordsRule, folder: str, log: logs.LogGroup) -> iam.Role:
        """Create the role that writes to the bucket, and reads a Kinesis stream."""
        conditions = {"StringEquals": {"sts:ExternalId": Stack.of(self).account}}
        role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal(SERVICE, conditions=conditions))
        allow(role, BUCKET_ACTIONS, [self._bucket.bucket_arn])
        objects = [self._bucket.arn_for_objects(key_pattern(prefix)) for prefix in (folder, _failed_folder(record))]
        allow(role, OBJECT_ACTIONS, objects, "Firehose names an object when it writes it.")
        allow(role, ("logs:PutLogEvents",), [log.log_group_arn], "Firehose writes to one stream of its log group.")
        if record.kinesis_stream:
            allow(role, KINESIS_ACTIONS, [record.kinesis_stream])
        if self._settings.input_kms_key:
            allow_key_as_used(role, self._settings.input_kms_key)
        if record.kinesis_kms_key:
            allow_key(role, record.kinesis_kms_key, {"kinesis"})
        return role

    def _destination(
        self, record: RecordsRule, folder: str, role: iam.Role, log: logs.LogGroup
    ) -> firehose.CfnDeliveryStream.ExtendedS3DestinationConfigurationProperty:
        of_stream = firehose.CfnDeliveryStream
        # Firehose appends a newline to each record; without this processor it joins records to one line.
        delimiter = of_stream.ProcessorProperty(type="AppendDelimiterToRecord")
        return of_stream.ExtendedS3DestinationConfigurationProperty(
            bucket_arn=self._bucket.bucket_arn,
            role_arn=role.role_arn,
            prefix=f"{folder}!{{timestamp:yyyy/MM/dd/HH}}/",
            error_output_prefix=(
                f"{_failed_folder(record)}!{{firehose:error-output-type}}/!{{timestamp:yyyy/MM/dd/HH}}/"
            ),
            file_extension=EXTENSION,
            compression_format="GZIP",
            buffering_hints=of_stream.BufferingHintsProperty(
                interval_in_seconds=record.buffer_seconds, size_in_m_bs=BUFFER_MIB
            ),
            processing_configuration=of_stream.ProcessingConfigurationProperty(enabled=True, processors=[delimiter]),
            cloud_watch_logging_options=of_stream.CloudWatchLoggingOptionsProperty(
                enabled=True, log_group_name=log.log_group_name, log_stream_name=LOG_STREAM
            ),
        )


def _source(scope: Construct, record: RecordsRule, role: iam.Role) -> dict[str, Any]:
    of_stream = firehose.CfnDeliveryStream
    if record.kinesis_stream:
        kinesis = of_stream.KinesisStreamSourceConfigurationProperty(
            kinesis_stream_arn=record.kinesis_stream, role_arn=role.role_arn
        )
        return {"delivery_stream_type": "KinesisStreamAsSource", "kinesis_stream_source_configuration": kinesis}
    # Firehose needs another role to read a topic, and assumes it without the external id.
    reader = iam.Role(scope, "ReadRole", assumed_by=iam.ServicePrincipal(SERVICE))
    topic, group = (record.msk_cluster.replace(":cluster/", f":{kind}/", 1) for kind in ("topic", "group"))
    allow(reader, CLUSTER_ACTIONS, [record.msk_cluster])
    allow(reader, TOPIC_ACTIONS, [f"{topic}/{record.msk_topic}"])
    allow(reader, GROUP_ACTIONS, [f"{group}/*"], "Firehose chooses the name of its consumer group.")
    msk = of_stream.MSKSourceConfigurationProperty(
        msk_cluster_arn=record.msk_cluster,
        topic_name=record.msk_topic,
        authentication_configuration=of_stream.AuthenticationConfigurationProperty(
            connectivity="PRIVATE", role_arn=reader.role_arn
        ),
    )
    return {"delivery_stream_type": "MSKAsSource", "msk_source_configuration": msk}


def _failed_folder(record: RecordsRule) -> str:
    return f"{FAILED_RECORDS}{record.name}/"
