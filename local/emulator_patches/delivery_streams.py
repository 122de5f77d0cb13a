"""Firehose: the records of one PutRecord or PutRecords request are one object, written with the delivery stream's role.

The emulator makes an object of each record, and neither separates nor compresses records. A topic of MSK is never read.

Sources: Amazon Data Firehose API Reference, "Processor" (``AppendDelimiterToRecord``) and
"ExtendedS3DestinationConfiguration".
"""

import gzip
from collections.abc import Sequence

from ministack.services import firehose  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue
from local.emulator_patches.identities.requests import log_refusal
from local.emulator_patches.identities.roles import check_role
from local.errors import NotAllowedError
from local.isolation import ACCOUNT

READ_ACTIONS = ("kinesis:DescribeStream", "kinesis:GetShardIterator", "kinesis:GetRecords", "kinesis:ListShards")


def patch() -> None:
    firehose.ingest_from_kinesis_source = _ingest


def _ingest(stream_arn: str, records: Sequence[tuple[str, bytes]]) -> None:
    for stream in list(firehose._streams.values()):
        source = stream.get("kinesis_source") or {}
        if records and source.get("KinesisStreamARN") == stream_arn:
            stream.setdefault("waiting", []).extend(data for _, data in records)
            _deliver(stream)


def _deliver(stream: EmulatorValue) -> None:
    (destination,) = stream["destinations"]
    config, source = destination["config"], stream["kinesis_source"]
    asked = [(source["RoleARN"], action, source["KinesisStreamARN"]) for action in READ_ACTIONS]
    # The name of the object is created when it is written.
    key = f"{config.get('Prefix', '').partition('!{')[0]}any"
    try:
        for role, action, resource in (*asked, (config["RoleARN"], "s3:PutObject", f"{config['BucketARN']}/{key}")):
            check_role(role, "firehose.amazonaws.com", action, resource, {"sts:externalid": ACCOUNT})
    except NotAllowedError as error:
        # AWS retries as long as the Kinesis stream keeps the records; here they wait for the next record.
        log_refusal(stream["arn"], str(error))
        return
    processors = (config.get("ProcessingConfiguration") or {}).get("Processors") or ()
    delimiter = b"\n" if "AppendDelimiterToRecord" in {item["Type"] for item in processors} else b""
    body = b"".join(record + delimiter for record in stream.pop("waiting"))
    is_compressed = config.get("CompressionFormat") == "GZIP"
    firehose._deliver_to_s3(stream, destination, gzip.compress(body) if is_compressed else body)
