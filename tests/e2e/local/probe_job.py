"""A Glue job that does what its ``--task`` says."""

import json
import os
import sys
import time

arguments = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
mode = arguments["--task"]
if mode == "fail":
    raise ValueError("asked to fail")
if mode == "hang":
    import boto3

    bucket, key = arguments["--started"].split("/", 1)
    children = [os.getpid()]
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        while True:
            time.sleep(1)
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps([*children, pid]).encode())
    while True:
        time.sleep(1)
if mode == "look":
    import boto3

    bucket, key = arguments["--started"].split("/", 1)
    s3 = boto3.client("s3")
    seen = {
        "endpoint": s3.meta.endpoint_url,
        "access_key": boto3.Session().get_credentials().access_key,
        "environment": {name: value for name, value in os.environ.items() if "AWS" in name or "proxy" in name.lower()},
        "path": sys.path,
    }
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(seen).encode())
if mode == "spark":
    import extra_module
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    lines = spark.read.text(arguments["--source"])
    lines.selectExpr(f"upper(value) || '{extra_module.SUFFIX}' as line").write.parquet(arguments["--target"])
