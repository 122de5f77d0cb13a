"""Converts manifests to published Parquet, the same in both lanes; docs/architecture.md lists the steps and files."""
