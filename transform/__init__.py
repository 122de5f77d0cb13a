"""Manifests to published Parquet, the same in both lanes; docs/architecture.md names the steps and their files."""
