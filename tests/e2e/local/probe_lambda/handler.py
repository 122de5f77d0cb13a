"""Writes the keys of S3 events to the table; other events make it fail, import a package or report its environment."""

import json
import os
import sys
import urllib.parse

import boto3


class ProbeError(Exception):
    pass


def handle(event, context):
    if "Records" in event:
        return _records(event["Records"])
    if event.get("fail"):
        raise ProbeError("asked to fail,\nover two lines")
    if event.get("look"):
        client = boto3.client(event["look"])
        credentials = boto3.Session().get_credentials()
        return {
            "endpoint": client.meta.endpoint_url,
            "access_key": credentials.access_key if credentials else None,
            "environment": {key: value for key, value in os.environ.items() if "AWS" in key or "proxy" in key.lower()},
            "path": sys.path,
        }
    if event.get("import"):
        __import__(event["import"])
    return {"item": event.get("item")}


def _records(records):
    table = boto3.resource("dynamodb").Table(os.environ["TABLE"])
    failures = []
    for record in records:
        for entry in json.loads(record["body"]).get("Records", []):
            key = urllib.parse.unquote_plus(entry["s3"]["object"]["key"])
            print("saw", key)
            if "bad" in key:
                failures.append({"itemIdentifier": record["messageId"]})
            else:
                table.put_item(Item={"pk": key})
    return {"batchItemFailures": failures}
