"""A Glue job with a task: hang, report its environment (look) or run Spark."""

import json
import os
import sys
import time

arguments = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
task = arguments["--task"]
while task == "hang":
    time.sleep(1)
if task == "look":
    import boto3

    bucket, key = arguments["--target"].split("/", 1)
    s3 = boto3.client("s3", region_name=arguments["--region"])
    credentials = boto3.Session().get_credentials()
    seen = {
        "endpoint": s3.meta.endpoint_url,
        "access_key": credentials.access_key if credentials else None,
        "environment": {name: value for name, value in os.environ.items() if "AWS" in name or "proxy" in name.lower()},
        "path": sys.path,
    }
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(seen).encode())
if task == "spark":
    import extra_module
    from pyspark.sql import SparkSession

    s3a_region = "spark.hadoop.fs.s3a.endpoint.region"
    spark = SparkSession.builder.config(s3a_region, arguments["--region"]).getOrCreate()
    lines = spark.read.text(arguments["--source"])
    lines.selectExpr(f"upper(value) || '{extra_module.SUFFIX}' as line").write.parquet(arguments["--target"])
