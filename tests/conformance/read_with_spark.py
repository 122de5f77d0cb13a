"""Reads Parquet files with the Spark of this Python: ``read_with_spark.py OUTPUT FILE...``; run by ``readers``.

Writes, for each file and for each of Spark's two readers, one JSON line with the file, the reader, and its rows.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

output, *files = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
with Path(output).open("w", encoding="utf-8") as lines:
    for vectorized in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        for file in files:
            rows = [row.asDict() for row in spark.read.parquet(file).collect()]
            reader = f"Spark {spark.version}, {'vectorized' if vectorized == 'true' else 'row by row'}"
            lines.write(json.dumps([file, reader, rows]) + "\n")
spark.stop()
