"""Imports a package or reports its environment, depending on the event."""

import os
import sys

import boto3


def handler(event, context):
    if event.get("look"):
        client = boto3.client(event["look"])
        credentials = boto3.Session().get_credentials()
        return {
            "endpoint": client.meta.endpoint_url,
            "access_key": credentials.access_key if credentials else None,
            "environment": {key: value for key, value in os.environ.items() if "AWS" in key or "proxy" in key.lower()},
            "path": sys.path,
        }
    __import__(event["import"])
    return {}
