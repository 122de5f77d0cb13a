"""Firehose: objects as AWS documents them, written with the role of the delivery stream.

The emulator makes an object of each record, and neither separates nor compresses records. Here the records of one
PutRecord or PutRecords request are one object, whatever the buffer is. A topic of MSK is never read.

Sources: Amazon Data Firehose Developer Guide, "Configure Amazon S3 object name format"; Amazon Data Firehose API
Reference, "Processor" (``AppendDelimiterToRecord``) and "ExtendedS3DestinationConfiguration".
"""

import gzip
from collections.abc import Sequence

from ministack.services import firehose  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue
from local.emulator_patches.identities.requests import log_refusal
from local.emulator_patches.identities.roles import check_role
from local.errors import NotAllowedError
from local.isolation import ACCOUNT

SERVICE = "firehose.amazonaws.com"
READ_ACTIONS = ("kinesis:DescribeStream", "kinesis:GetShardIterator", "kinesis:GetRecords", "kinesis:ListShards")
DEFAULT_EXTENSIONS = {"GZIP": ".gz"}


def patch() -> None:
    put = firehose._put_s3_object

    def ingest(stream_arn: str, records: Sequence[tuple[str, bytes]]) -> None:
        for stream in list(firehose._streams.values()):
            source = stream.get("kinesis_source") or {}
            if records and source.get("KinesisStreamARN") == stream_arn:
                stream.setdefault("waiting", []).extend(data for _, data in records)
                deliver(stream)

    def deliver(stream: EmulatorValue) -> None:
        (destination,) = stream["destinations"]
        config, source = destination["config"], stream["kinesis_source"]
        bucket = firehose._s3_bucket_from_arn(config["BucketARN"])
        key = object_key(stream["name"], stream["version"], config)
        try:
            for action in READ_ACTIONS:
                _check(source["RoleARN"], action, source["KinesisStreamARN"])
            _check(config["RoleARN"], "s3:PutObject", f"arn:aws:s3:::{bucket}/{key}")
        except NotAllowedError as error:
            # AWS tries again for as long as the Kinesis stream keeps them; here they wait for the next record.
            log_refusal(stream["arn"], str(error))
            return
        put(bucket, key, object_body(config, stream.pop("waiting")))

    firehose.ingest_from_kinesis_source = ingest


def object_key(name: str, version: int, config: EmulatorValue) -> str:
    now = firehose._arrival_time(config)
    prefix = firehose._evaluate_prefix(config.get("Prefix", ""), now)
    extension = config.get("FileExtension") or DEFAULT_EXTENSIONS.get(config.get("CompressionFormat"), "")
    moment = firehose._java_time("yyyy-MM-dd-HH-mm-ss", now)
    return f"{prefix}{name}-{version}-{moment}-{firehose.new_uuid()}{extension}"


def object_body(config: EmulatorValue, records: Sequence[bytes]) -> bytes:
    """The records as one object: joined as they are, unless a delimiter is configured."""
    processing = config.get("ProcessingConfiguration") or {}
    kinds = {item["Type"] for item in processing.get("Processors") or []} if processing.get("Enabled") else set()
    delimiter = b"\n" if "AppendDelimiterToRecord" in kinds else b""
    body = b"".join(record + delimiter for record in records)
    return gzip.compress(body) if config.get("CompressionFormat") == "GZIP" else body


def _check(role_arn: str, action: str, resource: str) -> None:
    check_role(role_arn, SERVICE, action, resource, {"sts:externalid": ACCOUNT})
